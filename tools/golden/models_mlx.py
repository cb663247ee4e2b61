"""Goldens of quantised models: tiny random checkpoints quantised and written by mlx-lm, and the logits it computes.

Run with mlx-lm 0.32.2, mlx 0.32.4 (CPU), transformers 5.22.2 and torch 2.13.0:
python tools/golden/models_mlx.py tests/data/models [NAME...]

Every folder is read back from disk; logits are one prefill on the CPU in float32 without a cache. A seed is kept only
if transformers, given the dequantised weights, agrees within AGREE and both choose the same greedy continuation.
The printed columns are the distance of mlx-lm from transformers (dense: before quantisation), and from itself step by step.
"""

import json
import pathlib
import shutil
import sys
import tempfile

import mlx.core as mx
import numpy as np
import torch
import transformers
from mlx.utils import tree_flatten, tree_map, tree_map_with_path
from mlx_lm.convert import mixed_quant_predicate_builder
from mlx_lm.models.cache import make_prompt_cache
from mlx_lm.utils import load_model, quantize_model, save_config, save_model

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import models as golden

AGREE = 2e-3  # maximum difference of the logits of mlx-lm and transformers

QWEN35 = golden.QWEN35 | dict(
    vocab_size=128, num_attention_heads=4, num_key_value_heads=1, head_dim=32, linear_num_key_heads=1,
    linear_num_value_heads=2, linear_key_head_dim=32, linear_value_head_dim=32,
    rope_parameters=golden.rope(1e7, partial_rotary_factor=0.25, **golden.MROPE))
QWEN35_MOE = QWEN35 | dict(hidden_size=64, num_hidden_layers=4, num_experts=3, num_experts_per_tok=2,
                           moe_intermediate_size=64, shared_expert_intermediate_size=64)
TWO_LAYERS = dict(num_hidden_layers=2, full_attention_interval=2)
QWEN35_WIDE = QWEN35_MOE | TWO_LAYERS | dict(hidden_size=128)
QWEN35_DENSE = QWEN35 | dict(hidden_size=64, num_hidden_layers=5, intermediate_size=128, tie_word_embeddings=True)
QWEN3_NEXT = QWEN35_MOE | dict(linear_num_key_heads=2, linear_num_value_heads=4, num_experts=4,
                               norm_topk_prob=True, intermediate_size=64,
                               rope_parameters=golden.rope(1e7, partial_rotary_factor=0.25))
QWEN3_MOE = dict(
    vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, head_dim=32,
    intermediate_size=64, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=64, norm_topk_prob=True,
    max_position_embeddings=1024, rope_parameters=golden.rope(1e6))
DEEPSEEK = dict(
    vocab_size=128, hidden_size=64, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2,
    q_lora_rank=64, kv_lora_rank=128, qk_nope_head_dim=64, qk_rope_head_dim=32, v_head_dim=64,
    intermediate_size=64, moe_intermediate_size=64, n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=3,
    n_group=4, topk_group=2, first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=2.5,
    max_position_embeddings=1024, rope_parameters={
        "rope_type": "yarn", "rope_theta": 1e4, "factor": 16.0, "original_max_position_embeddings": 64,
        "beta_fast": 4.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0})

# name: (class, arguments of its config, quantisation)
CHECKPOINTS = {
    "mlx-qwen3_5_moe-4bit": ("Qwen3_5Moe", QWEN35_MOE, {}),
    "mlx-qwen3_5_moe-4bit-bf16": ("Qwen3_5Moe", QWEN35_WIDE, {"dtype": mx.bfloat16}),
    "mlx-qwen3_5_moe-mixed_3_6": ("Qwen3_5Moe", QWEN35_MOE | TWO_LAYERS, {"recipe": "mixed_3_6"}),
    "mlx-qwen3_5_moe-mxfp4": ("Qwen3_5Moe", QWEN35_MOE | TWO_LAYERS, {"mode": "mxfp4"}),
    "mlx-qwen3_5-4bit": ("Qwen3_5", QWEN35_DENSE, {}),
    "mlx-qwen3_5-5bit-g32": ("Qwen3_5", QWEN35_DENSE | TWO_LAYERS, {"bits": 5, "group_size": 32}),
    "mlx-qwen3_next-4bit": ("Qwen3Next", QWEN3_NEXT | TWO_LAYERS, {}),
    "mlx-qwen3_next-nvfp4": ("Qwen3Next", QWEN3_NEXT | TWO_LAYERS, {"mode": "nvfp4"}),
    "mlx-qwen3_moe-4bit": ("Qwen3Moe", QWEN3_MOE, {}),
    "mlx-qwen3_moe-2bit-g128": ("Qwen3Moe", QWEN3_MOE | dict(hidden_size=128, moe_intermediate_size=128, num_experts=3),
                                {"bits": 2, "group_size": 128}),
    "mlx-qwen3_moe-mxfp8": ("Qwen3Moe", QWEN3_MOE | dict(num_experts=3), {"mode": "mxfp8"}),
    "mlx-deepseek_v3-4bit": ("DeepseekV3", DEEPSEEK, {}),
    "mlx-deepseek_v3-4bit-kv_b": ("DeepseekV3", DEEPSEEK, {"kv_b": True}),
    "mlx-deepseek_v3-mixed_4_6": ("DeepseekV3", DEEPSEEK | dict(q_lora_rank=None), {"recipe": "mixed_4_6"}),
}


