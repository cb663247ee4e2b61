"""Goldens of conversions: mlx-lm's results for tiny checkpoints, as a hash of every tensor and the complete config.json.

Run with mlx-lm 0.32.2 and mlx 0.32.4 (CPU):  python tools/golden/convert.py tests/data/convert [NAME...]

The checkpoints themselves are not stored: their values are derived from the tensors' names (see `numbers`), both here
and in the test that reads these files.
"""

import importlib
import json
import pathlib
import struct
import sys
import tempfile

import mlx.core as mx
import mlx_lm.utils
import numpy as np

converter = importlib.import_module("mlx_lm.convert")  # the package has a function of that name

MASK = (1 << 64) - 1
SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1}


def fnv1a(data):
    value = 0xCBF29CE484222325
    for byte in data:
        value = ((value ^ byte) * 0x100000001B3) & MASK
    return value


def numbers(name, dtype, count):
    """SplitMix64 seeded by the name, converted to numbers of moderate size by their bits only."""
    with np.errstate(over="ignore"):
        z = np.uint64(fnv1a(name.encode())) + np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        z = z ^ (z >> np.uint64(31))
    sign, exponent, mantissa = z & np.uint64(1), (z >> np.uint64(1)) & np.uint64(7), (z >> np.uint64(4)) & np.uint64(0x7FFFFF)
    if "scale_inv" in name:
        sign = sign * np.uint64(0)
    if dtype == "F8_E4M3":  # every value but NaN
        low = mantissa & np.uint64(0x7F)
        low = np.where(low == 0x7F, np.uint64(0x7E), low)
        return ((sign << np.uint64(7)) | low).astype(np.uint8)
    if dtype == "F16":
        return ((sign << np.uint64(15)) | ((exponent + np.uint64(8)) << np.uint64(10)) | (mantissa >> np.uint64(13))).astype(np.uint16)
    wide = (sign << np.uint64(31)) | ((exponent + np.uint64(120)) << np.uint64(23)) | mantissa
    return wide.astype(np.uint32) if dtype == "F32" else (wide >> np.uint64(16)).astype(np.uint16)


def write_checkpoint(folder, case):
    header, data = {}, b""
    for name, dtype, shape in case["tensors"]:
        raw = numbers(name, dtype, int(np.prod(shape))).tobytes()
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text + data)
    (folder / "config.json").write_text(json.dumps(case["config"]))
    if "generation" in case:
        (folder / "generation_config.json").write_text(json.dumps(case["generation"]))


# name -> its tensors as [name, dtype, shape]; `plain` is the type of all tensors without a specific one.

def mlp(prefix, hidden, size, plain):
    return [[prefix + "gate_proj.weight", plain, [size, hidden]], [prefix + "up_proj.weight", plain, [size, hidden]],
            [prefix + "down_proj.weight", plain, [hidden, size]]]


def norms(prefix, hidden, plain):
    return [[prefix + name + ".weight", plain, [hidden]] for name in ("input_layernorm", "post_attention_layernorm")]


def ends(body, hidden, vocab, plain, tied=False):
    head = [] if tied else [["lm_head.weight", plain, [vocab, hidden]]]
    return [[body + "embed_tokens.weight", plain, [vocab, hidden]], [body + "norm.weight", plain, [hidden]]] + head


def attention(prefix, hidden, heads, kv_heads, size, plain, gated):
    q = heads * size * (2 if gated else 1)
    return [[prefix + "q_proj.weight", plain, [q, hidden]], [prefix + "k_proj.weight", plain, [kv_heads * size, hidden]],
            [prefix + "v_proj.weight", plain, [kv_heads * size, hidden]],
            [prefix + "o_proj.weight", plain, [hidden, heads * size]],
            [prefix + "q_norm.weight", plain, [size]], [prefix + "k_norm.weight", plain, [size]]]


