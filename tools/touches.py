#!/usr/bin/env python3
"""Adds an example op, model family and quantisation format to a copy of the tree, counts the files that each touches, builds and runs them.

Each example is an existing one under another name, so it stays current by itself. CONTRIBUTING.md states the
counts: a new file per place, and edits of the lists named here, nowhere else.

    tools/touches.py [--count]    --count only adds and counts
"""

import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent

# What is copied from where, and which lists to extend: (file, the name after which the new one is inserted).
EXAMPLES = {
    "op": {
        "names": {"SplitQGate": "ExampleOp", "split_q_gate": "example_op"},
        "files": ["include/sluice/ops/pointwise/split_q_gate.h", "src/backend/reference/pointwise/split_q_gate.cpp",
                  "src/backend/cpu/pointwise/split_q_gate.cpp", "src/backend/cuda/pointwise/split_q_gate.cu",
                  "src/runner/cases/pointwise/split_q_gate_cases.cpp"],
        "lists": {"include/sluice/ops/ops.h": ['#include "sluice/ops/pointwise/split_q_gate.h"\n', "SplitQGate, "]},
        "run": [["verify", "--op", "example_op"]],
    },
    "model": {
        "names": {"kQwen3Moe": "kExample", "qwen3_moe": "example", "qwen3-30b-a3b": "example-30b", "Qwen3-MoE": "Example"},
        "files": ["src/models/qwen3_moe.cpp"],
        "lists": {"src/models/registry.cpp": ["kQwen3Moe, ", "&kQwen3Moe, "]},
        "run": [["bench", "--geometry", "example-30b:layers=1,experts=8,vocab=1024", "-p", "4", "-n", "1", "-r", "1"]],
    },
    "format": {
        "names": {"Nvfp4": "Example", "nvfp4": "example", "NVFP4": "example"},
        "files": ["src/quant/nvfp4.h"],
        "lists": {"include/sluice/ops/weight.h": [", nvfp4"],
                  "src/quant/formats.h": ['#include "quant/nvfp4.h"\n', ", &kNvfp4"]},
        "run": [["verify", "--op", "matmul"]],
    },
}


def needed():
    return [path for example in EXAMPLES.values() for path in [*example["files"], *example["lists"]]]


def renamed(text, names):
    for old, new in names.items():
        text = text.replace(old, new)
    return text


def add(tree, kind, example):
    for path in example["files"]:
        copy = tree / renamed(path, example["names"])
        copy.write_text(renamed((tree / path).read_text(), example["names"]))
    for path, entries in example["lists"].items():
        text = (tree / path).read_text()
        for entry in entries:
            if text.count(entry) < 1:
                sys.exit(f"{kind}: {path} has no '{entry.strip()}' to stand behind")
            text = text.replace(entry, entry + renamed(entry, example["names"]), 1)
        (tree / path).write_text(text)
    print(f"{kind}: {len(example['files'])} new files, {len(example['lists'])} edited: {', '.join(example['lists'])}")


def main():
    with tempfile.TemporaryDirectory() as folder:
        tree = pathlib.Path(folder) / "sluice"
        counting = "--count" in sys.argv
        files = needed() if counting else subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"], cwd=ROOT, capture_output=True, text=True,
            check=True).stdout.splitlines()
        for path in files:
            if (ROOT / path).is_file():
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / path, tree / path)
        for kind, example in EXAMPLES.items():
            add(tree, kind, example)
        if counting:
            return
        # A copy contains the names of its original, so the two are not compiled as one file.
        copies = [renamed(path, example["names"]).removeprefix("src/") for example in EXAMPLES.values()
                  for path in example["files"] if path.endswith(".cpp")]
        with (tree / "src/CMakeLists.txt").open("a") as lists:
            lists.write(f"set_source_files_properties({' '.join(copies)} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)\n")
        subprocess.run(["cmake", "--preset", "native", "-DSLUICE_CASES=ON", "--log-level=WARNING"], cwd=tree, check=True,
                       stdout=subprocess.DEVNULL)
        subprocess.run(["tools/build", "native", "sluice_cli"], cwd=tree, check=True)
        for example in EXAMPLES.values():
            for arguments in example["run"]:
                subprocess.run(["build/native/bin/sluice", *arguments], cwd=tree, check=True)


if __name__ == "__main__":
    main()
