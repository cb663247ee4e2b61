#!/usr/bin/env python3
"""Measures the quality of packed caches and writes the tables of docs/kv-quality.md.

    tools/docs/kv_quality.py build/release/bin/sluice valid.txt [--contexts N] [--models delta-story,latent-story]

The text is held out; lines <|endoftext|> separate its documents.
"""

import argparse
import json
import math
import pathlib
import subprocess

PAGE = pathlib.Path(__file__).parents[2] / "docs/kv-quality.md"
MARK = "<!-- Everything below is written by tools/docs/kv_quality.py -->\n"
WIDTHS = ["8", "8,6", "8,4", "8,3", "6", "6,4", "5", "5,4", "5,3", "4", "4,3", "4,2", "3", "3,2", "2"]
LATENT = ["8", "6", "5", "4", "3", "2"]  # one row is both key and value


def measure(sluice, model, text, width, contexts):
    command = [sluice, "perplexity", model, text, "--ctx", "2048", "--contexts", str(contexts), "--threads", "2",
               "--kv-bits", width, "--against", "bf16", "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)


def cache_bytes(sluice, model, width):
    command = [sluice, "inspect", model, "--kv-bits", width, "--json"]
    return json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)["cache_bytes_per_position"]


def table(sluice, model, text, contexts):
    bf16 = cache_bytes(sluice, model, "bf16")
    rows = []
    for width in (LATENT if model.startswith("latent") else WIDTHS):
        r = measure(sluice, model, text, width, contexts)
        change = 100 * math.expm1(r["nats_per_token"] - r["nats_per_token_against"])
        size = cache_bytes(sluice, model, width)
        rows.append(f"| {width} | {size} ({size / bf16:.2f}) "
                    f"| {r['kl']:.1e} | {r['kl_of_worst_context']:.1e} | {100 * r['top1_agreement']:.2f}% | {change:+.3f}% |")
        print(model, rows[-1], flush=True)
    head = (f"\n## {model}\n\n{r['contexts']} contexts of 2,048 tokens, {r['tokens']} predictions; "
            f"{r['nats_per_token_against']:.4f} nats per token with a BF16 cache.\n\n"
            "| bits K[,V] | bytes per token (of BF16) | KL | KL of the worst context | same first choice | perplexity |\n"
            "|---|---|---|---|---|---|\n")
    return head + "\n".join(rows) + "\n"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sluice")
    parser.add_argument("text")
    parser.add_argument("--contexts", type=int, default=0)
    parser.add_argument("--models", default="delta-story,latent-story")
    options = parser.parse_args()
    page = PAGE.read_text().split(MARK)[0] + MARK
    for model in options.models.split(","):
        page += table(options.sluice, model, options.text, options.contexts)
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
