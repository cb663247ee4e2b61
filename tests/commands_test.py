#!/usr/bin/env python3
"""The commands as scripts call them: exit status, JSON, files, and one clear sentence for bad input.

    commands_test.py SLUICE FOLDER_OF_TINY_MODELS
"""

import array
import csv
import json
import math
import pathlib
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parent.parent
MODELS = pathlib.Path(sys.argv.pop(2))
SLUICE = sys.argv.pop(1)
SECONDS = 120  # for anything: sanitized builds on busy machines are slow


def sluice(*arguments, status=0):
    """Runs a command and returns its output, or the error text if a failure is expected."""
    run = subprocess.run([SLUICE, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                         timeout=SECONDS)
    if run.returncode != status:
        raise AssertionError(f"{arguments}: status {run.returncode}, not {status}: {run.stderr}")
    return run.stderr if status else run.stdout


def read_safetensors(path):
    """Name to (dtype, shape, numbers); F32 and I32 only."""
    data = pathlib.Path(path).read_bytes()
    (length,) = struct.unpack_from("<Q", data)
    header = json.loads(data[8 : 8 + length])
    tensors = {}
    for name, entry in header.items():
        if name != "__metadata__":
            begin, end = entry["data_offsets"]
            numbers = array.array({"F32": "f", "I32": "i"}[entry["dtype"]], data[8 + length + begin : 8 + length + end])
            tensors[name] = (entry["dtype"], entry["shape"], numbers)
    return tensors


def distance(a, b):
    """Relative L2."""
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b)) / sum(y * y for y in b))