def delta_net(prefix, c, plain, exact, fused):
    hidden, k = c["hidden_size"], c["linear_num_key_heads"] * c["linear_key_head_dim"]
    heads = c["linear_num_value_heads"]
    v = heads * c["linear_value_head_dim"]
    rows = ({"in_proj_qkvz": 2 * k + 2 * v, "in_proj_ba": 2 * heads} if fused else
            {"in_proj_qkv": 2 * k + v, "in_proj_z": v, "in_proj_b": heads, "in_proj_a": heads})
    return [[prefix + name + ".weight", plain, [count, hidden]] for name, count in rows.items()] + [
        [prefix + "conv1d.weight", plain, [2 * k + v, 1, 4]], [prefix + "A_log", exact, [heads]],
        [prefix + "dt_bias", plain, [heads]], [prefix + "norm.weight", exact, [c["linear_value_head_dim"]]],
        [prefix + "out_proj.weight", plain, [hidden, v]]]


def experts(prefix, hidden, size, count, plain):
    return [tensor for e in range(count) for tensor in mlp(f"{prefix}experts.{e}.", hidden, size, plain)]


def qwen_hybrid(c, body, plain, exact, fused):
    tensors = ends(body, c["hidden_size"], c["vocab_size"], plain, c.get("tie_word_embeddings", False))
    hidden = c["hidden_size"]
    for i in range(c["num_hidden_layers"]):
        layer = f"{body}layers.{i}."
        tensors += norms(layer, hidden, plain)
        if (i + 1) % c["full_attention_interval"]:
            tensors += delta_net(layer + "linear_attn.", c, plain, exact, fused)
        else:
            tensors += attention(layer + "self_attn.", hidden, c["num_attention_heads"], c["num_key_value_heads"],
                                 c["head_dim"], plain, True)
        if "num_experts" not in c:
            tensors += mlp(layer + "mlp.", hidden, c["intermediate_size"], plain)
            continue
        size, count = c["moe_intermediate_size"], c["num_experts"]
        tensors += [[layer + "mlp.gate.weight", plain, [count, hidden]],
                    [layer + "mlp.shared_expert_gate.weight", plain, [1, hidden]]]
        tensors += mlp(layer + "mlp.shared_expert.", hidden, c["shared_expert_intermediate_size"], plain)
        tensors += experts(layer + "mlp.", hidden, size, count, plain) if fused else [
            [layer + "mlp.experts.gate_up_proj", plain, [count, 2 * size, hidden]],
            [layer + "mlp.experts.down_proj", plain, [count, hidden, size]]]
    return tensors


HYBRID = dict(hidden_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=1, head_dim=32,
              linear_num_key_heads=1, linear_num_value_heads=2, linear_key_head_dim=32, linear_value_head_dim=32,
              linear_conv_kernel_dim=4, full_attention_interval=2, vocab_size=48, rms_norm_eps=1e-6,
              max_position_embeddings=512)
EXPERTS = dict(num_experts=3, num_experts_per_tok=2, moe_intermediate_size=32, shared_expert_intermediate_size=64,
               norm_topk_prob=True, decoder_sparse_step=1)


def qwen3_5_moe():
    text = HYBRID | EXPERTS | dict(model_type="qwen3_5_moe_text", dtype="bfloat16", tie_word_embeddings=False)
    tensors = qwen_hybrid(text, "model.language_model.", "BF16", "F32", False)
    tensors += [["model.visual.patch_embed.proj.weight", "BF16", [8, 3, 2, 2, 2]], ["mtp.fc.weight", "BF16", [64, 128]],
                ["mtp.layers.0.input_layernorm.weight", "BF16", [64]]]
    config = dict(model_type="qwen3_5_moe", architectures=["Qwen3_5MoeForConditionalGeneration"], text_config=text,
                  vision_config={"depth": 1}, image_token_id=47, _name_or_path="here", eos_token_id=3)
    runs = [dict(bits=4, group_size=64), dict(bits=3, group_size=32), dict(bits=8, group_size=128),
            dict(bits=6, group_size=64, dtype="float16"), dict(quantize=False), dict(quantize=False, dtype="float32")]
    return dict(config=config, generation={"eos_token_id": [3, 5]}, tensors=tensors, runs=runs)


def qwen3_5():
    text = HYBRID | dict(model_type="qwen3_5_text", hidden_size=96, intermediate_size=128, tie_word_embeddings=True)
    return dict(config=dict(model_type="qwen3_5", text_config=text),
                tensors=qwen_hybrid(text, "model.language_model.", "F32", "F32", False),
                runs=[dict(bits=5, group_size=64), dict(bits=2, group_size=32), dict(bits=4, group_size=32, dtype="bfloat16")])


