"""The formula of every op in torch, with arguments to test it: one function per op, with its name."""

import functools
import math

import torch

F = torch.nn.functional
EPS, BITS, START, ROWS = 1e-5, 4, 3, 64  # for caches: start of the call, and number of rows


def randn(*shape):
    return torch.randn(*shape)


def ints(*values):
    return torch.tensor(values, dtype=torch.int32)


def norm(x, weight=None):
    made = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + EPS)
    return made if weight is None else made * weight


def rotated(x, inv_freq, positions, mscale=1.0, interleaved=False):
    """Rotates the first 2M channels of [T,H,D], with complex numbers."""
    turned, rest = x[..., :2 * len(inv_freq)], x[..., 2 * len(inv_freq):]
    pairs = turned.unflatten(-1, (-1, 2)) if interleaved else turned.unflatten(-1, (2, -1)).transpose(-1, -2)
    angles = positions[:, None, None].double() * inv_freq
    made = torch.view_as_real(torch.view_as_complex(pairs.contiguous()) * torch.polar(torch.full_like(angles, mscale), angles))
    made = made.flatten(-2) if interleaved else made.transpose(-1, -2).flatten(-2)
    return torch.cat([made, rest], -1)


def attended(q, k, v, scale, start, window=0):
    """q [T,H,D] over rows [S,KH,D]: query i sees rows 0..start+i."""
    k, v = (rows.repeat_interleave(q.shape[1] // rows.shape[1], 1) for rows in (k, v))
    own, row = start + torch.arange(len(q))[:, None], torch.arange(len(k))
    seen = (row <= own) & ((row > own - window) if window else torch.tensor(True))
    return F.scaled_dot_product_attention(q.transpose(0, 1), k.transpose(0, 1), v.transpose(0, 1), attn_mask=seen,
                                          scale=scale).transpose(0, 1)


def appended(cache, rows):
    made = cache.clone()
    made[START:START + len(rows)] = rows
    return made


def convolved(x, weight, state):
    virtual = torch.cat([state, x])
    return F.silu(F.conv1d(virtual.T[None], weight[:, None], groups=weight.shape[0])[0].T), virtual[-state.shape[0]:]


def gates(a, b, A_log, dt_bias):
    return -A_log.exp() * F.softplus(a + dt_bias), b.sigmoid()


def delta(q, k, v, g, beta, state):
    q, k = (x.repeat_interleave(v.shape[1] // x.shape[1], 1) for x in (q, k))
    out = []
    for t in range(len(q)):
        state = state * g[t].exp()[:, None, None]
        u = beta[t][:, None] * (v[t] - (state @ k[t][..., None])[..., 0])
        state = state + u[..., None] * k[t][:, None]
        out.append((state @ q[t][..., None])[..., 0])
    return torch.stack(out), state


# Packed caches: the formulas of docs/kv-format.md, with levels by Lloyd's iteration.
@functools.cache
def levels():
    made = torch.linspace(-2.5, 2.5, 1 << BITS, dtype=torch.float64)
    normal = torch.distributions.Normal(torch.tensor(0.0, dtype=torch.float64), 1.0)
    for _ in range(4000):
        ends = torch.cat([torch.tensor([-math.inf]), (made[1:] + made[:-1]) / 2, torch.tensor([math.inf])])
        density = torch.exp(-ends.square() / 2) / math.sqrt(2 * math.pi)
        made = -density.diff() / normal.cdf(ends).diff()
    return made


def hadamard_matrix(width):
    made = torch.ones(1, 1, dtype=torch.float64)
    while len(made) < width:
        made = torch.kron(torch.tensor([[1.0, 1.0], [1.0, -1.0]], dtype=torch.float64), made)
    return made / math.sqrt(width)


def signs_of(bits):
    return 1.0 - 2.0 * ((bits[:, None].int() >> torch.arange(8)) & 1).flatten()


def encoded(x, signs):
    """[..,D] as codes, two per byte, and lengths."""
    lengths = x.norm(dim=-1)
    unit = (x * signs_of(signs)) @ hadamard_matrix(x.shape[-1]) * (math.sqrt(x.shape[-1]) / lengths)[..., None]
    codes = (unit[..., None] - levels()).abs().argmin(-1)
    return (codes[..., ::2] | codes[..., 1::2] << 4).to(torch.uint8), lengths


def decoded(codes, lengths, signs):
    values = levels()[torch.stack([codes & 15, codes >> 4], -1).flatten(-2).long()]
    width = values.shape[-1]
    return (values * lengths[..., None] / math.sqrt(width)) @ hadamard_matrix(width) * signs_of(signs)


def random_bytes(*shape):
    return torch.randint(0, 256, shape, dtype=torch.uint8)


def by_heads(x):
    return x.transpose(0, 1)


def embed():
    table, ids = randn(9, 64), ints(3, 0, 8, 3)
    return dict(table=table, ids=ids), lambda table, ids: table[ids.long()]


def matmul():
    return dict(x=randn(5, 64), w=randn(24, 64)), lambda x, w: x @ w.T


def expert_matmul():
    return dict(x=randn(5, 64), w=randn(6, 24, 64), experts=ints([5, 0], [1, 2], [2, 1], [0, 3], [3, 5])), \
        lambda x, w, experts: torch.einsum("tk,tjnk->tjn", x, w[experts.long()])


def gate_up_swiglu():
    return dict(x=randn(5, 64), gate_w=randn(24, 64), up_w=randn(24, 64)), lambda x, gate_w, up_w: F.silu(x @ gate_w.T) * (x @ up_w.T)


def expert_gate_up_swiglu():
    def expected(x, gate_w, up_w, experts):
        return F.silu(torch.einsum("tk,tjnk->tjn", x, gate_w[experts.long()])) * torch.einsum("tk,tjnk->tjn", x, up_w[experts.long()])

    return dict(x=randn(3, 64), gate_w=randn(4, 24, 64), up_w=randn(4, 24, 64), experts=ints([3, 0], [1, 2], [2, 1])), expected


def swiglu():
    return dict(gate=randn(3, 4, 64), up=randn(3, 4, 64)), lambda gate, up: F.silu(gate) * up


def add():
    return dict(a=randn(3, 7), b=randn(3, 7)), lambda a, b: a + b


def sigmoid_gate():
    return dict(x=randn(3, 64), gate=randn(3, 64)), lambda x, gate: x * gate.sigmoid()


def rms_norm():
    return dict(x=randn(3, 64), weight=randn(64), eps=EPS), lambda x, weight, eps: norm(x, weight)


def add_rms_norm():
    return dict(residual=randn(3, 64), delta=randn(3, 64), weight=randn(64), eps=EPS), \
        lambda residual, delta, weight, eps: dict(residual=residual + delta, out=norm(residual + delta, weight))


def gated_rms_norm():
    return dict(x=randn(3, 4, 64), z=randn(3, 4, 64), weight=randn(64), eps=EPS), lambda x, z, weight, eps: norm(x, weight) * F.silu(z)


def qk_l2_norm():
    def expected(q, k, eps, q_scale, k_scale):
        return {name: scale * x * torch.rsqrt(x.square().sum(-1, keepdim=True) + eps) for name, x, scale in (("q", q, q_scale), ("k", k, k_scale))}

    return dict(q=randn(3, 2, 64), k=randn(3, 2, 64), eps=EPS, q_scale=0.125, k_scale=2.0), expected


def rope():
    return dict(x=randn(3, 2, 64), inv_freq=torch.rand(16), positions=ints(0, 5, 900), mscale=1.25, pairing="interleaved"), \
        lambda x, inv_freq, positions, mscale, pairing: rotated(x, inv_freq, positions, mscale, True)


def normed_and_rotated(q, k, q_weight, k_weight, inv_freq, positions, eps, mscale=1.0):
    return dict(q=rotated(norm(q, q_weight), inv_freq, positions, mscale), k=rotated(norm(k, k_weight), inv_freq, positions, mscale))


def of_qk_norm_rope():
    return dict(q=randn(3, 4, 64), k=randn(3, 2, 64), q_weight=randn(64), k_weight=randn(64), inv_freq=torch.rand(16), positions=ints(3, 4, 5),
                eps=EPS)


def qk_norm_rope():
    return dict(of_qk_norm_rope(), mscale=1.25), normed_and_rotated


def split_q_gate():
    return dict(x=randn(3, 2, 128)), lambda x: dict(q=x[..., :64], gate=x[..., 64:])


def kv_append():
    return dict(k=randn(3, 2, 64), v=randn(3, 2, 64), k_cache=randn(ROWS, 2, 64), v_cache=randn(ROWS, 2, 64), start=START), \
        lambda k, v, k_cache, v_cache, start: dict(k_cache=appended(k_cache, k), v_cache=appended(v_cache, v))


def attention():
    return dict(q=randn(5, 4, 64), k_cache=randn(ROWS, 2, 64), v_cache=randn(ROWS, 2, 64), start=20, scale=0.125, window=9), \
        lambda q, k_cache, v_cache, start, scale, window: attended(q, k_cache, v_cache, scale, start, window)


def hadamard():
    return dict(x=randn(3, 64), signs=random_bytes(8), inverse=True), lambda x, signs, inverse: x @ hadamard_matrix(64) * signs_of(signs)


def turboquant_encode():
    def expected(x, signs, bits):
        codes, lengths = encoded(by_heads(x), signs)
        return dict(codes=codes, norms=lengths)

    return dict(x=randn(3, 2, 64), signs=random_bytes(8), bits=BITS), expected


def turboquant_decode():
    return dict(codes=random_bytes(2, 3, 32), norms=torch.rand(2, 3), signs=random_bytes(8), bits=BITS), \
        lambda codes, norms, signs, bits: by_heads(decoded(codes, norms, signs))


def packed_cache(heads):
    return {f"{name}_{part}": made for name in ("k", "v")
            for part, made in (("codes", random_bytes(heads, ROWS, 32)), ("norms", torch.rand(heads, ROWS)))}


def appended_codes(given, k, v):
    made = {}
    for name, rows in (("k", k), ("v", v)):
        for part, new in zip(("codes", "norms"), encoded(by_heads(rows), given["signs"])):
            made[f"{name}_{part}"] = by_heads(appended(by_heads(given[f"{name}_{part}"]), by_heads(new).to(given[f"{name}_{part}"].dtype)))
    return made


def turboquant_append():
    return dict(k=randn(3, 2, 64), v=randn(3, 2, 64), signs=random_bytes(8), **packed_cache(2), k_bits=BITS, v_bits=BITS, start=START), \
        lambda **given: appended_codes(given, given["k"], given["v"])


def turboquant_attention():
    def expected(q, signs, k_codes, k_norms, v_codes, v_norms, k_bits, v_bits, length, scale):
        k, v = (by_heads(decoded(codes, norms, signs)) for codes, norms in ((k_codes, k_norms), (v_codes, v_norms)))
        return attended(q, k, v, scale, length - len(q))

    return dict(q=randn(3, 4, 64), signs=random_bytes(8), **packed_cache(2), k_bits=BITS, v_bits=BITS, length=40, scale=0.125), expected


def qk_norm_rope_append():
    def expected(v, k_cache, v_cache, start, **given):
        made = normed_and_rotated(**given)
        return dict(made, k_cache=appended(k_cache, made["k"]), v_cache=appended(v_cache, v))

    return dict(of_qk_norm_rope(), v=randn(3, 2, 64), k_cache=randn(ROWS, 2, 64), v_cache=randn(ROWS, 2, 64), start=START), expected


def qk_norm_rope_turboquant_append():
    def expected(v, signs, start, k_bits, v_bits, k_codes, k_norms, v_codes, v_norms, **given):
        made = normed_and_rotated(**given)
        cache = dict(signs=signs, k_codes=k_codes, k_norms=k_norms, v_codes=v_codes, v_norms=v_norms)
        return dict(made, **appended_codes(cache, made["k"], v))

    return dict(of_qk_norm_rope(), v=randn(3, 2, 64), signs=random_bytes(8), **packed_cache(2), k_bits=BITS, v_bits=BITS, start=START), expected


def causal_conv1d():
    def expected(x, weight, state):
        out, after = convolved(x, weight, state)
        return dict(state=after, out=out)

    return dict(x=randn(5, 24), weight=randn(24, 4), state=randn(3, 24)), expected


def delta_gates():
    def expected(**given):
        g, beta = gates(**given)
        return dict(g=g, beta=beta)

    return dict(a=randn(3, 4), b=randn(3, 4), A_log=randn(4), dt_bias=randn(4)), expected


def delta_rule():
    def expected(**given):
        out, state = delta(**given)
        return dict(state=state, out=out)

    q, k = F.normalize(randn(2, 70, 2, 64), dim=-1)
    return dict(q=q, k=k, v=randn(70, 4, 64), g=-torch.rand(70, 4), beta=torch.rand(70, 4), state=randn(4, 64, 64)), expected


def delta_step():
    keys, values, width = 2, 4, 64  # heads and channels

    def expected(qkv, z, a, b, conv_weight, A_log, dt_bias, norm_weight, conv_state, state, qk_eps, eps):
        mixed, conv_state = convolved(qkv, conv_weight, conv_state)
        q, k, v = (x.unflatten(-1, (-1, width)) for x in mixed.split([keys * width, keys * width, values * width], -1))
        q, k = (x * torch.rsqrt(x.square().sum(-1, keepdim=True) + qk_eps) for x in (q, k))
        out, state = delta(q * width**-0.5, k, v, *gates(a, b, A_log, dt_bias), state)
        return dict(conv_state=conv_state, state=state, out=norm(out, norm_weight) * F.silu(z))

    channels = (2 * keys + values) * width
    return dict(qkv=randn(1, channels), z=randn(1, values, width), a=randn(1, values), b=randn(1, values), conv_weight=randn(channels, 4),
                A_log=randn(values), dt_bias=randn(values), norm_weight=randn(width), conv_state=randn(3, channels),
                state=randn(values, width, width), qk_eps=1e-6, eps=EPS), expected


def delta_kkt():
    def expected(k, beta, g, chunk):
        k = k.repeat_interleave(beta.shape[-1] // k.shape[2], 2).unflatten(1, (-1, chunk))  # [B,N,C,H,K]
        beta, g = beta.unflatten(1, (-1, chunk)), g.unflatten(1, (-1, chunk))  # [B,N,C,H]
        made = torch.einsum("bnihk,bnjhk->bnihj", k, k) * beta[..., None]
        made = made * (g[..., None] - g.transpose(2, 3)[:, :, None]).exp()
        return (made * torch.ones(chunk, chunk).tril(-1)[:, None]).flatten(1, 2)

    return dict(k=F.normalize(randn(2, 32, 2, 16), dim=-1), beta=torch.rand(2, 32, 4), g=-torch.rand(2, 32, 4).cumsum(1), chunk=16), expected


def route_softmax():
    def expected(logits, k, normalize):
        weights, experts = logits.softmax(-1).topk(k)
        return dict(experts=experts, weights=weights / weights.sum(-1, keepdim=True))

    return dict(logits=randn(5, 16), k=4, normalize=True), expected


def route_sigmoid():
    def expected(logits, bias, k, groups, top_groups, scale, normalize):
        score = logits.sigmoid()
        choice = (score + bias).unflatten(-1, (groups, -1))
        best = choice.topk(2).values.sum(-1).topk(top_groups).indices
        open_ = torch.zeros(choice.shape[:2], dtype=torch.bool).scatter(1, best, True)
        experts = choice.masked_fill(~open_[..., None], -math.inf).flatten(1).topk(k).indices
        weights = score.gather(1, experts)
        return dict(experts=experts, weights=weights / (weights.sum(-1, keepdim=True) + 1e-20) * scale)

    return dict(logits=randn(5, 16), bias=randn(16) * 0.1, k=3, groups=4, top_groups=2, scale=2.5, normalize=True), expected


def moe_combine():
    def expected(residual, expert_out, weights, shared_out, shared_gate):
        return residual + (weights[..., None] * expert_out).sum(1) + shared_gate.sigmoid() * shared_out

    return dict(residual=randn(5, 64), expert_out=randn(5, 2, 64), weights=torch.rand(5, 2), shared_out=randn(5, 64), shared_gate=randn(5, 1)), \
        expected


def moe_scatter_add():
    return dict(bucket_out=randn(6, 64), token_idx=ints(0, 3, 1, 3, 2, 0), weights=torch.rand(6), sum=randn(4, 64)), \
        lambda bucket_out, token_idx, weights, sum: sum.index_add(0, token_idx.long(), weights[:, None] * bucket_out)


def mla_split():
    def expected(q_full, kv_pre, nope, rope):
        return dict(q_nope=q_full[..., :nope], q_pe=q_full[..., nope:], kv_latent=kv_pre[:, :-rope], k_pe=kv_pre[:, -rope:])

    return dict(q_full=randn(3, 2, 48), kv_pre=randn(3, 80), nope=32, rope=16), expected


def mla_append():
    def expected(kv_latent, k_pe, latent_cache, rope_cache, start):
        return dict(latent_cache=appended(latent_cache, kv_latent), rope_cache=appended(rope_cache, k_pe))

    return dict(kv_latent=randn(3, 64), k_pe=randn(3, 16), latent_cache=randn(ROWS, 64), rope_cache=randn(ROWS, 16), start=START), expected


def mla_absorb_q():
    return dict(q_nope=randn(3, 2, 32), kv_b=randn(2 * (32 + 16), 64), v=16), \
        lambda q_nope, kv_b, v: torch.einsum("thn,hnr->thr", q_nope, kv_b.unflatten(0, (2, -1))[:, :32])


def attended_latent(q_latent, q_pe, latent, rope, scale, start):
    return attended(torch.cat([q_latent, q_pe], -1), torch.cat([latent, rope], -1)[:, None], latent[:, None], scale, start)


def mla_attention():
    def expected(q_latent, q_pe, latent_cache, rope_cache, start, scale):
        return attended_latent(q_latent, q_pe, latent_cache, rope_cache, scale, start)

    return dict(q_latent=randn(3, 2, 64), q_pe=randn(3, 2, 16), latent_cache=randn(ROWS, 64), rope_cache=randn(ROWS, 16), start=30, scale=0.125), expected


def mla_project_out():
    return dict(latent=randn(3, 2, 64), kv_b=randn(2 * (32 + 16), 64), nope=32), \
        lambda latent, kv_b, nope: torch.einsum("thr,hvr->thv", latent, kv_b.unflatten(0, (2, -1))[:, 32:])


def of_packed_latents():
    return dict(latent_codes=random_bytes(ROWS, 32), latent_norms=torch.rand(ROWS), rope_cache=randn(ROWS, 16), signs=random_bytes(8), bits=BITS)


def mla_turboquant_append():
    def expected(kv_latent, k_pe, latent_codes, latent_norms, rope_cache, signs, bits, start):
        codes, lengths = encoded(kv_latent, signs)
        return dict(latent_codes=appended(latent_codes, codes), latent_norms=appended(latent_norms, lengths), rope_cache=appended(rope_cache, k_pe))

    return dict(of_packed_latents(), kv_latent=randn(3, 64), k_pe=randn(3, 16), start=START), expected


def mla_turboquant_attention():
    def expected(q_latent, q_pe, latent_codes, latent_norms, rope_cache, signs, bits, start, scale):
        return attended_latent(q_latent, q_pe, decoded(latent_codes, latent_norms, signs), rope_cache, scale, start)

    return dict(of_packed_latents(), q_latent=randn(3, 2, 64), q_pe=randn(3, 2, 16), start=30, scale=0.125), expected


def sample():
    """The largest logits after penalties, bias and mask."""
    def expected(logits, positions, counts, bias_ids, bias, allowed, repetition_penalty, presence_penalty, frequency_penalty, logprobs):
        occurred = counts > 0
        made = torch.where(occurred, torch.where(logits > 0, logits / repetition_penalty, logits * repetition_penalty), logits)
        made = made - occurred * presence_penalty - counts * frequency_penalty
        made = made.scatter_add(1, bias_ids.long(), bias)
        bits = (allowed[..., None].int() >> torch.arange(8)) & 1
        made = made.masked_fill(bits.flatten(1)[:, :made.shape[1]] == 0, -math.inf)
        rows, ids = made.log_softmax(-1), made.argmax(-1)
        top = rows.topk(logprobs)
        blank = (len(rows), 20 - logprobs)
        return dict(positions=positions + 1, ids=ids, counts=counts + F.one_hot(ids, made.shape[1]), logprob=rows.amax(-1),
                    top_ids=torch.cat([top.indices, torch.full(blank, -1)], 1),
                    top_logprobs=torch.cat([top.values, torch.full(blank, -math.inf)], 1))

    return dict(logits=randn(3, 50), positions=ints(0, 7, 9), counts=torch.randint(0, 3, (3, 50), dtype=torch.int32),
                bias_ids=ints([4, 5], [6, 7], [8, 9]), bias=randn(3, 2), allowed=random_bytes(3, 7), repetition_penalty=1.5,
                presence_penalty=0.25, frequency_penalty=0.125, logprobs=3), expected


CASES = [embed, matmul, expert_matmul, gate_up_swiglu, expert_gate_up_swiglu, swiglu, add, sigmoid_gate, rms_norm, add_rms_norm, gated_rms_norm,
         qk_l2_norm, rope, qk_norm_rope, split_q_gate, kv_append, attention, hadamard, turboquant_encode, turboquant_decode, turboquant_append,
         turboquant_attention, qk_norm_rope_append, qk_norm_rope_turboquant_append, causal_conv1d, delta_gates, delta_rule, delta_step, delta_kkt,
         route_softmax, route_sigmoid, moe_combine, moe_scatter_add, mla_split, mla_append, mla_absorb_q, mla_attention, mla_project_out,
         mla_turboquant_append, mla_turboquant_attention, sample]
OF_OPS = {case.__name__: case for case in CASES}