class Commands(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp())
        self.addCleanup(shutil.rmtree, self.folder)

    def expect_error(self, *arguments, says, status=1):
        """Expects one line that says what is wrong."""
        text = sluice(*arguments, status=status)
        if status == 1:
            self.assertEqual(text.count("\n"), 1, text)
        for word in says:
            self.assertIn(word, text)

    def logits(self, model, *options):
        expected = read_safetensors(MODELS / model / "expect.safetensors")
        tokens = ",".join(map(str, expected["tokens"][2]))
        out = self.folder / "out.safetensors"
        sluice("logits", MODELS / model, "--tokens", tokens, "--out", out, *options)
        written = read_safetensors(out)
        vocab = written["logits"][1][1]
        rows = [written["logits"][2][p * vocab : (p + 1) * vocab] for p in expected["positions"][2]]
        return distance([x for row in rows for x in row], expected["logits"][2]), written, expected

    def test_logits_are_the_oracles(self):
        for model in ["qwen3_5_moe", "deepseek_v3", "mlx-qwen3_5-4bit", "mlx-qwen3_moe-4bit"]:
            with self.subTest(model):
                error, written, expected = self.logits(model, "--greedy", "64")
                self.assertLess(error, 1e-5)
                self.assertEqual(written["greedy"][2], expected["greedy"][2])

    def test_logits_rounded_are_near(self):
        error, _, _ = self.logits("mlx-qwen3_5-4bit", "--rounded")
        self.assertLess(error, 5e-3)
        self.assertGreater(error, 1e-5, "--rounded changed nothing")

    def test_what_convert_writes_computes_the_same(self):
        # Some norms are stored as 1 + w, rounded to the BF16 of their checkpoint, as by mlx-lm.
        for model, tolerance in {"qwen3_5": 1e-5, "qwen3_5_moe": 1e-5, "qwen3_next": 1e-5, "qwen3_next-dense": 2e-2,
                                 "qwen3_moe-yarn": 1e-5, "deepseek_v3": 1e-5, "deepseek_v3-dense": 1e-5}.items():
            with self.subTest(model):
                out = self.folder / model
                sluice("convert", MODELS / model, out, "--no-quantize", "--dtype", "float32")
                shutil.copyfile(MODELS / model / "expect.safetensors", out / "expect.safetensors")
                error, _, _ = self.logits(out)
                self.assertLess(error, tolerance)

    def test_the_same_seed_tells_the_same_story(self):
        options = ["run", "--json", "-n", "12", "--seed", "5", "Once upon a time"]
        first, second = (json.loads(sluice(*options)) for _ in range(2))
        self.assertEqual(first["text"], second["text"])
        self.assertTrue(first["text"].strip())

    def test_everything_that_promises_json_prints_json(self):
        for command in [
            ["inspect", "delta-story"],
            ["plan", "delta-story"],
            ["bench", MODELS / "qwen3_moe", "-p", "4", "-n", "2", "-r", "1"],
            ["verify", "--op", "add", "--cases", "2"],
            ["op", "--list"],
            ["op", "--describe", "rms_norm"],
        ]:
            with self.subTest(command):
                json.loads(sluice(*command, "--json"))

    def test_figures_are_appended_in_the_form_of_the_results(self):
        file = self.folder / "figures.csv"
        bench = ["bench", MODELS / "qwen3_moe", "-p", "4", "-n", "2", "-r", "3"]
        for _ in range(2):
            sluice(*bench, "--csv", file)
        with file.open(newline="") as text:
            rows = list(csv.DictReader(text))
        with (ROOT / "bench/results/h200.csv").open(newline="") as text:
            self.assertEqual(list(rows[0]), next(csv.reader(text)))
        self.assertEqual(len(rows), 4)
        for row in rows:
            self.assertEqual(row["command"], " ".join(["sluice", *map(str, bench)]))
            self.assertLessEqual(float(row["low"]), float(row["median"]))
            self.assertLessEqual(float(row["median"]), float(row["high"]))
        self.expect_error(*bench, "--csv", self.folder / "none/figures.csv", says=["figures.csv", "No such file"])

    def test_random_model_runs_and_is_written_whole(self):
        model = self.folder / "random"
        sluice("random", "--geometry", "qwen3.6-35b-a3b:layers=4,experts=16,vocab=512", "--bits", "4", model)
        sluice("logits", model, "--tokens", "1,2,3", "--out", self.folder / "out.safetensors")
        self.assertEqual(read_safetensors(self.folder / "out.safetensors")["logits"][1], [3, 512])

    def test_bad_values(self):
        out = ["--out", self.folder / "out.safetensors"]
        self.expect_error("inspect", "/no/such/folder", says=["/no/such/folder"])
        self.expect_error("inspect", "no-such-model", says=["no-such-model"])
        self.expect_error("logits", "delta-story", "--tokens", "1,x", *out, says=["'x'"])
        self.expect_error("logits", "delta-story", "--tokens", "1,999999", *out, says=["999999"])
        self.expect_error("bench", "--geometry", "no-such-geometry", says=["no-such-geometry"])
        self.assertEqual(list(self.folder.iterdir()), [], "something was half-written")

    def test_damaged_checkpoints(self):
        def damaged(change):
            model = self.folder / f"damaged-{len(list(self.folder.iterdir()))}"
            shutil.copytree(MODELS / "qwen3_moe", model)
            change(model)
            return model

        def truncate(model):
            file = model / "model.safetensors"
            file.write_bytes(file.read_bytes()[:-100])

        def claim_ten_gigabytes(model):
            file = model / "model.safetensors"
            file.write_bytes(struct.pack("<Q", 10 << 30) + file.read_bytes()[8:])

        def change_architecture(model):
            config = json.loads((model / "config.json").read_text())
            config["model_type"] = "abacus"
            (model / "config.json").write_text(json.dumps(config))

        cases = {
            truncate: "model.safetensors",
            claim_ten_gigabytes: "model.safetensors",
            change_architecture: "abacus",
            lambda model: (model / "config.json").write_text("{"): "config.json",
            lambda model: (model / "config.json").unlink(): "config.json",
            lambda model: (model / "model.safetensors").unlink(): "safetensors",
        }
        for change, word in cases.items():
            with self.subTest(word):
                self.expect_error("logits", damaged(change), "--tokens", "1", "--out", self.folder / "x", says=[word])
        self.assertFalse((self.folder / "x").exists())

    def test_an_interrupted_run_ends_at_once(self):
        run = subprocess.Popen([SLUICE, "run", "-n", "100000", "--ctx", "2000", "--stop", "no such words"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        run.stdout.read(1)
        run.send_signal(signal.SIGINT)
        begin = time.monotonic()
        run.communicate(timeout=SECONDS)
        self.assertIn(run.returncode, (0, 130, -signal.SIGINT))
        self.assertLess(time.monotonic() - begin, 30)


if __name__ == "__main__":
    unittest.main()
