"""Makes op files of the gated delta rule and related ops for tests/data/ops from Hugging Face's Qwen3-Next.

Made with torch 2.13.0 (CPU), transformers 5.22.2, safetensors 0.8.0. Usage: python delta.py OUT_FOLDER
"""

import pathlib
import sys

import torch
import torch.nn.functional as F
from safetensors.torch import save_file
from transformers.models.qwen3_next import modeling_qwen3_next as qwen_next


def save(folder, op, case, inputs, expected, tolerance, **attributes):
    tensors = {name: tensor.contiguous() for name, tensor in inputs.items()}
    tensors |= {f"expect.{name}": tensor.contiguous() for name, tensor in expected.items()}
    metadata = {f"attr.{name}": str(value) for name, value in attributes.items()}
    metadata |= {"op": op, "tolerance": str(tolerance)}
    save_file({name: tensor.clone() for name, tensor in tensors.items()}, folder / f"{op}_{case}.safetensors", metadata)


def causal_conv1d(folder):
    """The model's step over several tokens; its state is [1,C,W-1], the op's [W-1,C]."""
    for tokens, channels, width in ((1, 40, 4), (2, 40, 4), (3, 33, 4), (65, 17, 4), (7, 19, 2)):
        x, weight = torch.randn(tokens, channels), torch.randn(channels, width) * 0.5
        state = torch.randn(width - 1, channels)
        after = state.T[None].clone()
        out = qwen_next.causal_conv1d_update(x.T[None], after, weight, None, "silu")
        inputs = {"x": x, "weight": weight, "state": state}
        save(folder, "causal_conv1d", f"{tokens}x{channels}_width{width}", inputs,
             {"out": out[0].T, "state": after[0].T}, 1e-6)


def delta_gates(folder):
    """The two lines of the model's forward that compute the gates."""
    for case, scale in (("usual", 1.0), ("far", 30.0)):
        a, b = torch.randn(9, 37) * scale, torch.randn(9, 37) * scale
        a_log, dt_bias = torch.rand(37).mul(16).log(), torch.randn(37)
        g = -a_log.float().exp() * F.softplus(a.float() + dt_bias)
        inputs = {"a": a, "b": b, "A_log": a_log, "dt_bias": dt_bias}
        save(folder, "delta_gates", case, inputs, {"g": g, "beta": b.sigmoid()}, 2e-6)


def delta_rule_case(folder, case, tokens, form, oracle, decay="usual"):
    key_heads, value_heads, key_width, value_width = 1, 2, 64, 32
    query = F.normalize(torch.randn(tokens, key_heads, key_width), dim=-1)
    key = F.normalize(torch.randn(tokens, key_heads, key_width), dim=-1)
    value = torch.randn(tokens, value_heads, value_width)
    beta = torch.rand(tokens, value_heads)
    g = -torch.rand(tokens, value_heads) * 0.3
    if decay == "none":
        g = torch.zeros_like(g)
    if decay == "resets":
        g[::7] = -torch.inf
        g[3::5] = 0
    state = torch.randn(value_heads, value_width, key_width) * 0.3
    ratio = value_heads // key_heads
    out, after = oracle(
        query.repeat_interleave(ratio, dim=1)[None], key.repeat_interleave(ratio, dim=1)[None], value[None],
        g=g[None], beta=beta[None], initial_state=state.transpose(1, 2)[None], output_final_state=True)
    # The oracle divides its queries by sqrt(Dk) = 8; the op takes scaled queries.
    inputs = {"q": query / key_width**0.5, "k": key, "v": value, "g": g, "beta": beta, "state": state}
    save(folder, "delta_rule", case, inputs, {"out": out[0], "state": after[0].transpose(1, 2)}, 3e-6, form=form)


def delta_rule(folder):
    recurrent = qwen_next.torch_recurrent_gated_delta_rule
    chunked = qwen_next.torch_chunk_gated_delta_rule
    for tokens in (1, 2, 63):
        delta_rule_case(folder, f"recurrent_{tokens}", tokens, "recurrent", recurrent)
    for tokens in (2, 63, 64, 65):
        delta_rule_case(folder, f"chunked_{tokens}", tokens, "chunked", chunked)
    delta_rule_case(folder, "auto_257", 257, "auto", chunked)
    delta_rule_case(folder, "recurrent_no_decay", 64, "recurrent", recurrent, "none")
    delta_rule_case(folder, "chunked_no_decay", 64, "chunked", chunked, "none")
    # The oracle's own chunked form is NaN when a decay is zero.
    delta_rule_case(folder, "recurrent_resets", 40, "recurrent", recurrent, "resets")
    delta_rule_case(folder, "chunked_resets", 70, "chunked", recurrent, "resets")


def delta_kkt(folder):
    """The first lines of the model's chunked form, with torch's own rounding of k * beta to BF16."""
    for case, dtype, tokens, chunk in (("f32", torch.float32, 70, 64), ("bf16", torch.bfloat16, 48, 16)):
        key = F.normalize(torch.randn(tokens, 1, 64), dim=-1).to(dtype)
        beta = torch.rand(tokens, 2)
        g = -torch.rand(tokens, 2) * 0.3
        rows = []
        for first in range(0, tokens, chunk):
            part = slice(first, min(first + chunk, tokens))
            g[part] = g[part].cumsum(dim=0)
            k = key[part].transpose(0, 1).float()
            k_beta = (key[part].float() * beta[part, :, None]).to(dtype).float().transpose(0, 1)
            decay = (g[part].T[:, :, None] - g[part].T[:, None, :]).tril().exp().tril()
            square = (k_beta @ k.transpose(1, 2) * decay).tril(-1)
            rows.append(F.pad(square, (0, chunk - square.shape[-1])).transpose(0, 1))
        inputs = {"k": key[None], "beta": beta[None], "g": g[None]}
        save(folder, "delta_kkt", case, inputs, {"A": torch.cat(rows)[None]}, 2e-6, chunk=chunk)


def main():
    torch.manual_seed(20250602)
    torch.set_grad_enabled(False)
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for make in (causal_conv1d, delta_gates, delta_rule, delta_kkt):
        make(folder)


if __name__ == "__main__":
    main()
