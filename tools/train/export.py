"""Writes a trained model as a Hugging Face checkpoint (BF16) and as an MLX one (4 bits, group 64).

    python export.py delta-story --parts runs/delta/parts --tokenizer tokenizer --hf delta-story-hf --mlx delta-story

mlx-lm does the conversion. Both configs use the keys of the published models: Qwen3.5's text settings
under `text_config`, DeepSeek's rotary settings as `rope_theta` and `rope_scaling`.
"""

import argparse
import json
import shutil
import tempfile
from pathlib import Path

import torch
from mlx_lm import convert

from architectures import END_OF_TEXT, IM_END, build
from parts import load_parts

KEEP_F32 = ("A_log", "e_score_correction_bias")
GENERATION = {
    "do_sample": True,
    "eos_token_id": [IM_END, END_OF_TEXT],
    "pad_token_id": END_OF_TEXT,
    "temperature": 0.7,
    "top_k": 40,
    "top_p": 0.9,
}


def load_model(name: str, parts: Path) -> torch.nn.Module:
    model, state = build(name), load_parts(parts)
    model.load_state_dict({k: v.float() for k, v in state.items()})
    model.bfloat16()
    for path, value in state.items():
        if path.endswith(KEEP_F32):
            owner, leaf = model.get_submodule(path.rpartition(".")[0]), path.rpartition(".")[2]
            getattr(owner, leaf).data = value.float()
    return model


def deepseek_spelling(config: dict) -> dict:
    rope = dict(config.pop("rope_parameters"))
    config["rope_theta"] = rope.pop("rope_theta")
    config["rope_scaling"] = {"type": rope.pop("rope_type"), **rope}
    return config | {
        "topk_method": "noaux_tc",
        "scoring_func": "sigmoid",
        "moe_layer_freq": 1,
        "torch_dtype": "bfloat16",
    }


def qwen_spelling(text: dict) -> dict:
    shared = {"eos_token_id": text["eos_token_id"], "tie_word_embeddings": False, "torch_dtype": "bfloat16"}
    return {
        "architectures": ["Qwen3_5MoeForConditionalGeneration"],
        "model_type": "qwen3_5_moe",
        "text_config": text,
        **shared,
    }


def write_json(path: Path, content: dict):
    path.write_text(json.dumps(content, indent=2) + "\n")


def write_hf(model, tokenizer: Path, folder: Path):
    # The published Qwen3.5 checkpoints store each layer's experts as one tensor, DeepSeek's one tensor per expert.
    model.save_pretrained(folder, save_original_format=model.config.model_type == "deepseek_v3")
    for file in tokenizer.iterdir():
        shutil.copy(file, folder)
    write_json(folder / "generation_config.json", GENERATION)
    if model.config.model_type == "deepseek_v3":
        write_json(
            folder / "config.json", deepseek_spelling(json.loads((folder / "config.json").read_text()))
        )


def write_mlx(hf: Path, folder: Path):
    with tempfile.TemporaryDirectory() as scratch:
        source = shutil.copytree(hf, Path(scratch) / "hf")
        config = json.loads((source / "config.json").read_text())
        if config["model_type"] == "qwen3_5_moe_text":
            write_json(source / "config.json", qwen_spelling(config))
        convert(str(source), str(folder), quantize=True, q_group_size=64, q_bits=4)
    for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
        shutil.copy(hf / name, folder / name)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=["delta-story", "latent-story"])
    for name in ("parts", "tokenizer", "hf", "mlx"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    options = parser.parse_args()
    write_hf(load_model(options.model, options.parts), options.tokenizer, options.hf)
    write_mlx(options.hf, options.mlx)


if __name__ == "__main__":
    main()