def qwen3_next():
    config = HYBRID | EXPERTS | dict(
        model_type="qwen3_next", torch_dtype="bfloat16", tie_word_embeddings=False, intermediate_size=64,
        mlp_only_layers=[], rope_theta=1e7, partial_rotary_factor=0.25)
    tensors = qwen_hybrid(config, "model.", "F16", "F32", True) + [["mtp.fc.weight", "F16", [64, 128]]]
    return dict(config=config, tensors=tensors, runs=[dict(bits=4, group_size=64), dict(bits=6, group_size=64)])


def qwen3_moe():
    config = dict(model_type="qwen3_moe", torch_dtype="bfloat16", hidden_size=64, num_hidden_layers=11,
                  num_attention_heads=1, num_key_value_heads=1, head_dim=64, intermediate_size=64, num_experts=2,
                  num_experts_per_tok=1, decoder_sparse_step=1, mlp_only_layers=[2], moe_intermediate_size=64,
                  rms_norm_eps=1e-6, vocab_size=40, rope_theta=1e6, tie_word_embeddings=False,
                  max_position_embeddings=512, norm_topk_prob=True)
    tensors = ends("model.", 64, 40, "BF16")
    for i in range(11):
        layer = f"model.layers.{i}."
        tensors += norms(layer, 64, "BF16") + attention(layer + "self_attn.", 64, 1, 1, 64, "BF16", False)
        if i == 2:
            tensors += mlp(layer + "mlp.", 64, 64, "BF16")
        else:
            tensors += [[layer + "mlp.gate.weight", "BF16", [2, 64]]] + experts(layer + "mlp.", 64, 64, 2, "BF16")
    mixed = [dict(bits=4, group_size=64, mixed=recipe) for recipe in converter.QUANT_RECIPES]
    return dict(config=config, tensors=tensors, runs=[dict(bits=4, group_size=64)] + mixed)


