"""Compares `sluice logits` with transformers or mlx-lm on new checkpoints: random unusual shapes of every family, written by
transformers or quantised by mlx-lm.

Run with transformers 5.22.2, torch 2.13.0, mlx-lm 0.32.2 and mlx 0.32.4 (CPU):
python tools/golden/sweep.py build/release/bin/sluice [--first SEED] [--count N] [--mlx] [--keep FOLDER]

Prints one line per checkpoint: its seed, relative L2 of the logits, whether the greedy continuation is equal and, for scale, how
much the oracle's own logits change when all weights change by 1e-6. A checkpoint with a near tie in a router is skipped
(see `models.py`). Exits with 1 if anything disagrees.
"""

import argparse
import pathlib
import random
import shutil
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import models as golden

FAMILIES = ("Qwen3_5Moe", "Qwen3_5", "Qwen3Next", "Qwen3Moe", "DeepseekV3")
F32_LIMIT = 1e-4  # relative L2


def rope_of(rng, head_dim, partial=True, mrope=False):
    rope = golden.rope(rng.choice([1e4, 1e5, 1e6, 1e7]))
    rotated = head_dim
    if partial:
        rope["partial_rotary_factor"] = rng.choice([f for f in (0.25, 0.5, 0.75, 1.0) if head_dim * f % 2 == 0])
        rotated = int(head_dim * rope["partial_rotary_factor"])
    if mrope:
        third = rotated // 6
        rope |= dict(mrope_interleaved=True, mrope_section=[rotated // 2 - 2 * third, third, third])
    elif rng.random() < 0.3:
        rope |= dict(rope_type="yarn", factor=rng.choice([2.0, 4.0, 40.0]), original_max_position_embeddings=256)
    return rope


def heads_of(rng):
    kv_heads = rng.choice([1, 1, 2, 3])
    return dict(num_attention_heads=kv_heads * rng.choice([1, 2, 3, 5]), num_key_value_heads=kv_heads,
                head_dim=rng.choice([8, 16, 24, 40, 64]))


def delta_of(rng):
    key_heads = rng.choice([1, 2, 3])
    return dict(linear_num_key_heads=key_heads, linear_num_value_heads=key_heads * rng.choice([1, 2, 3]),
                linear_key_head_dim=rng.choice([32, 64, 96]), linear_value_head_dim=rng.choice([32, 64, 96]),
                linear_conv_kernel_dim=rng.choice([2, 3, 4, 4]))


def layers_of(rng, size):
    count = size["num_hidden_layers"]
    if rng.random() < 0.3:
        return dict(full_attention_interval=rng.randint(1, min(4, count)))
    types = [rng.choice([golden.LINEAR, golden.FULL]) for _ in range(count)]
    types[rng.randrange(count)] = golden.FULL  # required by transformers' cache
    return dict(layer_types=types)


def experts_of(rng, name="num_experts"):
    experts = rng.choice([3, 5, 7, 8])
    return {name: experts, "num_experts_per_tok": rng.randint(1, min(experts, 4)),
            "moe_intermediate_size": rng.choice([8, 12, 20, 28])}


def dense_layers_of(rng, count):
    if rng.random() < 0.5:
        return dict(mlp_only_layers=rng.sample(range(count), rng.randint(0, count - 1)))
    return dict(decoder_sparse_step=rng.choice([1, 2, 3]))


def size_of(rng):
    return dict(vocab_size=rng.choice([97, 128, 151]), hidden_size=rng.choice([24, 40, 56, 72, 104]),
                num_hidden_layers=rng.randint(1, 5), intermediate_size=rng.choice([24, 36, 50]),
                max_position_embeddings=rng.choice([512, 1024]), tie_word_embeddings=rng.random() < 0.4,
                rms_norm_eps=rng.choice([1e-6, 1e-5]))


def qwen_of(rng, family):
    size = size_of(rng)
    arguments = size | heads_of(rng)
    if family != "Qwen3Moe":
        arguments |= delta_of(rng) | layers_of(rng, size)
    partial, mrope = family != "Qwen3Moe", family.startswith("Qwen3_5")
    arguments["rope_parameters"] = rope_of(rng, arguments["head_dim"], partial, mrope)
    if family != "Qwen3_5":
        arguments |= experts_of(rng)
    if family in ("Qwen3_5Moe", "Qwen3Next"):
        arguments["shared_expert_intermediate_size"] = rng.choice([8, 12, 20])
    if family == "Qwen3_5Moe":
        del arguments["intermediate_size"]
    if family in ("Qwen3Next", "Qwen3Moe"):
        arguments |= dense_layers_of(rng, size["num_hidden_layers"]) | dict(norm_topk_prob=rng.random() < 0.5)
    return arguments


def deepseek_of(rng):
    heads = rng.choice([1, 2, 3, 5])
    groups, each = rng.choice([(1, 3), (1, 5), (1, 7), (3, 3), (2, 4), (4, 2)])
    top_groups = rng.randint(1, groups)
    rope = golden.rope(rng.choice([1e4, 5e5]))
    if rng.random() < 0.5:
        rope |= dict(rope_type="yarn", factor=rng.choice([4.0, 40.0]), original_max_position_embeddings=256,
                     beta_fast=rng.choice([8.0, 32.0]), beta_slow=1.0)
        if rng.random() < 0.7:
            rope |= dict(mscale=rng.choice([0.707, 1.0]), mscale_all_dim=rng.choice([0.707, 1.0]))
    return size_of(rng) | dict(
        num_attention_heads=heads, num_key_value_heads=heads, q_lora_rank=rng.choice([None, 24, 40]),
        kv_lora_rank=rng.choice([16, 24, 40]), qk_nope_head_dim=rng.choice([8, 24]),
        qk_rope_head_dim=rng.choice([8, 12, 16]), v_head_dim=rng.choice([8, 20, 24]),
        moe_intermediate_size=rng.choice([8, 12, 28]), n_routed_experts=groups * each, n_group=groups,
        topk_group=top_groups, num_experts_per_tok=rng.randint(1, min(4, top_groups * each)),
        n_shared_experts=rng.choice([1, 2, 3]), first_k_dense_replace=rng.choice([0, 1, 2, 9]),
        norm_topk_prob=rng.random() < 0.5, routed_scaling_factor=rng.choice([1.0, 2.5]),
        rope_interleave=rng.random() < 0.7, rope_parameters=rope)


def arguments_of(seed):
    rng = random.Random(seed)
    family = FAMILIES[seed % len(FAMILIES)]
    return rng, family, deepseek_of(rng) if family == "DeepseekV3" else qwen_of(rng, family)


def from_transformers(seed, folder):
    """Writes the checkpoint; returns its description, tokens, logits, greedy ids and sensitivity."""
    rng, family, arguments = arguments_of(seed)
    dtype = rng.choice([torch.float32, torch.bfloat16])
    wrapped = family.startswith("Qwen3_5") and rng.random() < 0.3
    torch.manual_seed(seed)
    golden.store(golden.build(family, arguments, seed, wrapped), folder, dtype=dtype)
    model = golden.load(folder)
    tokens = golden.random_tokens(arguments["vocab_size"], seed)
    greedy, margin, _ = golden.continue_greedily(model, tokens)
    everything = np.concatenate([tokens, greedy])
    logits = golden.logits_of(model, everything)
    moved = golden.shaken(model, everything, logits)
    return f"{family} {str(dtype)[6:]}{' wrapped' if wrapped else ''}", tokens, logits.numpy(), greedy, margin, moved


def quantisable(family, arguments):
    """Restricts a config to what mlx-lm supports: rows in complete groups of 64, intervals in place of `layer_types`, and YaRN,
    partial rotation and a tied head only if it reads them."""
    wide = {"hidden_size", "intermediate_size", "moe_intermediate_size", "shared_expert_intermediate_size",
            "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim", "v_head_dim", "head_dim", "linear_value_head_dim",
            "linear_key_head_dim"}
    arguments = {k: -(-v // 64) * 64 if k in wide and v else v for k, v in arguments.items()}
    if family == "DeepseekV3":
        return arguments | dict(tie_word_embeddings=False, rope_interleave=True)
    if family != "Qwen3Moe":
        interval = max(2, arguments.get("full_attention_interval", 2))
        arguments |= dict(layer_types=None, linear_conv_kernel_dim=4, full_attention_interval=interval,
                          num_hidden_layers=max(arguments["num_hidden_layers"], interval))
    if family == "Qwen3Next":  # it recognises a raw file by the experts of its first layer
        arguments |= dict(mlp_only_layers=[], decoder_sparse_step=1)
    rope = arguments["rope_parameters"]
    keep = ("rope_theta", "partial_rotary_factor", "mrope_interleaved", "mrope_section")
    return arguments | dict(rope_parameters={"rope_type": "default"} | {k: rope[k] for k in keep if k in rope})


def from_mlx(seed, folder):
    import models_mlx

    rng, family, arguments = arguments_of(seed)
    arguments = quantisable(family, arguments)
    recipe = rng.choice([{}, {"bits": 3}, {"bits": 6}, {"bits": 8, "group_size": 32}, {"recipe": "mixed_3_6"},
                         {"recipe": "mixed_2_6"}, {"mode": "mxfp4"}, {"dtype": models_mlx.mx.bfloat16}])
    with tempfile.TemporaryDirectory() as source:
        source = pathlib.Path(source)
        reference = models_mlx.write_source(source, family, arguments, seed)
        models_mlx.convert(source, folder, **recipe)
    model = models_mlx.load(folder)
    tokens = golden.random_tokens(arguments["vocab_size"], seed)
    greedy, margin, _ = models_mlx.continue_greedily(model, tokens)
    everything = np.concatenate([tokens, greedy])
    logits = models_mlx.logits_of(model, everything)
    models_mlx.dequantise_into(reference, model)
    theirs = golden.logits_of(reference, everything)
    moved = golden.shaken(reference, everything, theirs)
    apart = np.linalg.norm(theirs.numpy() - logits) / np.linalg.norm(logits)
    return f"{family} {recipe} (oracles {apart:.1e} apart)", tokens, logits, greedy, margin, moved


def ours(sluice, folder, tokens):
    out = folder / "sluice.safetensors"
    done = subprocess.run([sluice, "logits", folder, "--tokens", ",".join(map(str, tokens)), "--greedy",
                           str(golden.GREEDY), "--out", out], capture_output=True, text=True)
    if done.returncode:
        return None, done.stderr.strip()
    result = load_file(out)
    return result, ""


def compare(sluice, seed, make, keep):
    with tempfile.TemporaryDirectory() as scratch:
        folder = pathlib.Path(scratch) / str(seed)
        what, tokens, logits, greedy, margin, moved = make(seed, folder)
        result, error = ours(sluice, folder, tokens)
        if result is None:
            print(f"{seed:4} FAILED  {what}: {error}", flush=True)
            good = False
        else:
            want = logits[: len(tokens)]
            apart = np.linalg.norm(result["logits"] - want) / np.linalg.norm(want)
            same = bool((result["greedy"] == greedy).all())
            tie = moved > golden.SHAKEN or margin < golden.MARGIN
            good = tie or (apart < F32_LIMIT and same)
            verdict = "near tie" if tie else "ok" if good else "DIFFERS"
            print(f"{seed:4} {verdict:8} {apart:.1e} greedy {'equal' if same else 'DIFFERENT'} "
                  f"(margin {margin:.0e}, shaken {moved:.0e}) {what}", flush=True)
        if not good and keep:
            shutil.copytree(folder, keep / str(seed), dirs_exist_ok=True)
    return good


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sluice")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=40)
    parser.add_argument("--mlx", action="store_true", help="quantised by mlx-lm")
    parser.add_argument("--keep", type=pathlib.Path, help="folder for checkpoints that disagree")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    transformers.logging.disable_progress_bar()
    make = from_mlx if options.mlx else from_transformers
    seeds = range(options.first, options.first + options.count)
    good = [compare(options.sluice, seed, make, options.keep) for seed in seeds]
    print(f"{sum(good)} of {len(good)} agree")
    sys.exit(not all(good))


if __name__ == "__main__":
    main()
