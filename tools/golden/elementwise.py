"""Makes op files of norms, positions, gates and routers for tests/data/ops from Hugging Face's own layers.

Made with torch 2.13.0 (CPU), transformers 5.22.2, safetensors 0.8.0. Usage: python elementwise.py OUT_FOLDER
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers.models.deepseek_v3 import modeling_deepseek_v3 as deepseek
from transformers.models.qwen3_5_moe import modeling_qwen3_5_moe as qwen35
from transformers.models.qwen3_moe import modeling_qwen3_moe as qwen3
from transformers.models.qwen3_next import modeling_qwen3_next as qwen_next


def save(folder, op, case, inputs, expected, tolerance, **attributes):
    tensors = {name: tensor.contiguous() for name, tensor in inputs.items()}
    tensors |= {f"expect.{name}": tensor.contiguous() for name, tensor in expected.items()}
    metadata = {f"attr.{name}": str(value) for name, value in attributes.items()}
    metadata |= {"op": op, "tolerance": str(tolerance)}
    save_file({name: tensor.detach() for name, tensor in tensors.items()}, folder / f"{op}_{case}.safetensors", metadata)


def rms_norm(folder):
    x = torch.randn(5, 256) * 3
    plain = qwen3.Qwen3MoeRMSNorm(256, eps=1e-6)
    plain.weight.data.normal_(1, 0.2)
    save(folder, "rms_norm", "qwen3_moe", {"x": x, "weight": plain.weight}, {"out": plain(x)}, 1e-6, eps=1e-6)
    # Stored zero-centred; the op takes the weight with one added, as in converted checkpoints.
    centred = qwen_next.Qwen3NextRMSNorm(128, eps=1e-6)
    centred.weight.data.normal_(0, 0.2)
    x = torch.randn(3, 4, 128)
    inputs = {"x": x, "weight": 1 + centred.weight}
    save(folder, "rms_norm", "qwen3_next_heads", inputs, {"out": centred(x)}, 1e-6, eps=1e-6)
    x = x.bfloat16()
    inputs = {"x": x, "weight": 1 + centred.weight}
    save(folder, "rms_norm", "qwen3_next_bf16", inputs, {"out": centred(x)}, 1e-4, eps=1e-6)


def add_rms_norm(folder):
    norm = qwen_next.Qwen3NextRMSNorm(96, eps=1e-6)
    norm.weight.data.normal_(0, 0.2)
    residual, delta = torch.randn(4, 96), torch.randn(4, 96)
    inputs = {"residual": residual, "delta": delta, "weight": 1 + norm.weight}
    total = residual + delta
    save(folder, "add_rms_norm", "qwen3_next", inputs, {"residual": total, "out": norm(total)}, 1e-6, eps=1e-6)


def gated_rms_norm(folder):
    norm = qwen_next.Qwen3NextRMSNormGated(128, eps=1e-6)
    norm.weight.data.normal_(1, 0.2)
    x, z = torch.randn(3, 4, 128), 4 * torch.randn(3, 4, 128)
    inputs = {"x": x, "z": z, "weight": norm.weight}
    save(folder, "gated_rms_norm", "qwen3_next", inputs, {"out": norm(x, z)}, 1e-6, eps=1e-6)


def qk_l2_norm(folder):
    q, k = torch.randn(3, 4, 128), torch.randn(3, 4, 128)
    expected = {"q": qwen_next.l2norm(q, eps=1e-6) * 128**-0.5, "k": qwen_next.l2norm(k, eps=1e-6)}
    attributes = {"eps": 1e-6, "q_scale": 128**-0.5, "k_scale": 1}
    save(folder, "qk_l2_norm", "qwen3_next", {"q": q, "k": k}, expected, 1e-6, **attributes)


def rope(folder):
    # The text part of Qwen3.5: 64 of 256 channels, pairs (i, i+32). Positions are small, because the layer computes angles in
    # float32.
    config = qwen35.Qwen3_5MoeTextConfig(head_dim=256)
    config.rope_parameters |= {"rope_theta": 1e7, "partial_rotary_factor": 0.25, "mrope_section": [11, 11, 10]}
    embedding = qwen35.Qwen3_5MoeTextRotaryEmbedding(config)
    assert embedding.inv_freq.shape == (32,)
    positions = torch.tensor([0, 1, 2, 5, 100])
    x = torch.randn(5, 2, 256)
    cos, sin = embedding(x, positions[None])
    rotated, _ = qwen35.apply_rotary_pos_emb(x[None], x[None], cos, sin, unsqueeze_dim=2)
    inputs = {"x": x, "inv_freq": embedding.inv_freq, "positions": positions.int()}
    save(folder, "rope", "qwen3_5", inputs, {"x": rotated[0]}, 2e-6, pairing="half", mscale=1)
    # DeepSeek-V3: the YaRN table as a plain input, pairs (2i, 2i+1). The layer writes first all first components, then all second
    # ones; the op leaves them in place.
    yarn = {"rope_type": "yarn", "rope_theta": 10000.0, "factor": 40.0, "beta_fast": 32, "beta_slow": 1,
            "mscale": 1.0, "mscale_all_dim": 1.0, "original_max_position_embeddings": 4096}
    config = deepseek.DeepseekV3Config(max_position_embeddings=163840, rope_parameters=yarn)
    embedding = deepseek.DeepseekV3RotaryEmbedding(config)
    x = torch.randn(5, 3, 64)
    cos, sin = embedding(x, positions[None])
    rotated, _ = deepseek.apply_rotary_pos_emb_interleave(x[None], x[None], cos, sin, unsqueeze_dim=2)
    rotated = rotated[0].unflatten(-1, (2, 32)).transpose(-1, -2).flatten(-2)
    inputs = {"x": x, "inv_freq": embedding.inv_freq, "positions": positions.int()}
    mscale = embedding.attention_scaling
    save(folder, "rope", "deepseek_v3_yarn", inputs, {"x": rotated}, 2e-6, pairing="interleaved", mscale=mscale)
    # Far positions, with torch's float64 cosine: the float32 table value times the position, exactly.
    positions = torch.tensor([262143, 999999, 1000000])
    x = torch.randn(3, 2, 64)
    inv_freq = 1 / 1e7 ** (torch.arange(32) / 32)
    angle = positions.double()[:, None, None] * inv_freq.double()
    a, b = x.double().chunk(2, dim=-1)
    rotated = torch.cat([a * angle.cos() - b * angle.sin(), b * angle.cos() + a * angle.sin()], dim=-1)
    inputs = {"x": x, "inv_freq": inv_freq, "positions": positions.int()}
    save(folder, "rope", "far_positions", inputs, {"x": rotated.float()}, 1e-6, pairing="half")


def gates(folder):
    a, b = 8 * torch.randn(3, 5, 37), torch.randn(3, 5, 37)
    save(folder, "swiglu", "torch", {"gate": a, "up": b}, {"out": torch.nn.functional.silu(a) * b}, 1e-6)
    save(folder, "sigmoid_gate", "torch", {"x": b, "gate": a}, {"out": b * a.sigmoid()}, 1e-6)
    a, b = a.bfloat16(), b.bfloat16()
    save(folder, "add", "torch_bf16", {"a": a, "b": b}, {"out": a + b}, 0)


def route_softmax(folder):
    logits = 2 * torch.randn(9, 128)
    for normalize in (0, 1):
        config = qwen_next.Qwen3NextConfig(
            num_experts=128, num_experts_per_tok=8, hidden_size=128, norm_topk_prob=bool(normalize))
        router = qwen_next.Qwen3NextTopKRouter(config)
        router.weight.data = torch.eye(128)  # the hidden states are the logits
        given, weights, experts = router(logits)
        expected = {"experts": experts.int(), "weights": weights}
        case = "qwen3_next_normalized" if normalize else "qwen3_next"
        save(folder, "route_softmax", case, {"logits": given}, expected, 1e-6, k=8, normalize=normalize)


def route_sigmoid(folder):
    config = deepseek.DeepseekV3Config(
        hidden_size=64, n_routed_experts=64, num_experts_per_tok=6, n_group=8, topk_group=3, norm_topk_prob=True,
        routed_scaling_factor=2.5)
    router = deepseek.DeepseekV3TopkRouter(config)
    router.weight.data = torch.eye(64)
    logits = torch.randn(9, 64)
    # The second bias makes every score negative: experts outside the best groups must still lose.
    for case, bias in {"deepseek_v3": 0.2 * torch.randn(64), "negative_scores": 0.2 * torch.randn(64) - 2}.items():
        router.e_score_correction_bias = bias
        given, weights, experts = router(logits)
        # The layer does not define the order of the chosen experts; the op sorts them by descending score.
        order = (given.sigmoid() + bias).gather(1, experts).argsort(dim=-1, descending=True)
        expected = {"experts": experts.gather(1, order).int(), "weights": weights.gather(1, order)}
        attributes = {"k": 6, "groups": 8, "top_groups": 3, "scale": 2.5, "normalize": 1}
        save(folder, "route_sigmoid", case, {"logits": given, "bias": bias}, expected, 1e-6, **attributes)


def moe_combine(folder):
    residual, shared = torch.randn(4, 60), torch.randn(4, 60)
    experts, weights, gate = torch.randn(4, 6, 60), torch.rand(4, 6), 3 * torch.randn(4)
    inputs = {"residual": residual, "expert_out": experts, "weights": weights, "shared_out": shared}
    routed = torch.einsum("tk,tkd->td", weights, experts)
    save(folder, "moe_combine", "torch_plain", inputs, {"out": residual + routed + shared}, 1e-6)
    out = residual + routed + gate.sigmoid()[:, None] * shared
    save(folder, "moe_combine", "torch_gated", inputs | {"shared_gate": gate}, {"out": out}, 1e-6)
    tokens = torch.tensor([3, 0, 3, 2, 3])
    bucket, weights = torch.randn(5, 60), torch.rand(5)
    out = residual.index_add(0, tokens, weights[:, None] * bucket)
    inputs = {"bucket_out": bucket, "token_idx": tokens.int(), "weights": weights, "sum": residual}
    save(folder, "moe_scatter_add", "torch", inputs, {"sum": out}, 1e-6)


def splits(folder):
    x = torch.randn(3, 4, 2 * 20)
    q, gate = x.chunk(2, dim=-1)
    save(folder, "split_q_gate", "torch", {"x": x}, {"q": q, "gate": gate}, 0)
    q_full, kv_pre = torch.randn(3, 4, 24 + 8), torch.randn(3, 40 + 8)
    q_nope, q_pe = q_full.split([24, 8], dim=-1)
    latent, k_pe = kv_pre.split([40, 8], dim=-1)
    expected = {"q_nope": q_nope, "q_pe": q_pe, "kv_latent": latent, "k_pe": k_pe}
    save(folder, "mla_split", "torch", {"q_full": q_full, "kv_pre": kv_pre}, expected, 0, nope=24, rope=8)


def main():
    torch.manual_seed(20250101)
    torch.set_grad_enabled(False)
    folder = pathlib.Path(sys.argv[1])
    for make in (rms_norm, add_rms_norm, gated_rms_norm, qk_l2_norm, rope, gates, route_softmax, route_sigmoid,
                 moe_combine, splits):
        make(folder)


if __name__ == "__main__":
    main()