def deepseek_layer(c, layer, dense, plain):
    """`plain`: F8_E4M3 for the tensors that the published files store in blocks."""
    hidden, heads, nope, value = c["hidden_size"], c["num_attention_heads"], c["qk_nope_head_dim"], c["v_head_dim"]
    attn, rank = layer + "self_attn.", c["kv_lora_rank"]
    matrices = [[attn + "kv_a_proj_with_mqa", [rank + c["qk_rope_head_dim"], hidden]],
                [attn + "kv_b_proj", [heads * (nope + value), rank]], [attn + "o_proj", [hidden, heads * value]]]
    other = norms(layer, hidden, "BF16") + [[attn + "kv_a_layernorm.weight", "BF16", [rank]]]
    q = heads * (nope + c["qk_rope_head_dim"])
    if c["q_lora_rank"]:
        matrices += [[attn + "q_a_proj", [c["q_lora_rank"], hidden]], [attn + "q_b_proj", [q, c["q_lora_rank"]]]]
        other.append([attn + "q_a_layernorm.weight", "BF16", [c["q_lora_rank"]]])
    else:
        matrices.append([attn + "q_proj", [q, hidden]])
    if c["attention_bias"]:
        other += [[attn + "kv_a_proj_with_mqa.bias", "BF16", [rank + c["qk_rope_head_dim"]]],
                  [attn + "o_proj.bias", "BF16", [hidden]]]
        other += [[attn + "q_a_proj.bias", "BF16", [c["q_lora_rank"]]]] if c["q_lora_rank"] else []
    parts = [("mlp.", c["intermediate_size"])] if dense else [("mlp.shared_experts.", c["moe_intermediate_size"])] + [
        (f"mlp.experts.{e}.", c["moe_intermediate_size"]) for e in range(c["n_routed_experts"])]
    for part, size in parts:
        matrices += [[name.removesuffix(".weight"), shape] for name, _, shape in mlp(layer + part, hidden, size, plain)]
    if not dense:
        other += [[layer + "mlp.gate.weight", "BF16", [c["n_routed_experts"], hidden]],
                  [layer + "mlp.gate.e_score_correction_bias", "F32", [c["n_routed_experts"]]]]
    for name, shape in matrices:
        other.append([name + ".weight", plain, shape])
        if plain == "F8_E4M3":
            other.append([name + ".weight_scale_inv", "F32", [-(-size // 128) for size in shape]])
    return other


def deepseek(plain, **more):
    config = dict(model_type="deepseek_v3", torch_dtype="bfloat16", hidden_size=192, num_hidden_layers=2,
                  num_attention_heads=2, num_key_value_heads=2, q_lora_rank=64, kv_lora_rank=64, qk_nope_head_dim=64,
                  qk_rope_head_dim=32, v_head_dim=96, intermediate_size=160, moe_intermediate_size=64,
                  n_routed_experts=4, n_shared_experts=1, num_experts_per_tok=2, n_group=2, topk_group=1,
                  first_k_dense_replace=1, moe_layer_freq=1, norm_topk_prob=True, routed_scaling_factor=2.5,
                  rope_theta=1e4, rope_scaling=None, max_position_embeddings=512, vocab_size=40, rms_norm_eps=1e-6,
                  attention_bias=False) | more
    tensors = ends("model.", 192, 40, "BF16")
    for i in (0, 1, 61):
        tensors += deepseek_layer(config, f"model.layers.{i}.", i == 0, plain)
    tensors += [["model.layers.61.eh_proj.weight", "BF16", [192, 384]],
                ["model.layers.0.self_attn.rotary_emb.inv_freq", "F32", [16]]]
    return dict(config=config, tensors=tensors)


def deepseek_v3_fp8():
    blocks = dict(quant_method="fp8", fmt="e4m3", weight_block_size=[128, 128], activation_scheme="dynamic")
    case = deepseek("F8_E4M3", quantization_config=blocks, intermediate_size=160)
    return case | dict(runs=[dict(bits=4, group_size=64), dict(bits=4, group_size=32), dict(bits=8, group_size=32, dtype="float32"),
                             dict(quantize=False)])


def deepseek_v3():
    case = deepseek("BF16", q_lora_rank=None, attention_bias=True, qk_nope_head_dim=48)
    return case | dict(runs=[dict(bits=4, group_size=64), dict(bits=4, group_size=32, mixed="mixed_3_6")])


CASES = [qwen3_5_moe, qwen3_5, qwen3_next, qwen3_moe, deepseek_v3_fp8, deepseek_v3]


class NoTokenizer:
    def save_pretrained(self, folder):
        pass


def convert(source, target, run):
    """The unmodified mlx_lm.convert, on a folder without a tokenizer and without a model card."""
    def load(path, **_):
        model, config = mlx_lm.utils.load_model(pathlib.Path(path), lazy=True)
        return model, NoTokenizer(), config

    converter.load = load
    mlx_lm.utils.create_model_card = lambda *_: None
    quantize = run.get("quantize", True)
    converter.convert(str(source), str(target), quantize=quantize, q_group_size=run.get("group_size"),
                      q_bits=run.get("bits"), dtype=run.get("dtype"), quant_predicate=run.get("mixed"))


NAMES = {mx.bfloat16: "BF16", mx.float16: "F16", mx.float32: "F32", mx.uint32: "U32"}


def result(folder):
    tensors = []
    for name, value in sorted(mx.load(str(folder / "model.safetensors")).items()):
        raw = bytes(np.array(value.view(mx.uint8)).reshape(-1))
        tensors.append(f"{name} {NAMES[value.dtype]} {','.join(map(str, value.shape))} {fnv1a(raw):016x}")
    return {"config": json.loads((folder / "config.json").read_text()), "tensors": tensors}


def main():
    root = pathlib.Path(sys.argv[1])
    for make in CASES:
        if sys.argv[2:] and make.__name__ not in sys.argv[2:]:
            continue
        case = make()
        with tempfile.TemporaryDirectory() as scratch:
            source = pathlib.Path(scratch) / "in"
            source.mkdir()
            write_checkpoint(source, case)
            for i, run in enumerate(case["runs"]):
                target = pathlib.Path(scratch) / str(i)
                convert(source, target, run)
                run["expect"] = result(target)
        lines = json.dumps(case, indent=0, separators=(",", ":"))
        (root / f"{make.__name__}.json").write_text(lines + "\n")


if __name__ == "__main__":
    main()
