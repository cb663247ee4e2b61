#!/usr/bin/env python3
"""Measures how much of an agent's prompts a server with a tiny model computes again in each turn.

    agent_trace.py SLUICE [--turns N] [--write FILE]    FILE: a line of JSON per prompt, for bench/prefix_traces

The conversation is synthetic and always the same: 40 tools, then calls, results, thinking and a few questions, about 30,000
tokens in total. Each prompt is rendered by a chat template of a public model (tests/data/text/chat_template) and tokenized.
"""

import argparse
import http.client
import json
import pathlib
import random
import shutil
import statistics
import subprocess
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = ("the a file path of error line in function returns value list when reading config user test build cache "
         "server request token page state result none open close write index name type main module import").split()


def sentence(rng, words):
    return " ".join(rng.choice(WORDS) for _ in range(words)).capitalize() + "."


def tool(rng, number):
    names = rng.sample(WORDS, 4)
    properties = {name: {"type": "string", "description": sentence(rng, 7)} for name in names}
    return {"type": "function", "function": {"name": f"tool_{number}_{names[0]}", "description": sentence(rng, 18),
            "parameters": {"type": "object", "properties": properties, "required": names[:2]}}}


def conversation(turns):
    """The messages and tools of each request."""
    rng = random.Random(22)
    tools = [tool(rng, number) for number in range(40)]
    messages = [{"role": "system", "content": "\n".join(sentence(rng, 14) for _ in range(40))}]
    for turn in range(turns):
        if turn % 10 == 0:
            messages.append({"role": "user", "content": sentence(rng, 40)})
        yield messages, tools
        if turn % 10 == 9:
            messages.append({"role": "assistant", "content": sentence(rng, 60)})
            continue
        function = rng.choice(tools)["function"]
        arguments = {name: sentence(rng, 6) for name in function["parameters"]["required"]}
        messages.append({"role": "assistant", "content": "", "reasoning_content": sentence(rng, 30),
                         "tool_calls": [{"type": "function", "function": {"name": function["name"], "arguments": arguments}}]})
        messages.append({"role": "tool", "content": "\n".join(sentence(rng, 12) for _ in range(rng.randrange(1, 8)))})


class Model:
    """A tiny model with room for long prompts, and a tokenizer with a real template, in a folder."""

    def __init__(self, sluice, folder):
        self.sluice, self.text, self.model = sluice, folder / "text", folder / "model"
        shutil.copytree(ROOT / "models/delta-story", self.text)
        template = json.loads((ROOT / "tests/data/text/chat_template/chats.json").read_text())["templates"][0]
        (self.text / "chat_template.jinja").write_text(template)
        shutil.copytree(ROOT / "tests/data/models/qwen3_next", self.model)
        config = json.loads((self.model / "config.json").read_text())
        self.vocab = config["vocab_size"]
        config["max_position_embeddings"] = 1 << 16
        (self.model / "config.json").write_text(json.dumps(config))

    def run(self, *arguments, text):
        return subprocess.run([self.sluice, *arguments], input=text, text=True, capture_output=True, check=True).stdout

    def prompt(self, messages, tools):
        text = self.run("template", "-m", self.text, "-", text=json.dumps({"messages": messages, "tools": tools}))
        return json.loads(self.run("tokenize", "-m", self.text, "--json", "-", text=text))["ids"]


def agreeing(a, b):
    return next((i for i, (x, y) in enumerate(zip(a, b)) if x != y), min(len(a), len(b)))


def recomputed(port, ids):
    connection = http.client.HTTPConnection("127.0.0.1", port)
    connection.request("POST", "/v1/completions", json.dumps({"prompt": ids, "max_tokens": 1}))
    answer = connection.getresponse()
    body = json.loads(answer.read())
    assert answer.status == 200, body
    return body["usage"]["prompt_tokens"] - body["usage"]["prompt_tokens_details"]["cached_tokens"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sluice")
    parser.add_argument("--turns", type=int, default=100)
    parser.add_argument("--write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        model = Model(options.sluice, pathlib.Path(folder))
        prompts = [model.prompt(messages, tools) for messages, tools in conversation(options.turns)]
        if options.write:
            pathlib.Path(options.write).write_text("".join(json.dumps({"ids": ids}) + "\n" for ids in prompts))
        server = subprocess.Popen([options.sluice, "serve", "-m", model.model, "--port", "0", "--parallel", "2", "--ctx", "65536"],
                                  stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        try:
            port = int(server.stdout.readline().rsplit(":", 1)[1])
            counts, news, before = [], [], []
            for prompt in prompts:
                ids = [token % model.vocab for token in prompt]
                counts.append(recomputed(port, ids))
                news.append(len(ids) - agreeing(ids, before))
                before = ids
        finally:
            server.terminate()
            server.communicate()
    excess = [count - new for count, new in zip(counts, news)]
    everything = sum(len(prompt) for prompt in prompts)
    print(f"{len(prompts)} prompts of {len(prompts[0])} to {len(prompts[-1])} tokens, {everything} in all")
    print(f"recomputed {sum(counts)} ({100 * sum(counts) / everything:.2f}%), of which the first prompt {counts[0]}")
    print(f"per later turn: median {statistics.median(counts[1:])}, most {max(counts[1:])}; new tokens: median "
          f"{statistics.median(news[1:])}, most {max(news[1:])}")
    print(f"more than what is new: median {statistics.median(excess[1:])}, most {max(excess[1:])} "
          f"({sum(one > 64 for one in excess)} turns above 64)")


if __name__ == "__main__":
    main()
