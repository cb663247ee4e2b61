#!/usr/bin/env python3
"""Structured answers: `sluice run` with a schema, a regular expression, a grammar, choices and tools.

    answer_test.py SLUICE FOLDER_OF_TINY_MODELS
"""

import json
import unittest

import jsonschema

from harness import CommandTest, start

SCHEMA = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 30}, "legs": {"type": "integer", "minimum": 0, "maximum": 8}},
    "required": ["name", "legs"],
    "additionalProperties": False,
}
TOOLS = [{"type": "function", "function": {"name": "describe", "parameters": SCHEMA}}]


class Answers(CommandTest):
    def answer(self, *arguments):
        run = start("run", "Tell me of an animal.", "--seed", "3", "-n", "200", "--json", *arguments)
        self.assertEqual(run.returncode, 0, run.stderr)
        return json.loads(run.stdout)

    def file(self, name, content):
        path = self.folder / name
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path

    def test_a_schema_holds_at_any_temperature(self):
        schema = self.file("schema.json", SCHEMA)
        for temperature in ("0", "1.5"):
            result = self.answer("--schema", schema, "--temperature", temperature)
            self.assertEqual(result["finish_reason"], "stop")
            jsonschema.validate(json.loads(result["text"]), SCHEMA)
            self.assertEqual(result["answer"]["content"], result["text"])

    def test_expressions_grammars_and_choices(self):
        text = self.answer("--regex", "[A-Z][a-z]{2,8}( [a-z]{2,8}){2}\\.")["text"]
        self.assertRegex(text, r"^[A-Z][a-z]{2,8}( [a-z]{2,8}){2}\.$")
        grammar = self.file("grammar.gbnf", 'root ::= "a " animal " and a " animal\nanimal ::= "cat" | "dog"\n')
        self.assertRegex(self.answer("--grammar", grammar)["text"], "^a (cat|dog) and a (cat|dog)$")
        self.assertRegex(self.answer("--json-object")["text"], r"^\s*\{")
        self.assertIn(self.answer("--choice", "a cat", "--choice", "a dog")["text"], ["a cat", "a dog"])

    def test_a_tool_is_called(self):
        result = self.answer("--tools", self.file("tools.json", TOOLS), "--tool-choice", "describe")
        self.assertEqual(result["finish_reason"], "stop")
        for call in result["answer"]["calls"]:
            self.assertEqual(call["name"], "describe")
            jsonschema.validate(call["arguments"], SCHEMA)
        self.assertTrue(result["answer"]["calls"])

    def test_an_answer_that_is_cut_says_so(self):
        tools = self.file("tools.json", TOOLS)
        answer = self.answer("--tools", tools, "--tool-choice", "describe", "-n", "16")["answer"]
        self.assertEqual(answer["calls"], [])
        self.assertIn("name", answer["content"])
        self.assertIn("cannot be parsed", answer["note"])
        run = start("run", "Tell me of an animal.", "-n", "4", "--schema", self.file("schema.json", SCHEMA))
        self.assertEqual(run.returncode, 0, run.stderr)
        self.assertIn("cut after 4 tokens", run.stderr)
        run = start("run", "Tell me of an animal.", "-n", "4")
        self.assertEqual(run.stderr, "")

    def test_what_is_wrong_is_said_before_a_model_answers(self):
        bad = self.file("bad.json", {"type": "object", "properties": {"a": {"type": "string", "format": "regex"}}})
        tools = self.file("tools.json", TOOLS)
        for says, status, *arguments in [
            ("#/properties/a/format", 1, "--schema", bad),
            ("absent.json", 1, "--schema", self.folder / "absent.json"),
            ("JSON", 1, "--schema", self.file("cut.json", '{"type"')),
            ("regular expression", 1, "--regex", "a("),
            ("--choice", 2, "--regex", "a", "--choice", "b"),
            ("--tools", 2, "--tool-choice", "required"),
            ("array", 1, "--tools", self.file("no.json", "{}")),
            ("'other'", 1, "--tools", tools, "--tool-choice", "other"),
            ("raw", 1, "--tools", tools, "--raw"),
        ]:
            with self.subTest(arguments):
                self.expect_error("run", "Hello", *arguments, says=[says], status=status)


if __name__ == "__main__":
    unittest.main()
