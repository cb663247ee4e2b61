#!/usr/bin/env python3
"""The output of --json matches docs/json-output.schema.json, for every command that has the option.

    json_test.py SLUICE FOLDER_OF_TINY_MODELS
"""

import json
import pathlib
import re
import subprocess
import unittest

import jsonschema

from harness import MODELS, SLUICE, CommandTest, environment, start
from hub_server import Hub

SCHEMA = json.loads((pathlib.Path(__file__).parents[2] / "docs/json-output.schema.json").read_text())
GEOMETRY = "qwen3-30b-a3b:layers=1,experts=8,vocab=256"


class JsonOutput(CommandTest):
    def check(self, command, *arguments, status=0, definition=None, **options):
        run = start(command, *arguments, "--json", **options)
        self.assertEqual(run.returncode, status, run.stderr)
        schema = {"$ref": f"#/$defs/{definition or command}", "$defs": SCHEMA["$defs"]}
        printed = json.loads(run.stdout)
        jsonschema.Draft202012Validator(schema).validate(printed)
        return printed

    def test_every_command_prints_what_its_schema_says(self):
        text = self.folder / "text.txt"
        text.write_text("Once upon a time there was a dog. " * 4)
        made = self.folder / "made"
        machines = self.folder / "machines.json"
        machines.write_text(json.dumps({"nodes": 2 * [{"memory_gb": 16, "gb_per_s": 40}],
                                        "network": {"gbit_per_s": 1, "round_trip_us": 150}}))
        cases = [
            ("run", "-n", "2"),
            ("run", "-n", "2", "--expert-slots", "8"),
            ("run", "-n", "2", "--choice", "yes", "--choice", "no"),
            ("inspect", "delta-story"),
            ("plan", MODELS / "qwen3_moe", "--memory", "200MB"),
            ("plan", "--geometry", "qwen3.6-35b-a3b", "--memory", "1GB", "--vram", "24GB"),
            ("plan", "--geometry", "qwen3.6-35b-a3b", "--memory", "1GB", "--nodes", machines),
            ("tokenize", "hello"),
            ("tokenize", "--decode", "1,2"),
            ("perplexity", "delta-story", text),
            ("perplexity", "delta-story", text, "--ctx", "16", "--kv-bits", "4", "--against", "bf16"),
            ("random", "--geometry", GEOMETRY, "--bits", "16", made),
            ("convert", made, self.folder / "converted"),
            ("convert", "--pack-experts", self.folder / "converted", self.folder / "packed"),
            ("bench", MODELS / "qwen3_moe", "-p", "4", "-n", "2", "-r", "1", "--memory", "200MB"),
            ("bench", "--ops", "--op", "add", "--seconds", "0.01", "--memory", "100MB"),
            ("bench", "delta-story", "--trace", "4"),
            ("verify", "--op", "add", "--cases", "2"),
            ("op", "--list"),
            ("op", "--describe", "rms_norm"),
            ("list",),
            ("cache", "list", made),
            ("version",),
        ]
        for command, *arguments in cases:
            with self.subTest([command, *arguments]):
                self.check(command, *arguments)
        with self.subTest("template"):
            self.check("template", "-", input='[{"role": "user", "content": "hello"}]')
        with self.subTest("pull"):
            self.check_pull()
        with self.subTest("serve"):
            self.check_serve()
        tested = {command for command, *_ in cases} | {"template", "pull", "serve", "error"}
        self.assertEqual(tested, set(SCHEMA["$defs"]), "a schema is not held to")
        offered = {command for command in self.commands() if "--json" in self.run_well("help", command)}
        self.assertEqual(offered, tested - {"error"}, "a command that prints JSON has no schema")

    def check_serve(self):
        command = [SLUICE, "serve", "--port", "0", "-m", MODELS / "qwen3_moe", "--json"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
            printed = json.loads(server.stdout.readline())
            server.terminate()
        jsonschema.Draft202012Validator({"$ref": "#/$defs/serve", "$defs": SCHEMA["$defs"]}).validate(printed)
        self.assertRegex(printed["url"], "^http://127.0.0.1:[0-9]+$")

    def check_pull(self):
        hub = Hub("Owner/Tiny", {path.name: path.read_bytes() for path in (MODELS / "qwen3_moe").iterdir()})
        self.addCleanup(hub.close)
        options = {"env": environment(HF_ENDPOINT=hub.url, XDG_DATA_HOME=str(self.folder), no_proxy="*")}
        if "without libcurl" not in start("pull", "Owner/Tiny", **options).stderr:
            self.check("pull", "Owner/Tiny", **options)

    def test_profiles(self):
        layers = json.loads((MODELS / "qwen3_moe" / "config.json").read_text())["num_hidden_layers"]
        run = self.check("bench", MODELS / "qwen3_moe", "-p", "4", "-n", "2", "-r", "1", "--profile")
        for profile in (run["prompt_profile"], run["profile"]):
            self.assertTrue(all(row["us"] > 0 and row["bytes"] > 0 for row in profile), profile)
            experts = sum(row["calls"] for row in profile if row["op"] == "expert_matmul")
            self.assertEqual(experts, layers)

    def commands(self):
        return re.findall(r"^  (\w+) {2,}", self.run_well("help").split("Commands:")[1].split("Options:")[0], re.M)

    def test_errors(self):
        self.check("inspect", "/no/such/folder", status=1, definition="error")
        self.check("run", "--seed", "x", status=2, definition="error")
        self.check("tokenize", status=2, definition="error")
        self.check("serve", "-m", "/no/such/folder", status=1, definition="error")


if __name__ == "__main__":
    unittest.main()
