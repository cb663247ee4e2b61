#!/usr/bin/env python3
"""Writes the stories in docs/models.md: the first five of each bundled model, seeds 1 to 5, not selected.

    tools/docs/stories.py build/release/bin/sluice
"""

import json
import pathlib
import subprocess
import sys
import textwrap

PAGE = pathlib.Path(__file__).parents[2] / "docs/models.md"
MARK = "<!-- Everything below is written by tools/docs/stories.py -->\n"
PROMPT = "Once upon a time"
OPTIONS = ["--exact", "-n", "300"]  # in F32, which gives the same text on every processor


def story(sluice, model, seed):
    command = [sluice, "run", PROMPT, "-m", model, "--seed", str(seed), *OPTIONS, "--json"]
    result = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE).stdout)
    return PROMPT + result["text"], len(result["ids"])


def quoted(text):
    return "\n>\n".join("\n".join("> " + line for line in textwrap.wrap(paragraph, 110))
                        for paragraph in text.strip().split("\n") if paragraph.strip())


def main():
    sluice = sys.argv[1]
    page = PAGE.read_text().split(MARK)[0] + MARK
    for model in ("delta-story", "latent-story"):
        page += f"\n## Five stories by {model}\n\n`sluice run \"{PROMPT}\" -m {model} --seed N {' '.join(OPTIONS)}`\n"
        for seed in range(1, 6):
            text, tokens = story(sluice, model, seed)
            page += f"\nSeed {seed}, {tokens} tokens:\n\n{quoted(text)}\n"
    PAGE.write_text(page)


if __name__ == "__main__":
    main()
