"""Goldens of complete models: tiny random checkpoints written by transformers, and the logits it computes from them.

Run with transformers 5.22.2 and torch 2.13.0:  python tools/golden/models.py tests/data/models [NAME...]

Every folder is read back from disk before its logits are taken, in float32, on the CPU, with eager attention. A seed
is kept only if the model is well conditioned on the given tokens: no near tie in the greedy continuation (MARGIN) or
in a router (changing weights by 1e-6 must not change the logits by more than SHAKEN), and a continuation that does not
repeat itself. Prints the rows of the table in tests/data/models/README.md.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import torch
import transformers
from safetensors.torch import load_file, save_file

TOKENS = 200
GREEDY = 64
POSITIONS = [0, 1, 2, 3, 7, 31, 62, 63, 64, 65, 66, 100, 126, 127, 128, 129, 130, 191, 192, 193, 197, 198, 199]
MARGIN = 1e-3  # minimum difference of the best two logits in every greedy step
SHAKEN = 1e-3  # maximum change of the logits when every weight changes by 1e-6 of itself
DISTINCT = 12  # minimum of distinct ids in the greedy continuation
ZERO_CENTRED = ("qwen3_5", "qwen3_next")  # families whose norms multiply by 1 + w

LINEAR, FULL = "linear_attention", "full_attention"


def rope(theta, **more):
    return {"rope_type": "default", "rope_theta": theta} | more


QWEN35 = dict(max_position_embeddings=1024, linear_conv_kernel_dim=4, full_attention_interval=4, attn_output_gate=True,
              mamba_ssm_dtype="float32", eos_token_id=3)
MROPE = dict(mrope_interleaved=True, mrope_section=[2, 1, 1])

# name: (class, arguments of its config, and how it is stored)
CHECKPOINTS = {
    "qwen3_5_moe": ("Qwen3_5Moe", QWEN35 | dict(
        vocab_size=128, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=1, head_dim=32,
        linear_num_key_heads=1, linear_num_value_heads=2, linear_key_head_dim=32, linear_value_head_dim=32,
        num_experts=8, num_experts_per_tok=2, moe_intermediate_size=8, shared_expert_intermediate_size=8,
        rope_parameters=rope(1e7, partial_rotary_factor=0.25, **MROPE)), {}),
    "qwen3_5_moe-wrapped": ("Qwen3_5Moe", QWEN35 | dict(
        vocab_size=144, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=32,
        linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=32, linear_value_head_dim=32,
        num_experts=6, num_experts_per_tok=3, moe_intermediate_size=16, shared_expert_intermediate_size=24,
        mtp_num_hidden_layers=1, mtp_use_dedicated_embeddings=False,
        rope_parameters=rope(1e7, partial_rotary_factor=0.25, **MROPE)),
        {"wrapped": True, "dtype": torch.bfloat16, "float32": ("A_log", "linear_attn.norm.weight")}),
    "qwen3_5_moe-irregular": ("Qwen3_5Moe", QWEN35 | dict(
        vocab_size=131, hidden_size=24, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=1, head_dim=16,
        linear_num_key_heads=1, linear_num_value_heads=1, linear_key_head_dim=32, linear_value_head_dim=64,
        num_experts=5, num_experts_per_tok=3, moe_intermediate_size=12, shared_expert_intermediate_size=20,
        layer_types=[FULL, LINEAR, LINEAR, FULL], tie_word_embeddings=True,
        rope_parameters=rope(1e5, partial_rotary_factor=0.5, **MROPE)), {}),
    "qwen3_5": ("Qwen3_5", QWEN35 | dict(
        vocab_size=128, hidden_size=32, num_hidden_layers=5, num_attention_heads=4, num_key_value_heads=4, head_dim=32,
        linear_num_key_heads=1, linear_num_value_heads=3, linear_key_head_dim=32, linear_value_head_dim=32,
        intermediate_size=40, tie_word_embeddings=True,
        rope_parameters=rope(1e7, partial_rotary_factor=0.25, **MROPE)), {}),
    "qwen3_5-irregular": ("Qwen3_5", QWEN35 | dict(
        vocab_size=152, hidden_size=48, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=2, head_dim=24,
        linear_num_key_heads=2, linear_num_value_heads=2, linear_key_head_dim=64, linear_value_head_dim=32,
        intermediate_size=56, layer_types=[LINEAR, FULL, FULL, LINEAR],
        rope_parameters=rope(1e4, partial_rotary_factor=0.5, mrope_interleaved=True, mrope_section=[2, 2, 2])),
        {"dtype": torch.bfloat16}),
    "qwen3_next": ("Qwen3Next", dict(
        vocab_size=128, hidden_size=32, num_hidden_layers=4, num_attention_heads=4, num_key_value_heads=1, head_dim=32,
        linear_num_key_heads=2, linear_num_value_heads=4, linear_key_head_dim=32, linear_value_head_dim=32,
        intermediate_size=64, num_experts=6, num_experts_per_tok=3, moe_intermediate_size=8,
        shared_expert_intermediate_size=16, norm_topk_prob=True, max_position_embeddings=1024,
        rope_parameters=rope(1e7, partial_rotary_factor=0.25)), {}),
    "qwen3_next-irregular": ("Qwen3Next", dict(
        vocab_size=136, hidden_size=48, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=1, head_dim=16,
        linear_num_key_heads=3, linear_num_value_heads=3, linear_key_head_dim=32, linear_value_head_dim=32,
        intermediate_size=56, num_experts=7, num_experts_per_tok=2, moe_intermediate_size=16,
        shared_expert_intermediate_size=24, norm_topk_prob=False, mlp_only_layers=[1], max_position_embeddings=1024,
        layer_types=[LINEAR, FULL, FULL, LINEAR], tie_word_embeddings=True,
        rope_parameters=rope(5e6, partial_rotary_factor=1.0)), {"dtype": torch.bfloat16}),
    "qwen3_moe": ("Qwen3Moe", dict(
        vocab_size=160, hidden_size=48, num_hidden_layers=2, num_attention_heads=4, num_key_value_heads=1, head_dim=32,
        intermediate_size=96, num_experts=8, num_experts_per_tok=2, moe_intermediate_size=16, norm_topk_prob=True,
        max_position_embeddings=1024, rope_parameters=rope(1e6)), {}),
    "qwen3_moe-odd": ("Qwen3Moe", dict(
        vocab_size=145, hidden_size=96, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=6, head_dim=16,
        intermediate_size=72, num_experts=4, num_experts_per_tok=3, moe_intermediate_size=40, norm_topk_prob=False,
        mlp_only_layers=[0], tie_word_embeddings=True, max_position_embeddings=1024, rope_parameters=rope(1e4)),
        {"dtype": torch.bfloat16, "shard": "100KB"}),
    "qwen3_moe-yarn": ("Qwen3Moe", dict(
        vocab_size=128, hidden_size=32, num_hidden_layers=2, num_attention_heads=8, num_key_value_heads=1, head_dim=32,
        intermediate_size=64, num_experts=4, num_experts_per_tok=1, moe_intermediate_size=24, norm_topk_prob=True,
        max_position_embeddings=1024, rope_parameters={
            "rope_type": "yarn", "rope_theta": 1e4, "factor": 4.0, "original_max_position_embeddings": 256}),
        {"dtype": torch.bfloat16}),
    "deepseek_v3": ("DeepseekV3", dict(
        vocab_size=128, hidden_size=40, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
        q_lora_rank=40, kv_lora_rank=32, qk_nope_head_dim=16, qk_rope_head_dim=16, v_head_dim=16,
        intermediate_size=56, moe_intermediate_size=12, n_routed_experts=8, n_shared_experts=1, num_experts_per_tok=3,
        n_group=4, topk_group=2, first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=2.5,
        max_position_embeddings=1024, rope_parameters={
            "rope_type": "yarn", "rope_theta": 1e4, "factor": 16.0, "original_max_position_embeddings": 256,
            "beta_fast": 4.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0}), {}),
    "deepseek_v3-plain": ("DeepseekV3", dict(
        vocab_size=139, hidden_size=40, num_hidden_layers=3, num_attention_heads=3, num_key_value_heads=3,
        q_lora_rank=None, kv_lora_rank=24, qk_nope_head_dim=24, qk_rope_head_dim=8, v_head_dim=16,
        intermediate_size=56, moe_intermediate_size=12, n_routed_experts=6, n_shared_experts=2, num_experts_per_tok=2,
        n_group=1, topk_group=1, first_k_dense_replace=0, norm_topk_prob=False, routed_scaling_factor=1.0,
        max_position_embeddings=1024, rope_parameters=rope(1e4)), {"dtype": torch.bfloat16}),
    "deepseek_v3-old": ("DeepseekV3", dict(
        vocab_size=128, hidden_size=48, num_hidden_layers=3, num_attention_heads=4, num_key_value_heads=4,
        q_lora_rank=56, kv_lora_rank=40, qk_nope_head_dim=16, qk_rope_head_dim=32, v_head_dim=24,
        intermediate_size=72, moe_intermediate_size=16, n_routed_experts=9, n_shared_experts=1, num_experts_per_tok=4,
        n_group=3, topk_group=2, first_k_dense_replace=1, norm_topk_prob=True, routed_scaling_factor=1.5,
        max_position_embeddings=2048, rope_parameters={
            "rope_type": "yarn", "rope_theta": 1e4, "factor": 8.0, "original_max_position_embeddings": 256,
            "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 0.707, "mscale_all_dim": 1.0}),
        {"dtype": torch.bfloat16, "old_config": True, "float32": ("e_score_correction_bias",)}),
    # Kinds of layers that a config describes but the model does not have.
    "qwen3_5_moe-all_full": ("Qwen3_5Moe", QWEN35 | dict(
        vocab_size=97, hidden_size=40, num_hidden_layers=2, num_attention_heads=3, num_key_value_heads=1, head_dim=24,
        linear_num_key_heads=1, linear_num_value_heads=2, linear_key_head_dim=32, linear_value_head_dim=32,
        num_experts=3, num_experts_per_tok=2, moe_intermediate_size=12, shared_expert_intermediate_size=8,
        layer_types=[FULL, FULL], tie_word_embeddings=True,
        rope_parameters=rope(1e6, partial_rotary_factor=0.75, mrope_interleaved=True, mrope_section=[3, 3, 3])),
        {"dtype": torch.bfloat16, "own_head": True}),
    "qwen3_next-dense": ("Qwen3Next", dict(
        vocab_size=97, hidden_size=24, num_hidden_layers=2, num_attention_heads=2, num_key_value_heads=2, head_dim=16,
        linear_num_key_heads=1, linear_num_value_heads=3, linear_key_head_dim=32, linear_value_head_dim=32,
        linear_conv_kernel_dim=3, intermediate_size=36, decoder_sparse_step=3, layer_types=[LINEAR, FULL],
        max_position_embeddings=512, rms_norm_eps=1e-5, rope_parameters={
            "rope_type": "yarn", "rope_theta": 1e5, "factor": 2.0, "original_max_position_embeddings": 256,
            "partial_rotary_factor": 0.5}), {"dtype": torch.bfloat16}),
    "deepseek_v3-dense": ("DeepseekV3", dict(
        vocab_size=97, hidden_size=40, num_hidden_layers=2, num_attention_heads=1, num_key_value_heads=1,
        q_lora_rank=None, kv_lora_rank=24, qk_nope_head_dim=8, qk_rope_head_dim=12, v_head_dim=20,
        intermediate_size=36, first_k_dense_replace=9, max_position_embeddings=512, rope_interleave=False,
        rope_parameters=rope(5e5)), {"dtype": torch.bfloat16}),
}


def initial(name, shape, zero_centred, tied, positive_bias, generator):
    """One random tensor, scaled so that every part of the model matters to the logits."""
    noise = torch.randn(shape, generator=generator)
    if name.endswith("A_log"):
        return torch.log(0.02 + 3 * torch.rand(shape, generator=generator))
    if name.endswith("dt_bias"):
        return noise - 1
    if name.endswith("e_score_correction_bias"):
        return 0.2 * noise.abs() if positive_bias else 0.2 * noise
    if name.endswith("conv1d.weight"):
        return 0.6 * noise
    if len(shape) == 1:
        # Larger query and key norms sharpen attention, so that positions matter.
        mean = 1.6 if name.endswith(("q_norm.weight", "k_norm.weight")) else 1.0
        if tied and name.endswith("model.norm.weight"):
            mean = 1.5
        return mean + 0.2 * noise - int(zero_centred and "linear_attn.norm" not in name)
    if name.endswith("embed_tokens.weight"):
        return noise * (2 / shape[-1] ** 0.5 if tied else 1)
    gain = 3 if name.endswith("lm_head.weight") else 1.5 if name.endswith("mlp.gate.weight") else 1
    return gain * noise / shape[-1] ** 0.5


def fill(model, seed, positive_bias=False):
    generator = torch.Generator().manual_seed(seed)
    config = model.config.get_text_config()
    zero_centred = config.model_type.startswith(ZERO_CENTRED)
    with torch.no_grad():
        for name, tensor in sorted(model.state_dict().items()):
            tied = config.tie_word_embeddings
            if not (tied and name == "lm_head.weight"):
                tensor.copy_(initial(name, tensor.shape, zero_centred, tied, positive_bias, generator))


def config_of(family, arguments, wrapped=False):
    if not wrapped:
        suffix = "TextConfig" if family.startswith("Qwen3_5") else "Config"
        return getattr(transformers, family + suffix)(**arguments)
    vision = dict(depth=1, hidden_size=16, intermediate_size=16, num_heads=2, patch_size=2, temporal_patch_size=1,
                  spatial_merge_size=1, out_hidden_size=arguments["hidden_size"], num_position_embeddings=4)
    return getattr(transformers, family + "Config")(
        text_config=arguments, vision_config=vision, tie_word_embeddings=arguments.get("tie_word_embeddings", False))


def build(family, arguments, seed, wrapped=False, positive_bias=False):
    kind = "ForConditionalGeneration" if wrapped else "ForCausalLM"
    model = getattr(transformers, family + kind)(config_of(family, arguments, wrapped)).float().eval()
    fill(model, seed, positive_bias)
    return model


def old_deepseek_config(config):
    """The keys of the published files: theta at the top level, the scaling separate with `type`."""
    rope_parameters = config.pop("rope_parameters")
    config["rope_theta"] = rope_parameters.pop("rope_theta")
    kind = rope_parameters.pop("rope_type")
    config["rope_scaling"] = None if kind == "default" else {"type": kind} | rope_parameters
    config["torch_dtype"] = config.pop("dtype")
    return config | {"topk_method": "noaux_tc", "scoring_func": "sigmoid", "moe_layer_freq": 1}


def publish(folder, hidden, experts):
    """Converts transformers' output to the published form: experts stacked, and a draft layer (`mtp.`), which
    transformers drops when loading, as sluice must."""
    tensors = load_file(folder / "model.safetensors")
    for prefix in {name.rsplit("0.gate_proj", 1)[0] for name in tensors if name.endswith("experts.0.gate_proj.weight")}:
        each = [[tensors.pop(f"{prefix}{e}.{part}_proj.weight") for part in ("gate", "up", "down")]
                for e in range(experts)]
        tensors[prefix + "gate_up_proj"] = torch.stack([torch.cat([gate, up]) for gate, up, _ in each])
        tensors[prefix + "down_proj"] = torch.stack([down for _, _, down in each])
    full = next(name for name in tensors if name.endswith("self_attn.q_proj.weight")).rsplit("self_attn", 1)[0]
    for name in [name for name in tensors if name.startswith(full)]:
        tensors["mtp.layers.0." + name.removeprefix(full)] = torch.randn(tensors[name].shape).to(tensors[name].dtype)
    tensors["mtp.fc.weight"] = torch.ones(hidden, 2 * hidden, dtype=torch.bfloat16)
    for name in ("pre_fc_norm_embedding", "pre_fc_norm_hidden", "norm"):
        tensors[f"mtp.{name}.weight"] = torch.zeros(hidden, dtype=torch.bfloat16)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def add_head(folder):
    """An output head that differs from the embedding in a file whose config says that they are tied."""
    tensors = load_file(folder / "model.safetensors")
    embedding = tensors["model.embed_tokens.weight"]
    tensors["lm_head.weight"] = (embedding + 0.3 * torch.randn(embedding.shape)).to(embedding.dtype)
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})


def store(model, folder, dtype=torch.float32, float32=(), shard="1GB", old_config=False, wrapped=False,
          own_head=False):
    model = model.to(dtype)
    for name, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if name.endswith(float32):
            tensor.data = tensor.data.float()
    model.save_pretrained(folder, max_shard_size=shard)
    if wrapped:
        publish(folder, model.config.text_config.hidden_size, getattr(model.config.text_config, "num_experts", 0))
    if own_head:
        add_head(folder)
    if old_config:
        path = folder / "config.json"
        path.write_text(json.dumps(old_deepseek_config(json.loads(path.read_text())), indent=2) + "\n")


def load(folder):
    architecture = json.loads((folder / "config.json").read_text())["architectures"][0]
    kind = getattr(transformers, architecture)
    model, report = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager",
                                         output_loading_info=True)
    if report["missing_keys"] or report["mismatched_keys"]:
        raise SystemExit(f"{folder}: {report}")
    assert all(t.dtype == torch.float32 for t in model.state_dict().values())
    return model.eval()


def random_tokens(vocab, seed):
    """Random ids with a repeated section and a run of one id."""
    tokens = np.random.default_rng(seed).integers(0, vocab, TOKENS)
    tokens[120:150] = tokens[20:50]
    tokens[170:176] = tokens[169]
    return tokens.astype(np.int32)


@torch.no_grad()
def logits_of(model, tokens):
    return model(torch.tensor(np.asarray(tokens)[None], dtype=torch.long), use_cache=False).logits[0]


@torch.no_grad()
def continue_greedily(model, tokens):
    """The chosen ids, the smallest margin between the best two, and the logits that each choice was made from."""
    ids = torch.tensor(tokens[None], dtype=torch.long)
    cache, chosen, rows = None, [], []
    for _ in range(GREEDY):
        out = model(ids, past_key_values=cache, use_cache=True)
        cache = out.past_key_values
        rows.append(out.logits[0, -1])
        chosen.append(int(rows[-1].argmax()))
        ids = torch.tensor([[chosen[-1]]])
    best = torch.stack(rows).topk(2).values
    return np.array(chosen, np.int32), float((best[:, 0] - best[:, 1]).min()), torch.stack(rows)


@torch.no_grad()
def shaken(model, tokens, logits):
    generator = torch.Generator().manual_seed(0)
    for parameter in model.parameters():
        parameter.mul_(1 + 1e-6 * torch.randn(parameter.shape, generator=generator))
    return float((logits_of(model, tokens) - logits).abs().max())


def well_conditioned(margin, moved, distinct):
    return margin > MARGIN and moved < SHAKEN and distinct >= DISTINCT


def expect(folder, tokens, logits, greedy):
    save_file({"tokens": torch.tensor(tokens), "positions": torch.tensor(POSITIONS, dtype=torch.int32),
               "logits": torch.as_tensor(logits)[POSITIONS].contiguous(), "greedy": torch.tensor(greedy)},
              folder / "expect.safetensors")


def make(folder, family, arguments, storage):
    for seed in range(100):
        shutil.rmtree(folder, ignore_errors=True)
        torch.manual_seed(seed)
        store(build(family, arguments, seed, storage.get("wrapped", False)), folder, **storage)
        model = load(folder)
        tokens = random_tokens(arguments["vocab_size"], seed)
        greedy, margin, steps = continue_greedily(model, tokens)
        everything = np.concatenate([tokens, greedy])
        logits = logits_of(model, everything)
        stepping = float((logits[TOKENS - 1 : -1] - steps).abs().max())
        moved = shaken(model, everything, logits)
        distinct = len(set(greedy.tolist()))
        figures = f"{margin:.1e} | {distinct} | {stepping:.1e} | {moved:.1e}"
        if well_conditioned(margin, moved, distinct):
            break
        print(f"{folder.name}: seed {seed} rejected: {figures}")
    else:
        raise SystemExit(f"{folder.name}: no seed of 100 is well conditioned")
    expect(folder, tokens, logits, greedy)
    size = sum(path.stat().st_size for path in folder.iterdir())
    print(f"| {folder.name} | {size // 1024} | {seed} | {float(logits.std()):.1f} | {figures} |", flush=True)


def main():
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    root = pathlib.Path(sys.argv[1])
    for name in sys.argv[2:] or CHECKPOINTS:
        make(root / name, *CHECKPOINTS[name])


if __name__ == "__main__":
    main()