def publish_config(folder, arguments):
    """Writes the published keys, the only ones that mlx-lm reads."""
    path = folder / "config.json"
    config = json.loads(path.read_text())
    if config["model_type"] == "deepseek_v3":
        config = golden.old_deepseek_config(config)
    elif "text_config" not in config:
        rope = config.pop("rope_parameters")
        config |= {key: rope[key] for key in ("rope_theta", "partial_rotary_factor") if key in rope}
        config["num_experts"] = config.pop("num_local_experts", arguments["num_experts"])
    if interval := arguments.get("full_attention_interval"):
        config.get("text_config", config)["full_attention_interval"] = interval
    path.write_text(json.dumps(config, indent=2))


def write_source(folder, family, arguments, seed):
    wrapped = family.startswith("Qwen3_5")
    torch.manual_seed(seed)
    # mlx-lm masks dropped groups of experts with 0, transformers with -inf, which is equivalent if every bias is positive.
    golden.store(golden.build(family, arguments, seed, wrapped, positive_bias=True), folder, wrapped=wrapped)
    publish_config(folder, arguments)
    return golden.load(folder)


def convert(source, folder, dtype=mx.float32, bits=None, group_size=None, mode="affine", recipe=None, kv_b=False):
    """mlx_lm.convert without the tokenizer that it requires."""
    model, config = load_model(source, lazy=True)
    keeps = getattr(model, "cast_predicate", lambda _: True)
    model.update(tree_map_with_path(lambda k, v: v.astype(dtype) if keeps(k) else v, model.parameters()))
    predicate = mixed_quant_predicate_builder(recipe, model, 64) if recipe else None
    if kv_b:
        latent = {p: dense(m) for p, m in model.named_modules() if p.endswith(("embed_q", "unembed_out"))}
    model, config = quantize_model(model, config, group_size, bits, mode=mode, quant_predicate=predicate)
    save_model(folder, model)
    if kv_b:
        unsplit_latent(folder, latent)
        del config["quantization"]["mode"]
    save_config(config, folder / "config.json")


def unsplit_latent(folder, latent):
    """The layout before mlx-lm split `kv_b_proj` by head: one matrix, quantised along the latent axis."""
    weights = {k: v for k, v in mx.load(str(folder / "model.safetensors")).items()
               if ".embed_q." not in k and ".unembed_out." not in k}
    for path in [p.removesuffix(".embed_q") for p in latent if p.endswith("embed_q")]:
        joined = join_heads(latent[path + ".embed_q"], latent[path + ".unembed_out"])
        for part, value in zip(("weight", "scales", "biases"), mx.quantize(mx.array(joined), 64, 4)):
            weights[f"{path}.kv_b_proj.{part}"] = value
    mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    index = json.loads((folder / "model.safetensors.index.json").read_text())
    index["metadata"]["total_size"] = sum(v.nbytes for v in weights.values())
    index["weight_map"] = {k: "model.safetensors" for k in sorted(weights)}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index, indent=4))


def join_heads(embed_q, unembed_out):
    return np.concatenate([embed_q.swapaxes(-1, -2), unembed_out], axis=1).reshape(-1, embed_q.shape[1])


def load(folder):
    """Loads with mlx-lm, then converts everything that is not packed to float32. A `kv_b_proj` is dequantised first, because
    mlx-lm would quantise it a second time and so change its values."""
    with tempfile.TemporaryDirectory() as scratch:
        scratch = pathlib.Path(scratch)
        weights = mx.load(str(folder / "model.safetensors"))
        for path in [k.removesuffix(".weight") for k in weights if k.endswith("kv_b_proj.weight")]:
            parts = [weights.pop(f"{path}.{part}") for part in ("weight", "scales", "biases")]
            weights[path + ".weight"] = mx.dequantize(*parts, group_size=64, bits=4)
        mx.save_safetensors(str(scratch / "model.safetensors"), weights, metadata={"format": "mlx"})
        shutil.copy(folder / "config.json", scratch)
        model, _ = load_model(scratch)
    upcast = lambda v: v.astype(mx.float32) if mx.issubdtype(v.dtype, mx.floating) else v
    model.update(tree_map(upcast, model.parameters()))
    return model


