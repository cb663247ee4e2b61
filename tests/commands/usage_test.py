#!/usr/bin/env python3
"""Usage of the command line: what it accepts, what it rejects before loading anything, and its help.

    usage_test.py SLUICE FOLDER_OF_TINY_MODELS
"""

import json
import re
import subprocess
import sys
import unittest

from harness import MODELS, SLUICE, CommandTest, sanitized, start


class Usage(CommandTest):
    def test_exit_status(self):
        for arguments, status in {
            ("--help",): 0,
            ("--version",): 0,
            ("help",): 0,
            ("help", "run"): 0,
            ("run", "--help"): 0,
            (): 2,
            ("no-such-command",): 2,
            ("--no-such-option",): 2,
            ("run", "--no-such-option"): 2,
            ("run", "one", "two"): 2,
            ("run", "-n"): 2,
            ("logits", "delta-story"): 2,
            ("inspect", "no-such-model"): 1,
            ("verify", "--op", "no-such-op"): 1,
            ("verify", "--op", "add", "--cases", "1"): 0,
            ("help", "no-such-command"): 2,
            ("version", "--json"): 0,
            ("list", "--names"): 0,
            ("list", "more"): 2,
            ("pull",): 2,
            ("pull", "a/b/c"): 2,
            ("rm",): 2,
            ("rm", "no-such-model"): 1,
            ("tokenize",): 2,
            ("tokenize", "Once"): 0,
            ("template",): 2,
            ("template", "/dev/null"): 1,
            ("plan",): 2,
            ("plan", "no-such-model"): 1,
            ("bench",): 2,
            ("bench", "no-such-model"): 1,
            ("perplexity", "delta-story"): 2,
            ("perplexity", "delta-story", "/no/such/file"): 1,
            ("convert", "a"): 2,
            ("convert", "/no/such/folder", "/no/such/place"): 1,
            ("random", "/no/such/place"): 2,
            ("random", "--geometry", "no-such-geometry", "/no/such/place"): 1,
            ("op", "no-such-op", "--in", "a", "--out", "b"): 1,
            ("op", "--describe", "add"): 0,
            ("chat", "--resume", "/"): 1,
            ("chat", "-n", "1"): 0,
            ("run", "-n", "0"): 0,
            ("run", "-n", "1", "--memory", "1MB"): 1,
        }.items():
            with self.subTest(arguments):
                self.assertEqual(start(*arguments).returncode, status)

    def test_numbers_are_what_was_typed_or_refused(self):
        """Nothing is clamped, wrapped or truncated; the model is not even searched."""
        for option, values in {
            "-n": ["-1", "1e3", "12x", "", str(2**63 - 1), str(2**63), str(10**20)],
            "--seed": ["-1", str(2**64), "0x10", "1.5"],
            "--ctx": ["-1", str(2**63)],
            "--temperature": ["-0.1", "nan", "inf", "1e999", "warm"],
            "--top-p": ["1.1", "-1"],
            "--top-k": ["-1", str(2**31)],
            "--threads": ["-1", "100000", "two"],
            "--memory": ["-1", "6XB", "GB", "1e30GB", "six"],
            "--prefill-chunk": ["-1"],
            "--expert-slots": ["-2"],
            "--miss": ["foo"],
            "--expert-policy": ["foo", "static:"],
            "--backend": ["abacus"],
            "--kv-bits": ["7", "4,7", "bf17"],
            "--stop": [""],
        }.items():
            for value in values:
                with self.subTest(option=option, value=value):
                    self.expect_error("run", "-m", "no-such-model", option, value, says=[value, "expected"], status=2)
        for arguments in (["verify", "--cases", "-1"], ["bench", "-r", "0"], ["plan", "-b", "0"],
                          ["perplexity", "m", "f", "--stride", "-1"], ["convert", "a", "b", "--mixed", "foo"]):
            with self.subTest(arguments):
                self.expect_error(*arguments, says=["expected"], status=2)

    def test_sizes_with_fractions_and_units(self):
        def budget(size):
            plan = json.loads(self.run_well("plan", MODELS / "qwen3_moe", "--memory", size, "--json"))
            return plan["places"][-1]["budget_bytes"]

        for size, bytes_ in {"0.15GB": 150_000_000, "128MiB": 128 << 20, "160000000": 160_000_000,
                             "0.125 gb": 125_000_000}.items():
            with self.subTest(size):
                self.assertEqual(budget(size), bytes_)

    def test_a_plan_does_not_contradict_itself(self):
        """For any budget: contexts that fit, experts that stay, and the budget that suffices."""
        for memory in ("1GB", "2GB", "4GB", "19GB", "20GB", "21GB", "64GB"):
            arguments = ["plan", "--geometry", "qwen3.6-35b-a3b", "--memory", memory]
            place = json.loads(self.run_well(*arguments, "--json"))["places"][-1]
            text = self.run_well(*arguments).split("CPU with")[1]
            with self.subTest(memory, text=text):
                for context in place["contexts"]:
                    self.assertEqual(context["fits"], context["tokens"] <= place["longest_context"])
                    self.assertLessEqual(context["fits"], context["with_experts_elsewhere"])
                runs = place["longest_context"] > 0
                self.assertEqual("the weights do not fit" in text, not runs)
                self.assertEqual("longest context" in text, runs)
                if not runs:
                    self.assertNotIn("per layer in memory", text)
                    self.assertGreater(place["smallest_budget_bytes"], place["budget_bytes"])
                elif place["expert_slots"] == 0:  # all experts stay; evicting some gives more context
                    self.assertEqual("with some experts on disk" in text,
                                     any(one["with_experts_elsewhere"] > one["fits"] for one in place["contexts"]))

    def test_a_small_model_runs_within_a_small_limit(self):
        """The smallest limit that is named suffices, the text is unchanged, and memory stays within it."""
        told = self.expect_error("run", "--memory", "1MB", "-n", "20", "--seed", "1", says=["would do"]).stderr
        least = int(re.search(r"--memory (\d+)", told)[1])
        self.assertLess(least, 50_000_000)
        want = json.loads(self.run_well("run", "-n", "20", "--seed", "1", "--json"))
        for limit in (least + 1_000_000, 60_000_000):
            got = json.loads(self.run_well("run", "-n", "20", "--seed", "1", "--json", "--memory", limit))
            self.assertEqual(got["text"], want["text"])
            if not sanitized():
                self.assertLess(got["peak_bytes"], limit)

    @unittest.skipIf(sanitized(), "a sanitizer takes memory of its own")
    def test_measuring_stays_within_the_limit(self):
        for command in (["plan", "delta-story"], ["bench", "delta-story", "-p", "4", "-n", "2", "-r", "1"]):
            for limit in (100_000_000, 300_000_000):
                with self.subTest(command=command, limit=limit):
                    used = self.peak_of(*command, "--memory", limit)
                    self.assertLess(used, limit)
                    self.assertGreater(used, limit // 4)  # otherwise it measures a cache

    def peak_of(self, *arguments):
        """The peak memory of a command in bytes."""
        script = ("import resource, subprocess, sys; subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, check=True); "
                  "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024)")
        run = subprocess.run([sys.executable, "-c", script, SLUICE, *map(str, arguments)], capture_output=True, text=True,
                             check=True)
        return int(run.stdout)

    def test_the_largest_seed_is_a_seed(self):
        run = json.loads(self.run_well("run", "-n", "1", "--seed", 2**64 - 1, "--json"))
        self.assertEqual(run["seed"], 2**64 - 1)

    def test_did_you_mean(self):
        for arguments, meant in {
            ("rnu",): "'run'",
            ("inspct",): "'inspect'",
            ("run", "--temprature", "1"): "'--temperature'",
            ("run", "--top_k=4"): "'--top-k'",
            ("help", "inspct"): "'inspect'",
        }.items():
            with self.subTest(arguments):
                self.expect_error(*arguments, says=["did you mean", meant], status=2)
        self.assertNotIn("did you mean", start("xyzzy").stderr)
        self.expect_error("xyzzy", says=["(see 'sluice help')"], status=2)

    def test_help_is_wrapped_and_has_examples(self):
        commands = re.findall(r"^  (\w+) {2,}", self.run_well("help").split("Commands:")[1].split("Options:")[0], re.M)
        self.assertIn("run", commands)
        for command in commands:
            with self.subTest(command):
                text = self.run_well("help", command)
                self.assertEqual(text, self.run_well(command, "--help"))
                self.assertIn(f"Usage: sluice {command}", text)
                self.assertLessEqual(max(map(len, text.split("Examples:")[0].splitlines())), 80)
                self.assertNotIn("\033", text)
        self.assertIn("Examples:", self.run_well("help", "run"))

    def test_the_manual_page_and_the_completions_know_every_option(self):
        page = self.run_well("help", "--man")
        scripts = {shell: self.run_well("help", "--completions", shell) for shell in ("bash", "zsh", "fish")}
        for option in re.findall(r"(--[a-z-]+)", self.run_well("help", "run").split("Examples:")[0]):
            self.assertIn(option.replace("-", "\\-"), page)
            for shell, script in scripts.items():
                self.assertIn(option[2:], script, shell)
        # bash itself completes with the script.
        done = subprocess.run(
            ["bash", "-c", scripts["bash"] + "\nCOMP_WORDS=(sluice run --temp); COMP_CWORD=2; _sluice; echo \"$COMPREPLY\""],
            capture_output=True, text=True, check=True)
        self.assertEqual(done.stdout.strip(), "--temperature")

    def test_version(self):
        text = self.run_well("--version")
        self.assertRegex(text, r"^sluice \d+\.\d+\.\d+ \(\S.*\)\n")
        self.assertRegex(text, r"\ncpu +\S")
        version = json.loads(self.run_well("version", "--json"))
        self.assertEqual([backend["name"] for backend in version["backends"]], ["cpu", "cuda"])

    def test_a_stop_text_leaves_the_prompt_alone(self):
        def text(*arguments):
            return json.loads(self.run_well("run", "--json", "--seed", "1", "-n", "30", *arguments))

        plain = text("Once upon a time there was a frog")
        stopped = text("--stop", "xyzzy", "Once upon a time there was a frog")
        self.assertEqual(stopped["text"], plain["text"])
        self.assertEqual(stopped["prompt_tokens"], plain["prompt_tokens"])
        two = text("--stop", plain["text"][10:14], "--stop", plain["text"][4:6], "Once upon a time there was a frog")
        self.assertEqual(two["text"], plain["text"][:4])
        self.assertEqual(two["finish_reason"], "stop")

    def test_the_prompt_comes_from_anywhere(self):
        prompt = "Once upon a time there was a frog"
        file = self.folder / "prompt.txt"
        file.write_text(prompt)
        options = ["run", "--json", "--seed", "1", "-n", "8"]
        want = json.loads(self.run_well(*options, prompt))
        for name, (arguments, typed) in {
            "pipe": ([], prompt + "\n"),
            "dash": (["-"], prompt),
            "file": (["-f", file], None),
            "at": ([f"@{file}"], None),
            "file -": (["-f", "-"], prompt),
        }.items():
            with self.subTest(name):
                more = {} if typed is None else {"input": typed}
                got = json.loads(self.run_well(*options, *arguments, **more))
                self.assertEqual((got["text"], got["prompt_tokens"]), (want["text"], want["prompt_tokens"]))
        ids = ",".join(map(str, json.loads(self.run_well("tokenize", prompt, "--json"))["ids"]))
        self.assertEqual(json.loads(self.run_well(*options, "--prompt-tokens", ids))["text"], want["text"])
        self.expect_error(*options, "-f", "/no/such/file", says=["/no/such/file"])
        self.expect_error(*options, "-f", file, "and this", says=["twice"])

    def test_a_seed_is_drawn_unless_given(self):
        runs = [json.loads(self.run_well("run", "--json", "-n", "12", "--temperature", "1")) for _ in range(3)]
        self.assertGreater(len({run["seed"] for run in runs}), 1)
        again = json.loads(self.run_well("run", "--json", "-n", "12", "--temperature", "1", "--seed", runs[0]["seed"]))
        self.assertEqual(again["text"], runs[0]["text"])
        self.assertIn(f"seed {runs[0]['seed']}", start("run", "--stats", "-n", "1", "--seed", runs[0]["seed"]).stderr)

    def test_sampling_defaults_are_the_models(self):
        model = self.copy(self.story_folder())
        config = model / "generation_config.json"
        options = ["run", "-m", model, "--raw", "--json", "-n", "20", "--seed", "7", "Once upon a time"]

        def text(settings, *more):
            config.write_text(json.dumps({"eos_token_id": [4095, 4093], **settings}))
            return json.loads(self.run_well(*options, *more))["text"]

        greedy = text({"do_sample": True, "temperature": 1.5}, "--temperature", "0")
        self.assertEqual(text({"do_sample": True, "temperature": 1.5, "top_k": 1}), greedy)
        self.assertEqual(text({"do_sample": False, "temperature": 1.5}), greedy)
        self.assertNotEqual(text({"do_sample": True, "temperature": 1.5}), greedy)
        self.assertNotEqual(text({"do_sample": True, "temperature": 1.5, "top_k": 1}, "--top-k", "0"), greedy)

    def story_folder(self):
        from harness import STORY

        return STORY

    def test_tokenize_is_its_own_inverse(self):
        text = "Once upon a time, a frög 🐸 said:\n\thello"
        ids = self.run_well("tokenize", text).strip()
        self.assertEqual(self.run_well("tokenize", "--decode", ids), text + "\n")
        self.expect_error("tokenize", "--decode", "1,99999999", says=["99999999", "4095"])
        self.expect_error("tokenize", "--decode", "1,x", says=["'x'"])
        both = json.loads(self.run_well("tokenize", "Once upon", "--json"))
        self.assertEqual("".join(both["pieces"]), "Once upon")

    def test_template(self):
        model = self.copy(self.story_folder())
        (model / "chat_template.jinja").write_text(
            "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}{{ tools | length if tools else 'none' }}"
            "{{ mood }}{% if add_generation_prompt %}<answer>{% endif %}")
        messages = [{"role": "user", "content": "Hé"}]
        self.assertEqual(self.run_well("template", "-m", model, "-", input=json.dumps(messages)),
                         "<user>Hénone<answer>")
        file = self.folder / "chat.json"
        file.write_text(json.dumps({"messages": messages, "tools": [{"type": "function"}], "mood": "!"}))
        self.assertEqual(self.run_well("template", "-m", model, file, "--no-generation-prompt"), "<user>Hé1!")
        self.expect_error("template", "-m", model, "-", input="[", says=["'-'"])


if __name__ == "__main__":
    unittest.main()
