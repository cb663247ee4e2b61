"""Makes op files of attention and its caches for tests/data/ops from torch and Hugging Face's own layers.

Made with torch 2.13.0 (CPU), transformers 5.22.2, safetensors 0.8.0. Usage: python attention.py OUT_FOLDER
"""

import math
import pathlib
import sys
import types

import torch
from safetensors.torch import save_file
from transformers import DynamicCache
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek
from transformers.models.qwen3_moe import modeling_qwen3_moe as qwen3


def save(folder, op, case, inputs, expected, tolerance, **attributes):
    tensors = {name: tensor.contiguous() for name, tensor in inputs.items()}
    tensors |= {f"expect.{name}": tensor.contiguous() for name, tensor in expected.items()}
    metadata = {f"attr.{name}": str(value) for name, value in attributes.items()}
    metadata |= {"op": op, "tolerance": str(tolerance)}
    save_file({name: tensor.detach() for name, tensor in tensors.items()}, folder / f"{op}_{case}.safetensors", metadata)


def heads_first(x):  # [S,H,D] -> [1,H,S,D] in double
    return x.double().transpose(0, 1)[None]


def visible(tokens, rows, start, window):
    last = start + torch.arange(tokens)[:, None]
    row = torch.arange(rows)[None]
    return (row <= last) & (row > last - (window or rows))


def sdpa(folder, case, tokens, start, heads, kv_heads, width, value_width, window=0, cache=torch.float32, spread=1.0,
         tolerance=2e-6):
    rows = start + tokens
    q = torch.randn(tokens, heads, width) * spread
    k = (torch.randn(rows, kv_heads, width) * spread).to(cache)
    v = torch.randn(rows, kv_heads, value_width).to(cache)
    scale = 1 / math.sqrt(width)
    out = torch.nn.functional.scaled_dot_product_attention(
        heads_first(q), heads_first(k), heads_first(v), attn_mask=visible(tokens, rows, start, window), scale=scale,
        enable_gqa=True)
    inputs = {"q": q, "k_cache": k, "v_cache": v}
    attributes = {"start": start, "scale": scale} | ({"window": window} if window else {})
    save(folder, "attention", case, inputs, {"out": out[0].transpose(0, 1).float()}, tolerance, **attributes)