def logits_of(model, tokens):
    return np.array(model(mx.array(tokens)[None])[0])


def continue_greedily(model, tokens):
    cache, chosen, rows, ids = make_prompt_cache(model), [], [], mx.array(tokens)[None]
    for _ in range(golden.GREEDY):
        rows.append(np.array(model(ids, cache=cache)[0, -1]))
        chosen.append(int(rows[-1].argmax()))
        ids = mx.array([[chosen[-1]]])
    best = np.sort(np.stack(rows), axis=-1)
    return np.array(chosen, np.int32), float((best[:, -1] - best[:, -2]).min()), np.stack(rows)


def dense(module):
    if "scales" not in module:
        return np.array(module.weight)
    return np.array(mx.dequantize(module.weight, module.scales, module.get("biases"), group_size=module.group_size,
                                  bits=module.bits, mode=module.mode).astype(mx.float32))


@torch.no_grad()
def dequantise_into(reference, model):
    """Gives a transformers model the weights that the mlx-lm model computes with."""
    weights = {k: np.array(v) for k, v in tree_flatten(model.parameters())}
    weights |= {f"{path}.weight": dense(m) for path, m in model.named_modules() if "weight" in m}
    zero_centred = reference.config.model_type.startswith(golden.ZERO_CENTRED)
    wrapped = "language_model." if any(k.startswith("language_model.") for k in weights) else ""
    for name, tensor in reference.state_dict().items():
        key = wrapped + name.replace("model.language_model.", "model.")
        if name.startswith("model.visual.") or (name == "lm_head.weight" and key not in weights):
            continue
        path = key.rsplit(".", 1)[0].replace(".experts", ".switch_mlp")
        if key.endswith("experts.gate_up_proj"):
            value = np.concatenate([weights[f"{path}.{p}_proj.weight"] for p in ("gate", "up")], axis=1)
        elif key.endswith("experts.down_proj"):
            value = weights[path + ".down_proj.weight"]
        elif key.endswith("kv_b_proj.weight"):
            path = path.removesuffix(".kv_b_proj")
            value = join_heads(weights[path + ".embed_q.weight"], weights[path + ".unembed_out.weight"])
        else:
            value = weights[key].swapaxes(1, 2) if key.endswith("conv1d.weight") else weights[key]
            if zero_centred and key.endswith("norm.weight") and "linear_attn.norm" not in key:
                value = value - 1
        assert value.shape == tuple(tensor.shape), (name, value.shape, tensor.shape)
        tensor.copy_(torch.tensor(value))


def make(folder, family, arguments, recipe):
    for seed in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        with tempfile.TemporaryDirectory() as source:
            source = pathlib.Path(source)
            reference = write_source(source, family, arguments, seed)
            convert(source, folder, **recipe)
            tokens = golden.random_tokens(arguments["vocab_size"], seed)
            unquantised = logits_of(load_model(source)[0], tokens)
            apart_dense = np.abs(unquantised - golden.logits_of(reference, tokens).numpy()).max()
        model = load(folder)
        greedy, margin, steps = continue_greedily(model, tokens)
        everything = np.concatenate([tokens, greedy])
        logits = logits_of(model, everything)
        stepping = np.abs(logits[golden.TOKENS - 1 : -1] - steps).max()
        dequantise_into(reference, model)
        theirs = golden.logits_of(reference, everything).numpy()
        apart = np.abs(logits - theirs).max()
        same = (theirs[golden.TOKENS - 1 : -1].argmax(-1) == greedy).all()
        moved = golden.shaken(reference, everything, torch.tensor(theirs))
        distinct = len(set(greedy.tolist()))
        figures = f"{margin:.1e} | {distinct} | {stepping:.1e} | {moved:.1e} | {apart:.1e} | {apart_dense:.1e}"
        if same and apart < AGREE and golden.well_conditioned(margin, moved, distinct):
            break
        print(f"{folder.name}: seed {seed} rejected: {figures}", flush=True)
    else:
        raise SystemExit(f"{folder.name}: no seed of 100 is well conditioned")
    golden.expect(folder, tokens, logits, greedy)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"| {folder.name} | {size // 1024} | {seed} | {logits.std():.1f} | {figures} |", flush=True)


def main():
    mx.set_default_device(mx.cpu)
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    root = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or CHECKPOINTS:
        make(root / name, *CHECKPOINTS[name])


if __name__ == "__main__":
    main()
