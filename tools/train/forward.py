"""A training forward over transformers' modules: dense experts, a chunked delta rule that compiles well, dropout.

check.py compares it with transformers' forward. Only the order of the arithmetic differs: every expert is computed for
every token and weighted by zero if it was not chosen, which is faster on a large GPU than gathering at this size.
"""

import torch
import torch.nn.functional as F
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as qwen

CHUNK = 64


def unit_lower_inverse(lower: torch.Tensor) -> torch.Tensor:
    """(I + lower)^-1 for strictly lower triangular `lower` [..., C, C], by doubling the size of inverted blocks."""
    size = lower.shape[-1]
    eye = torch.eye(size, device=lower.device, dtype=lower.dtype)
    index = torch.arange(size, device=lower.device)
    with torch.no_grad():
        inverse, block = eye.expand_as(lower), 1
        while block < size:
            pair = index // (2 * block)
            joins = (pair[:, None] == pair[None, :]) & (
                (index // block)[:, None] != (index // block)[None, :]
            )
            inverse = inverse - inverse @ (lower * joins) @ inverse
            block *= 2
    # One Newton step carries the gradient: d(2M - M L M) = -M dL M at M = L^-1.
    return 2 * inverse - inverse @ (lower + eye) @ inverse


def chunked_delta_rule(query, key, value, g, beta, use_qk_l2norm_in_kernel=True, **_):
    """Gated delta rule of [B, T, H, D] inputs in F32 (T a multiple of CHUNK), as transformers' function of that name."""
    with torch.autocast(query.device.type, enabled=False):
        batch, length, heads, dim = value.shape
        shape = (batch, heads, length // CHUNK, CHUNK)
        q, k, v = (x.float().transpose(1, 2).reshape(*shape, -1) for x in (query, key, value))
        beta, decay = (x.float().transpose(1, 2).reshape(shape) for x in (beta, g))
        q, k = qwen.l2norm(q, dim=-1) * q.shape[-1] ** -0.5, qwen.l2norm(k, dim=-1)
        total = decay.cumsum(-1)  # [B, H, N, C]
        future = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).triu(1)
        pairwise = (total[..., :, None] - total[..., None, :]).masked_fill(future, float("-inf")).exp()
        k_beta, v_beta = k * beta[..., None], v * beta[..., None]
        inverse = unit_lower_inverse(((k_beta @ k.mT) * pairwise).tril(-1))
        written = inverse @ v_beta
        reads = torch.cat([inverse @ (k_beta * total.exp()[..., None]), q * total.exp()[..., None]], dim=-2)
        attention = (q @ k.mT) * pairwise
        keys = (k * (total[..., -1:] - total).exp()[..., None]).mT
        carry = total[..., -1].exp()[..., None, None]
        state, out = value.new_zeros(batch, heads, k.shape[-1], dim, dtype=torch.float32), []
        for n in range(shape[2]):
            recalled, answered = (reads[:, :, n] @ state).split(CHUNK, dim=-2)
            fresh = written[:, :, n] - recalled
            out.append(answered + attention[:, :, n] @ fresh)
            state = state * carry[:, :, n] + keys[:, :, n] @ fresh
        return torch.cat(out, dim=2).transpose(1, 2).to(query.dtype), None


def shifted_conv(x, weight, bias=None, activation="silu", **_):
    """Causal depthwise convolution of [B, C, T] as a sum of shifted copies: one fused pass instead of a library call."""
    taps = weight.shape[-1]
    padded = F.pad(x, (taps - 1, 0))
    return F.silu(sum(padded[..., j : j + x.shape[-1]] * weight[:, j, None] for j in range(taps)))


def use_training_kernels():
    qwen.torch_chunk_gated_delta_rule = chunked_delta_rule
    qwen.causal_conv1d_fn = shifted_conv


def experts(module, x, index, weight):
    """x [T, H] through all experts as two matrix products, weighted by the router's choice."""
    count, _, hidden = module.gate_up_proj.shape
    chosen = torch.zeros(x.shape[0], count, dtype=x.dtype, device=x.device).scatter(
        1, index, weight.to(x.dtype)
    )
    gate, up = F.linear(x, module.gate_up_proj.flatten(0, 1)).view(x.shape[0], count, 2, -1).unbind(2)
    inner = F.silu(gate) * up * chosen[..., None]
    return F.linear(inner.flatten(1), module.down_proj.transpose(0, 1).reshape(hidden, -1))


def mixture(mlp, x):
    """Output, balancing loss and load [experts] of a mixture-of-experts block; a dense block has neither loss nor load."""
    if not hasattr(mlp, "gate"):
        return mlp(x), x.new_zeros(()), x.new_zeros(1)
    flat = x.flatten(0, 1)
    logits, weight, index = mlp.gate(flat)
    out = experts(mlp.experts, flat, index, weight)
    if hasattr(mlp, "shared_experts"):
        share = logits.float().sigmoid()
        share = share / share.sum(-1, keepdim=True)
        out = out + mlp.shared_experts(flat)
    else:
        share = logits.float().softmax(-1)
        out = out + torch.sigmoid(mlp.shared_expert_gate(flat)) * mlp.shared_expert(flat)
    load = torch.zeros_like(share).scatter(1, index, 1.0).mean(0)
    balance = (load * share.mean(0)).sum() * load.shape[0] / index.shape[1]
    return out.view_as(x), balance, load


def layer(module, hidden, rotary, dropout):
    x = module.input_layernorm(hidden)
    if hasattr(module, "linear_attn"):
        mixed = module.linear_attn(hidden_states=x)
    else:
        mixed = module.self_attn(hidden_states=x, position_embeddings=rotary, attention_mask=None)[0]
    hidden = hidden + F.dropout(mixed, dropout, training=dropout > 0)
    out, balance, load = mixture(module.mlp, module.post_attention_layernorm(hidden))
    return hidden + F.dropout(out, dropout, training=dropout > 0), balance, load


def head(model, hidden, labels):
    """Sum of the losses of the labelled tokens; -100 marks the others."""
    logits = model.lm_head(model.model.norm(hidden)).float()
    return F.cross_entropy(logits.flatten(0, 1), labels.flatten(), reduction="sum", ignore_index=-100)


def distilled_head(model, hidden, labels, teacher):
    """As `head`, plus the sum of the cross-entropies against the teacher's distribution [tokens, vocab]."""
    logs = model.lm_head(model.model.norm(hidden)).float().flatten(0, 1).log_softmax(-1)
    known = labels.flatten() != -100
    hard = F.nll_loss(logs, labels.flatten(), reduction="sum", ignore_index=-100)
    return hard, -((teacher.float() * logs).sum(-1) * known).sum()


def trunk(model, ids, dropout=0.0, run_layer=layer):
    """Hidden states before the final norm, mean balancing loss, and the load of each layer's experts."""
    positions = torch.arange(ids.shape[1], device=ids.device)[None].expand(ids.shape[0], -1)
    hidden = F.dropout(model.model.embed_tokens(ids), dropout, training=dropout > 0)
    delta = any(hasattr(m, "linear_attn") for m in model.model.layers)
    rotary = model.model.rotary_emb(hidden, positions[None].expand(3, -1, -1) if delta else positions)
    balances, loads = [], []
    for module in model.model.layers:
        hidden, balance, load = run_layer(module, hidden, rotary, dropout)
        balances.append(balance)
        loads.append(load)
    return hidden, torch.stack(balances).mean(), loads
