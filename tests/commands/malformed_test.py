#!/usr/bin/env python3
"""Hundreds of checkpoints with one defect each: a clear error or a normal run, never a crash or a hang.

    malformed_test.py SLUICE FOLDER_OF_TINY_MODELS

The defects follow from a seed, which is printed; SLUICE_SEED sets another.
"""

import concurrent.futures
import copy
import json
import os
import pathlib
import random
import shutil
import struct
import tempfile
import unittest

from harness import MODELS, STORY, start

SEED = int(os.environ.get("SLUICE_SEED", random.SystemRandom().randrange(1 << 30)))
TINY = ("qwen3_moe", "qwen3_next", "qwen3_5_moe", "deepseek_v3", "mlx-qwen3_5-4bit")
ODD = [None, 0, 1, -1, 2**31, 2**40, 2**63, -(2**63), 1e308, 0.5, "", "x", "\033[31m", True, [], {}, [0], [-1, 2**40],
       {"type": "x"}]


def places(value, path=()):
    """Where a JSON document can be damaged: the path to every member and item."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))


def change(document, path, how):
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    if how == "remove":
        del inner[path[-1]]
    else:
        inner[path[-1]] = how


def damaged_json(rng, document):
    """Changes or removes one member; prefers short lists of places, which would otherwise be hit rarely."""
    document = copy.deepcopy(document)
    known = list(places(document))
    path = rng.choice([p for p in known if len(p) <= rng.choice((1, 2, 3))] or known)
    how = rng.choice([*ODD, "remove"])
    change(document, path, how)
    return document, f"{'.'.join(map(str, path))} = {how!r}"


def damaged_text(rng, text):
    at = rng.randrange(len(text))
    kind = rng.choice(("cut", "flip", "insert", "nest"))
    if kind == "cut":
        return text[:at], f"cut at {at}"
    if kind == "flip":
        return text[:at] + bytes([rng.randrange(256)]) + text[at + 1 :], f"byte {at}"
    if kind == "insert":
        return text[:at] + rng.randbytes(8) + text[at:], f"bytes at {at}"
    return b"[" * 100000, "nested"


class Case:
    def __init__(self, number):
        rng = random.Random(SEED * 1000003 + number)
        self.model = MODELS.resolve() / rng.choice(TINY)
        kinds = ("config", "config", "config", "config text", "header", "header", "header text", "weights", "tokenizer",
                 "tokenizer text", "template")
        self.kind = rng.choice(kinds)
        if self.kind.startswith(("tokenizer", "template")):
            self.model = STORY
        self.rng = rng

    def write(self, folder):
        """Writes the checkpoint and returns its defect."""
        for file in self.model.iterdir():
            if file.name != "expect.safetensors":
                shutil.copyfile(file, folder / file.name) if self.touches(file) else (folder / file.name).symlink_to(file)
        return f"{self.model.name}, {self.kind}: {getattr(self, self.kind.replace(' ', '_'))(folder)}"

    def touches(self, file):
        names = {"config": "config.json", "header": ".safetensors", "weights": ".safetensors", "tokenizer": "tokenizer",
                 "template": "chat_template"}
        return names[self.kind.split()[0]] in file.name

    def json_file(self, path):
        document, what = damaged_json(self.rng, json.loads(path.read_text()))
        path.write_text(json.dumps(document))
        return f"{path.name}: {what}"

    def text_file(self, path):
        text, what = damaged_text(self.rng, path.read_bytes())
        path.write_bytes(text)
        return f"{path.name}: {what}"

    def config(self, folder):
        return self.json_file(folder / "config.json")

    def config_text(self, folder):
        return self.text_file(folder / "config.json")

    def tokenizer(self, folder):
        return self.json_file(folder / self.rng.choice(("tokenizer.json", "tokenizer_config.json")))

    def tokenizer_text(self, folder):
        return self.text_file(folder / "tokenizer.json")

    def template(self, folder):
        return self.text_file(folder / "chat_template.jinja")

    def weights(self, folder):
        path = self.shard(folder)
        size = path.stat().st_size
        keep = self.rng.choice((0, 1, 7, 8, 9, size // 2, size - 1))
        os.truncate(path, keep)
        return f"{keep} of {size} bytes"

    def shard(self, folder):
        return self.rng.choice(sorted(folder.glob("*.safetensors")))

    def header_parts(self, folder):
        path = self.shard(folder)
        data = path.read_bytes()
        (length,) = struct.unpack_from("<Q", data)
        return path, data[8 : 8 + length], data[8 + length :]

    def header(self, folder):
        path, header, rest = self.header_parts(folder)
        document, what = damaged_json(self.rng, json.loads(header))
        text = json.dumps(document).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + rest)
        return what

    def header_text(self, folder):
        path, header, rest = self.header_parts(folder)
        text, what = damaged_text(self.rng, header)
        length = self.rng.choice((len(text), 0, 2**63, 2**64 - 1, len(text) + len(rest) + 1, 10 << 30))
        path.write_bytes(struct.pack("<Q", length) + text + rest)
        return f"{what}, length {length}"


class KnownCase:
    """A value of config.json that once caused a failure."""

    def __init__(self, model, key, value):
        self.model, self.key, self.value = model, key, value

    def write(self, folder):
        for file in (MODELS.resolve() / self.model).iterdir():
            if file.name != "config.json":
                (folder / file.name).symlink_to(file)
        config = json.loads((MODELS.resolve() / self.model / "config.json").read_text())
        (folder / "config.json").write_text(json.dumps(config | {self.key: self.value}))
        return f"{self.model}: {self.key} = {self.value}"


KNOWN = (KnownCase("deepseek_v3", "num_nextn_predict_layers", 2**40),  # ran for hours
         KnownCase("deepseek_v3", "n_shared_experts", 2**63 - 1))


class Malformed(unittest.TestCase):
    CASES = 300

    def check(self, number):
        case = KNOWN[-number - 1] if number < 0 else Case(number)
        with tempfile.TemporaryDirectory(dir=self.folder) as name:
            what = f"case {number}, {case.write(pathlib.Path(name))}"
            run = start("run", "-m", name, "-n", "1", "--threads", "1", "--memory", "1GB", "--prompt-tokens", "1,2")
        if run.returncode not in (0, 1):
            return f"{what}: status {run.returncode}: {run.stderr}"
        if run.returncode == 1:
            if run.stderr.count("\n") != 1 or not run.stderr.startswith("sluice: "):
                return f"{what}: not one sentence: {run.stderr!r}"
            if "json.exception" in run.stderr or "std::" in run.stderr or "vector::" in run.stderr:
                return f"{what}: not a sentence for people: {run.stderr!r}"
            if any(ord(c) < 0x20 for c in run.stderr[:-1]):
                return f"{what}: control characters: {run.stderr!r}"
        return None if run.returncode else "ran"

    def test_known_trouble_is_refused(self):
        with tempfile.TemporaryDirectory() as self.folder:
            for number in range(-len(KNOWN), 0):
                self.assertIsNone(self.check(number))

    def test_each_is_refused_in_one_sentence_or_runs(self):
        print(f"seed {SEED}", flush=True)
        with tempfile.TemporaryDirectory() as name, concurrent.futures.ThreadPoolExecutor(2) as pool:
            self.folder = name
            results = list(pool.map(self.check, range(self.CASES)))
        failures = [result for result in results if result not in (None, "ran")]
        self.assertFalse(failures, "\n".join(failures))
        self.assertGreater(results.count(None), self.CASES // 2, "the damage does no harm")


if __name__ == "__main__":
    unittest.main()
