"""Goldens of the bundled models: the 200 ids that transformers chooses greedily after a few prompts, in float32.

Run with transformers 5.22.2, torch 2.13.0, mlx-lm 0.32.2 and mlx 0.32.4 (CPU):
python tools/golden/stories.py models/delta-story models/latent-story --out tests/data/stories

A quantised folder is unpacked by mlx (`dequantize` with float32 scales) into the transformers model; a Hugging Face
folder is loaded by transformers itself and upcast. Decoding continues past the end of a story. With `--check SLUICE` nothing is
written: `sluice logits` must choose the same ids. Exits with 1 if it does not.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import tempfile

import numpy as np
import torch
import transformers
from safetensors.numpy import load_file
from tokenizers import Tokenizer

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import models as golden
import models_mlx

golden.GREEDY = 200


def asked(message):
    return f"<|im_start|>user\n{message}<|im_end|>\n<|im_start|>assistant\n"


PROMPTS = [
    "Once upon a time",
    "The old bear looked at the honey and",
    asked("Tell me a story."),
    asked("write a story about a dog and a red ball"),
    asked("Tell me a story about a girl named Lily and a cat."),
]


def load(folder):
    config = json.loads((folder / "config.json").read_text())
    if "quantization" not in config:
        return transformers.AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32, attn_implementation="eager").eval()
    text = config.get("text_config", config)
    family = "Qwen3_5Moe" if "text_config" in config else "DeepseekV3"
    text = {k: v for k, v in text.items() if not k.startswith("quantization")}
    settings = golden.config_of(family, text)
    settings._attn_implementation = "eager"
    model = getattr(transformers, family + "ForCausalLM")(settings).float().eval()
    models_mlx.dequantise_into(model, models_mlx.load(folder))
    return model


def stories(folder):
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    model = load(folder)
    for prompt in PROMPTS:
        ids = tokenizer.encode(prompt).ids
        greedy, margin, _ = golden.continue_greedily(model, np.array(ids))
        note = "" if margin > golden.MARGIN else ": left out, too near a tie"
        print(f"{folder.name}: margin {margin:.1e}{note}: {tokenizer.decode(greedy.tolist())[:70]!r}", flush=True)
        if margin > golden.MARGIN:
            yield dict(prompt=prompt, ids=ids, greedy=greedy.tolist())


def chosen_by(sluice, folder, ids):
    with tempfile.TemporaryDirectory() as scratch:
        out = pathlib.Path(scratch) / "out.safetensors"
        subprocess.run([sluice, "logits", folder, "--tokens", ",".join(map(str, ids)), "--greedy",
                        str(golden.GREEDY), "--out", out], check=True)
        return load_file(out)["greedy"].tolist()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--check", metavar="SLUICE")
    options = parser.parse_args()
    transformers.logging.set_verbosity_error()
    good = True
    for folder in options.folders:
        cases = list(stories(folder))
        if options.check:
            same = [chosen_by(options.check, folder, case["ids"]) == case["greedy"] for case in cases]
            print(f"{folder.name}: {sum(same)} of {len(same)} equal over {golden.GREEDY} tokens")
            good = good and all(same)
        else:
            lines = ",\n".join(json.dumps(case) for case in cases)
            (options.out / f"{folder.name}.json").write_text(f"[\n{lines}\n]\n")
    sys.exit(not good)


if __name__ == "__main__":
    main()
