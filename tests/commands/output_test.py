#!/usr/bin/env python3
"""Output of commands: files are complete or absent, and failed writes are reported.

    output_test.py SLUICE FOLDER_OF_TINY_MODELS
"""

import json
import os
import signal
import subprocess
import time
import unittest

from harness import MODELS, SECONDS, SLUICE, STORY, CommandTest, limited

GEOMETRY = "qwen3-30b-a3b:layers=1,experts=8,vocab=256"
LARGER = "qwen3-30b-a3b:layers=2,experts=32,vocab=1024"  # slow enough to be interrupted


class Output(CommandTest):
    COMMANDS = (
        ["run", "-n", "3"],
        ["run", "-n", "3", "--json"],
        ["inspect", "delta-story"],
        ["inspect", "delta-story", "--json"],
        ["op", "--list"],
        ["help"],
        ["run", "--help"],
        ["--version"],
        ["tokenize", "hello"],
        ["verify", "--op", "add", "--cases", "1"],
    )

    def test_a_full_disk_is_an_error(self):
        for command in self.COMMANDS:
            with self.subTest(command), open("/dev/full", "w") as full:
                self.expect_error(*command, stdout=full, says=["cannot write the output", "No space left"])

    def test_a_closed_output_is_an_error(self):
        for command in self.COMMANDS:
            with self.subTest(command):
                run = subprocess.run(["sh", "-c", 'exec "$@" >&-', "sh", SLUICE, *map(str, command)],
                                     stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, timeout=SECONDS)
                self.assertEqual(run.returncode, 1, run.stderr)
                self.assertIn("cannot write the output", run.stderr)

    def test_a_reader_that_leaves(self):
        """SIGPIPE ends the command as usual; if it is ignored, an error is reported."""
        run = subprocess.Popen([SLUICE, "run", "-n", "200", "--seed", "1"], stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        run.stdout.read(1)
        run.stdout.close()
        self.assertEqual(run.wait(timeout=SECONDS), -signal.SIGPIPE)
        run.stderr.close()
        reader, writer = os.pipe()
        os.close(reader)
        with os.fdopen(writer, "w") as closed:
            ignored = subprocess.run([SLUICE, "run", "-n", "3"], stdin=subprocess.DEVNULL, stdout=closed,
                                     stderr=subprocess.PIPE, text=True, restore_signals=False, timeout=SECONDS)
        self.assertEqual(ignored.returncode, 1)
        self.assertIn("Broken pipe", ignored.stderr)

    def test_an_interrupt_keeps_what_was_generated(self):
        out = self.folder / "out.json"
        with open(out, "w") as file:
            run = subprocess.Popen([SLUICE, "run", "--json", "--backend", "reference", "--threads", "1", "-n", "1000",
                                    "--stop", "xyzzy"], stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE)
            time.sleep(2)
            run.send_signal(signal.SIGINT)
            _, err = run.communicate(timeout=SECONDS)
        self.assertEqual(run.returncode, -signal.SIGINT)
        self.assertEqual(err, b"sluice: interrupted\n")
        result = json.loads(out.read_text())
        self.assertEqual(result["finish_reason"], "interrupted")
        self.assertTrue(result["ids"])

    def interrupted_by(self, sent, *command):
        """The contents of the folder after a command was interrupted as soon as it began to write there."""
        before = set(self.folder.iterdir())
        run = subprocess.Popen([SLUICE, *map(str, command)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)
        deadline = time.monotonic() + SECONDS
        while set(self.folder.iterdir()) == before and run.poll() is None and time.monotonic() < deadline:
            time.sleep(0.001)
        run.send_signal(sent)
        _, err = run.communicate(timeout=SECONDS)
        self.assertEqual(run.returncode, -sent, err)
        self.assertEqual(err, "sluice: interrupted; nothing was written\n")
        self.assertEqual(set(self.folder.iterdir()), before)

    def test_an_interrupted_writer_leaves_nothing(self):
        for sent in (signal.SIGINT, signal.SIGTERM):
            self.interrupted_by(sent, "random", "--geometry", LARGER, self.folder / "random")
        tokens = ",".join(["1"] * 150)
        self.interrupted_by(signal.SIGINT, "logits", STORY, "--tokens", tokens, "--threads", "1", "--out",
                            self.folder / "out.safetensors")
        model = self.folder / "model"
        self.run_well("random", "--geometry", "qwen3-30b-a3b:layers=1,experts=8,vocab=256", "--bits", "16", model)
        self.interrupted_by(signal.SIGINT, "convert", model, self.folder / "converted", "--threads", "1")

    def test_what_a_killed_writer_left_is_removed_by_the_next(self):
        run = subprocess.Popen([SLUICE, "random", "--geometry", LARGER, str(self.folder / "model")],
                               stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
        while not list(self.folder.iterdir()) and run.poll() is None:
            time.sleep(0.001)
        run.kill()
        run.wait(timeout=SECONDS)
        self.assertTrue([path for path in self.folder.iterdir() if path.name.endswith(".tmp")])
        self.run_well("random", "--geometry", GEOMETRY, self.folder / "model")
        self.assertEqual([path.name for path in self.folder.iterdir()], ["model"])

    def test_random_leaves_what_it_did_not_make(self):
        mine = self.folder / "model.partial"
        mine.mkdir()
        (mine / "precious").write_text("data")
        self.run_well("random", "--geometry", GEOMETRY, self.folder / "model")
        self.assertEqual((mine / "precious").read_text(), "data")
        self.expect_error("random", "--geometry", GEOMETRY, self.folder / "model", says=["exists"])

    def test_two_writers_to_one_place(self):
        runs = [subprocess.Popen([SLUICE, "random", "--geometry", GEOMETRY, str(self.folder / "model")],
                                 stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) for _ in range(2)]
        errors = [run.communicate(timeout=SECONDS)[1] for run in runs]
        self.assertIn(sorted(run.returncode for run in runs), ([0, 1], [0, 0]), errors)
        self.assertEqual([path.name for path in self.folder.iterdir()], ["model"])
        self.run_well("inspect", self.folder / "model")

    def test_a_limit_on_the_size_of_files_is_an_error(self):
        self.expect_error("random", "--geometry", GEOMETRY, self.folder / "model", preexec_fn=limited(1 << 16),
                          says=["File too large"])
        self.assertEqual(list(self.folder.iterdir()), [])

    def test_writers_say_what_they_did(self):
        made = json.loads(self.run_well("random", "--geometry", GEOMETRY, self.folder / "a", "--json"))
        self.assertGreater(made["bytes"], 0)
        self.assertIn("random weights", self.run_well("random", "--geometry", GEOMETRY, self.folder / "b"))
        packed = json.loads(self.run_well("convert", "--pack-experts", self.folder / "a", self.folder / "c", "--json"))
        self.assertEqual(packed["out"], str(self.folder / "c"))

    def test_errors_are_json_too(self):
        for arguments, kind, status in (
            (["inspect", "/no/such/folder", "--json"], "input", 1),
            (["run", "--json", "--seed", "x"], "usage", 2),
        ):
            run = self.expect_error(*arguments, status=status)
            error = json.loads(run.stdout)["error"]
            self.assertEqual(error["kind"], kind)
            self.assertIn(error["message"], run.stderr)

    def test_a_map_of_experts(self):
        import xml.etree.ElementTree as xml

        for options in ([], ["--expert-slots", "8"]):
            out = self.folder / "map.svg"
            self.run_well("run", "-n", "8", "--experts-map", out, *options)
            texts = [node.text for node in xml.parse(out).getroot().iter("{http://www.w3.org/2000/svg}text")]
            for label in ("expert", "layer", "never", "0"):
                self.assertIn(label, texts)
            self.assertTrue(any("delta-story" in text for text in texts))
        self.expect_error("run", "-n", "1", "--experts-map", "/no/such/folder/x.svg", says=["/no/such/folder/x.svg"])

    def test_names_from_files_cannot_command_the_terminal(self):
        model = self.copy(MODELS / "qwen3_moe")
        config = json.loads((model / "config.json").read_text())
        config["model_type"] = "\033]0;owned\007\x9b31m"
        (model / "config.json").write_text(json.dumps(config))
        story = self.copy(STORY, "story")
        (story / "chat_template.jinja").write_text("{{ raise_exception('a\033[2Jb\\x9bc') }}")
        for arguments in (["inspect", model], ["run", "-m", story, "hello"],
                          ["inspect", str(self.folder / "no\033[31msuch")]):
            with self.subTest(arguments):
                text = self.expect_error(*arguments).stderr
                self.assertFalse([c for c in text[:-1] if ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0], repr(text))

    def test_perplexity_counts_all_of_a_long_text(self):
        text = self.folder / "text.txt"
        text.write_text(STORY_TEXT * 4)

        def measure(*options):
            return json.loads(self.run_well("perplexity", "delta-story", text, "--json", *options))

        whole, cut = measure(), measure("--ctx", "64")
        overlapping = measure("--ctx", "64", "--stride", "32")
        self.assertEqual(whole["windows"], 1)
        self.assertGreater(cut["windows"], 2)
        self.assertEqual({run["tokens"] for run in (whole, cut, overlapping)}, {whole["tokens"]})
        # Less context predicts worse; the loss of a part must not be divided by the bytes of the complete text.
        self.assertLess(whole["bits_per_byte"], overlapping["bits_per_byte"])
        self.assertLess(overlapping["bits_per_byte"], cut["bits_per_byte"])


STORY_TEXT = ("Once upon a time there was a little dog named Max. He liked to play in the park with his friend Lily. "
              "One day they found a big red ball near the tree. They were very happy and played until the sun went down. ")


class Files(CommandTest):
    def test_pipes_and_devices_are_no_model_files(self):
        for name in ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja", "generation_config.json"):
            for kind in ("pipe", "zero"):
                with self.subTest(name=name, kind=kind):
                    model = self.copy(STORY, f"{kind}-{name}")
                    (model / name).unlink()
                    os.mkfifo(model / name) if kind == "pipe" else (model / name).symlink_to("/dev/zero")
                    self.expect_error("run", "-m", model, "-n", "1", says=[name, "regular file"])

    def test_a_tokenizer_that_is_missing_or_empty(self):
        model = self.copy(STORY, "missing")
        (model / "tokenizer.json").unlink()
        self.expect_error("run", "-m", model, "-n", "1", says=["tokenizer.json"])
        model = self.copy(STORY, "empty")
        tokenizer = json.loads((model / "tokenizer.json").read_text())
        tokenizer["model"]["vocab"], tokenizer["model"]["merges"], tokenizer["added_tokens"] = {}, [], []
        (model / "tokenizer.json").write_text(json.dumps(tokenizer))
        self.expect_error("run", "-m", model, "-n", "1", says=["vocabulary is empty"])

    def test_a_model_file_that_is_cut_off_while_it_is_used(self):
        model = self.copy(STORY)
        run = subprocess.Popen([SLUICE, "run", "-m", str(model), "-n", "1000", "--stop", "xyzzy", "--raw", "Once"],
                               stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        run.stdout.read(8)
        os.truncate(model / "model.safetensors", 4096)
        _, err = run.communicate(timeout=SECONDS)
        self.assertEqual(run.returncode, 1)
        self.assertEqual(err, "sluice: a model file was cut off, or its disk failed, while it was read\n")


if __name__ == "__main__":
    unittest.main()
