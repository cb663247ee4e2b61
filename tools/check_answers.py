#!/usr/bin/env python3
"""Generates answers with random schemas at a high temperature, and checks every answer that ended by itself against its schema.

    tools/check_answers.py SLUICE MODEL [--schemas N] [--tokens N] [--seed N]

Three rounds: a document, a document after thinking, and a tool call. Any model will do: its template is replaced if a round
needs another one. Fails if an answer is invalid under its schema, or if fewer than 95% end.
"""

import argparse
import concurrent.futures
import json
import pathlib
import random
import subprocess
import sys
import tempfile

import jsonschema

THINKING = """{%- for message in messages %}{{- '<|im_start|>' + message.role + '\\n' }}
{%- if message.reasoning_content %}{{- '<think>\\n' + message.reasoning_content + '\\n</think>\\n\\n' }}{%- endif %}
{{- message.content }}
{%- for call in message.tool_calls or [] %}
{{- '\\n<tool_call>\\n{"name": "' + call.function.name + '", "arguments": ' + call.function.arguments | tojson + '}\\n</tool_call>' }}
{%- endfor %}{{- '<|im_end|>\\n' }}{%- endfor %}
{%- if add_generation_prompt %}{{- '<|im_start|>assistant\\n<think>\\n' }}{%- endif %}"""
NAMES = ["name", "age", "tags", "place", "size", "color", "id", "note", "größe", "a b", "items"]


def random_schema(r, depth=0):
    kinds = ["string", "integer", "number", "boolean", "enum", "pattern", "format", "null", "const"]
    if depth < 3:
        kinds += ["object"] * 3 + ["array"] * 2 + ["anyOf", "ref"]
    kind = r.choice(["object", "array", "anyOf"]) if depth == 0 else r.choice(kinds)
    if kind == "string":
        least = r.randint(0, 4)
        return {"type": "string", "minLength": least, "maxLength": least + r.randint(0, 30)}
    if kind == "integer":
        low = r.randint(-1000, 1000)
        return {"type": "integer", "minimum": low, "maximum": low + r.randint(0, 5000)}
    if kind == "number":
        low = round(r.uniform(-50, 50), 2)
        return {"type": "number", "minimum": low, "exclusiveMaximum": low + r.randint(1, 100)}
    if kind == "enum":
        return {"enum": r.sample(["red", "green", 7, None, True, "a\"b", 1.5, "日本"], r.randint(1, 5))}
    if kind == "const":
        return {"const": r.choice(["fixed", 3, False, {"a": [1]}])}
    if kind == "pattern":
        return {"type": "string", "pattern": r.choice(["^[A-Z]{2}[0-9]{3}$", "^(ab|c)+d$", "^\\d{1,3}-[a-f]+$"]), "maxLength": 20}
    if kind == "format":
        return {"type": "string", "format": r.choice(["date", "uuid", "ipv4", "ipv6"])}
    if kind == "array":
        least = r.randint(0, 2)
        return {"type": "array", "items": random_schema(r, depth + 1), "minItems": least, "maxItems": least + r.randint(0, 3)}
    if kind == "anyOf":
        return {"anyOf": [random_schema(r, depth + 1) for _ in range(r.randint(1, 3))]}
    if kind == "ref":
        return {"$ref": "#/$defs/shared"}
    if kind == "object":
        names = r.sample(NAMES, r.randint(1, 4))
        properties = {name: random_schema(r, depth + 1) for name in names}
        return {"type": "object", "properties": properties, "required": [n for n in names if r.random() < 0.6],
                "additionalProperties": False}
    return {"type": kind}


def make_schema(seed, must_be_object):
    r = random.Random(seed)
    schema = random_schema(r)
    while must_be_object and schema.get("type") != "object":
        schema = random_schema(r)
    return {"$defs": {"shared": random_schema(r, 3)}, **schema}


class Round:
    def __init__(self, name, model, options, folder, arguments):
        self.name, self.model, self.options, self.folder, self.arguments = name, model, options, folder, arguments

    def answer(self, seed):
        """Whether the answer ended, and its error, if any."""
        schema = make_schema(seed, self.name == "tools")
        path = self.folder / f"{self.name}-{seed}.json"
        tools = [{"type": "function", "function": {"name": "f", "parameters": schema, "strict": True}}]
        path.write_text(json.dumps(tools if self.name == "tools" else schema))
        given = ["--tools", path, "--tool-choice", "f"] if self.name == "tools" else ["--schema", path]
        run = subprocess.run([self.arguments.sluice, "run", "Write something.", "-m", self.model, "--seed", str(seed), "--json",
                              "--temperature", "1.5", "--top-k", "0", "--top-p", "1", "-n", str(self.arguments.tokens),
                              "--threads", "1", *given, *self.options],
                             capture_output=True, text=True)
        if run.returncode != 0:
            return False, f"seed {seed}: {run.stderr.strip()}"
        result = json.loads(run.stdout)
        if result["finish_reason"] != "stop":
            return False, None
        answer = result["answer"]
        try:
            found = answer["calls"][0]["arguments"] if self.name == "tools" else json.loads(answer["content"])
            jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker()).validate(found)
        except (IndexError, ValueError, jsonschema.ValidationError) as error:
            return True, f"seed {seed}: {answer}: {error}"
        return True, None

    def run(self):
        with concurrent.futures.ThreadPoolExecutor(self.arguments.jobs) as pool:
            results = list(pool.map(self.answer, range(self.arguments.seed, self.arguments.seed + self.arguments.schemas)))
        ended, wrong = sum(r[0] for r in results), [r[1] for r in results if r[1]]
        print(f"{self.name}: {ended} of {len(results)} answers ended within {self.arguments.tokens} tokens, {len(wrong)} wrong")
        for message in wrong[:10]:
            print(message)
        return not wrong and ended >= 0.95 * len(results)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sluice")
    parser.add_argument("model", type=pathlib.Path)
    for name, default in [("--schemas", 200), ("--tokens", 512), ("--seed", 0), ("--jobs", 2)]:
        parser.add_argument(name, type=int, default=default)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        thinker = folder / "thinker"
        thinker.mkdir()
        for file in arguments.model.resolve().iterdir():
            if file.suffix != ".jinja":
                (thinker / file.name).symlink_to(file)
        (thinker / "chat_template.jinja").write_text(THINKING)
        limit = ["--max-thinking", "48"]
        rounds = [Round("documents", arguments.model, [], folder, arguments), Round("thinking", thinker, limit, folder, arguments),
                  Round("tools", thinker, limit, folder, arguments)]
        return 0 if all([one.run() for one in rounds]) else 1


if __name__ == "__main__":
    sys.exit(main())