def eager(folder):
    """Grouped heads as the Qwen models call it."""
    tokens, rows, heads, kv_heads, width = 7, 40, 16, 2, 64
    q, k, v = torch.randn(tokens, heads, width), torch.randn(rows, kv_heads, width), torch.randn(rows, kv_heads, width)
    layer = types.SimpleNamespace(num_key_value_groups=heads // kv_heads, training=False)
    mask = torch.zeros(tokens, rows, dtype=torch.float64).masked_fill(~visible(tokens, rows, rows - tokens, 0), -math.inf)
    # The eager form computes its softmax in float32 for any input type.
    out, _ = qwen3.eager_attention_forward(
        layer, heads_first(q), heads_first(k), heads_first(v), mask[None, None], scaling=width**-0.5)
    save(folder, "attention", "qwen3_moe_eager", {"q": q, "k_cache": k, "v_cache": v}, {"out": out[0].float()}, 2e-6,
         start=rows - tokens, scale=width**-0.5)


def kv_append(folder):
    k, v = torch.randn(5, 2, 16), torch.randn(5, 2, 24)
    old_k, old_v = torch.randn(9, 2, 16), torch.randn(9, 2, 24)
    cache = DynamicCache()
    cache.update(old_k[:4].transpose(0, 1)[None], old_v[:4].transpose(0, 1)[None], 0)
    keys, values = cache.update(k.transpose(0, 1)[None], v.transpose(0, 1)[None], 0)
    inputs = {"k": k, "v": v, "k_cache": old_k, "v_cache": old_v}
    expected = {"k_cache": keys[0].transpose(0, 1), "v_cache": values[0].transpose(0, 1)}
    save(folder, "kv_append", "dynamic_cache", inputs, expected, 0, start=4)


def mla_append(folder):
    latent, rope = torch.randn(3, 32), torch.randn(3, 8)
    old_latent, old_rope = torch.randn(6, 32), torch.randn(6, 8)
    at = torch.arange(2, 5)
    expected = {"latent_cache": old_latent.index_copy(0, at, latent).bfloat16(),
                "rope_cache": old_rope.index_copy(0, at, rope).bfloat16()}
    inputs = {"kv_latent": latent, "k_pe": rope, "latent_cache": old_latent.bfloat16(), "rope_cache": old_rope.bfloat16()}
    save(folder, "mla_append", "index_copy_bf16", inputs, expected, 0, start=2)


def mla_attention(folder):
    """DeepSeek-V3's layer, which expands the latents to keys and values, against the absorbed form."""
    config = deepseek.DeepseekV3Config(
        hidden_size=64, num_attention_heads=6, num_key_value_heads=6, q_lora_rank=48, kv_lora_rank=80, qk_nope_head_dim=24,
        qk_rope_head_dim=16, v_head_dim=20, max_position_embeddings=64, attn_implementation="eager")
    layer = deepseek.DeepseekV3Attention(config, 0).double().eval()
    for parameter in layer.parameters():
        parameter.data.normal_(0, 0.3)
    seen = {}
    layer.kv_a_layernorm.register_forward_hook(lambda _, __, output: seen.update(latent=output[0]))
    original = deepseek.eager_attention_forward

    def spy(module, query, key, value, mask, scaling, **kwargs):
        seen.update(query=query[0], key=key[0], scaling=scaling)
        return original(module, query, key, value, mask, scaling, **kwargs)

    deepseek.eager_attention_forward = spy
    tokens = 33
    hidden = torch.randn(1, tokens, 64, dtype=torch.float64)
    position = deepseek.DeepseekV3RotaryEmbedding(config)(hidden, torch.arange(tokens)[None])
    mask = torch.zeros(tokens, tokens, dtype=torch.float64).masked_fill(~visible(tokens, tokens, 0, 0), -math.inf)
    out, weights = layer(hidden, position, mask[None, None])

    kv_b = layer.kv_b_proj.weight.view(6, 24 + 20, 80)
    q_nope, q_pe = seen["query"].split([24, 16], -1)
    q_latent = torch.einsum("htn,hnr->thr", q_nope, kv_b[:, :24])
    k_pe = seen["key"][0, :, 24:]
    latent_out = torch.einsum("hts,sr->thr", weights[0], seen["latent"])
    projected = torch.einsum("thr,hvr->thv", latent_out, kv_b[:, 24:]).reshape(1, tokens, -1)
    torch.testing.assert_close(layer.o_proj(projected), out, rtol=1e-5, atol=1e-5)  # its softmax is float32
    for case, first in (("deepseek_v3", 0), ("deepseek_v3_decode", tokens - 1)):
        inputs = {"q_latent": q_latent[first:], "q_pe": q_pe.transpose(0, 1)[first:], "latent_cache": seen["latent"],
                  "rope_cache": k_pe}
        save(folder, "mla_attention", case, {name: x.float() for name, x in inputs.items()},
             {"out": latent_out[first:].float()}, 5e-6, start=first, scale=seen["scaling"])


def main():
    torch.manual_seed(20250101)
    torch.set_grad_enabled(False)
    folder = pathlib.Path(sys.argv[1])
    sdpa(folder, "sdpa_decode", 1, 599, 8, 1, 32, 32)
    sdpa(folder, "sdpa_decode_bf16_cache", 1, 599, 6, 2, 40, 24, cache=torch.bfloat16)
    sdpa(folder, "sdpa_prompt", 65, 70, 4, 2, 32, 48)
    sdpa(folder, "sdpa_window", 33, 120, 4, 4, 16, 16, window=50, cache=torch.bfloat16)
    sdpa(folder, "sdpa_sharp", 9, 90, 4, 2, 64, 64, spread=6.0, tolerance=1e-5)
    eager(folder)
    kv_append(folder)
    mla_append(folder)
    mla_attention(folder)


if __name__ == "__main__":
    main()
