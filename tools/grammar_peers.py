#!/usr/bin/env python3
"""Compares the times of sluice, llguidance and xgrammar on the same schemas in one run:
tools/grammar_peers.py GRAMMAR_SUITES TOKENS FOLDER [--every N] [--xgrammar-every N]

Each schema is compiled and its instances are matched by one engine after the other, with a different one first each time.
Times are processor times of the thread (of the process for xgrammar, which compiles in its own threads); those of the peers
include the call from Python. FOLDER holds JSONSchemaBench's maskbench files, TOKENS is a file as grammar_suites reads it.
"""

import argparse
import importlib.metadata
import json
import pathlib
import struct
import subprocess
import time

import llguidance
import llguidance.numpy
import numpy
import xgrammar


def read_tokens(path):
    data, at, tokens, special = path.read_bytes(), 4, [], []
    while at + 4 <= len(data):
        (length,) = struct.unpack_from("<I", data, at)
        if length >> 31:
            special.append(len(tokens))
        length &= 0x7FFFFFFF
        tokens.append(data[at + 4:at + 4 + length])
        at += 4 + length
    return tokens, special


def canonical(value):
    """Whole numbers without a fraction, as sluice writes them."""
    if isinstance(value, float) and abs(value) < 1e15 and value == int(value):
        return int(value)
    if isinstance(value, list):
        return [canonical(item) for item in value]
    return {key: canonical(item) for key, item in value.items()} if isinstance(value, dict) else value


class Vocabulary:
    """Takes the longest token at each position: the same tokens for every engine."""

    bos_token_id = None

    def __init__(self, tokens, special):
        self.tokens, self.special_token_ids, self.eos_token_id = tokens, special, special[0]
        hidden = set(special)
        self.ids = {token: number for number, token in reversed(list(enumerate(tokens))) if number not in hidden}
        self.longest = min(32, max(map(len, tokens)))

    def __call__(self, text):
        data, at, made = text if isinstance(text, bytes) else text.encode(), 0, []
        while at < len(data):
            for length in range(min(self.longest, len(data) - at), 0, -1):
                if (number := self.ids.get(data[at:at + length])) is not None:
                    made.append(number)
                    at += length
                    break
            else:
                break
        return made


class Tally:
    """The results of one engine."""

    def __init__(self, name):
        self.name = name
        self.schemas = self.passes = self.refused = self.invalid_accepted = self.valid_rejected = 0
        self.times = {"compile": [], "first": [], "later": []}

    def row(self):
        print(f"{self.name}: schemas {self.schemas}, passing {self.passes}, refused {self.refused}, invalid accepted "
              f"{self.invalid_accepted}, valid rejected {self.valid_rejected}")
        for kind, times in self.times.items():
            p50, p90, p99, most = numpy.percentile(times, [50, 90, 99, 100]) if times else [float("nan")] * 4
            mean = numpy.mean(times) if times else float("nan")
            print(f"  {kind:8} n {len(times):7}  mean {mean:9.1f}  p50 {p50:9.1f}  p90 {p90:9.1f}  p99 {p99:9.1f}  max {most:9.1f} us")


class Sluice(Tally):
    def __init__(self, program, tokens):
        super().__init__("sluice")
        self.process = subprocess.Popen([program, tokens, "turns"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def take(self, path, _):
        print(path, file=self.process.stdin, flush=True)
        answer = json.loads(self.process.stdout.readline())
        self.schemas += 1
        self.passes += answer["passes"]
        for count in ("refused", "invalid_accepted", "valid_rejected"):
            setattr(self, count, getattr(self, count) + answer[count])
        for kind in self.times:
            self.times[kind] += answer[kind]


class Peer(Tally):
    """A Python engine: compiles a schema to a matcher that gives masks and takes tokens."""

    clock = staticmethod(time.thread_time)

    def __init__(self, name, vocabulary):
        super().__init__(f"{name} {importlib.metadata.version(name)}")
        self.vocabulary = vocabulary

    def take(self, _, case):
        self.schemas += 1
        start = self.clock()
        grammar = self.compile(case["schema"])
        took = self.clock() - start
        if grammar is None:
            self.refused += 1
            return
        self.times["compile"].append(took * 1e6)
        right = True
        for test in case["tests"]:
            accepted = self.accepts(grammar, self.vocabulary(json.dumps(canonical(test["data"]), ensure_ascii=False)))
            if accepted != test["valid"]:
                right = False
                self.invalid_accepted += accepted
                self.valid_rejected += not accepted
        self.passes += right

    def accepts(self, grammar, tokens):
        matcher = self.matcher(grammar)
        for at, token in enumerate(tokens):
            start = self.clock()
            self.fill(matcher)
            allowed = int(self.bits[0, token // 32]) >> (token % 32) & 1
            if allowed:
                self.accept(matcher, token)
            self.times["later" if at else "first"].append((self.clock() - start) * 1e6)
            if not allowed:
                return False
        return self.may_end(matcher)


class LLGuidance(Peer):
    def __init__(self, vocabulary):
        super().__init__("llguidance", vocabulary)
        self.tokenizer = llguidance.LLTokenizer(llguidance.TokenizerWrapper(vocabulary))
        self.bits = llguidance.numpy.allocate_token_bitmask(1, self.tokenizer.vocab_size)

    def compile(self, schema):
        matcher = llguidance.LLMatcher(self.tokenizer, json.dumps({"grammars": [{"json_schema": schema}]}))
        return None if matcher.is_error() else matcher

    def matcher(self, grammar):
        return grammar.deep_copy()

    def fill(self, matcher):
        llguidance.numpy.fill_next_token_bitmask(matcher, self.bits, 0)

    def accept(self, matcher, token):
        matcher.consume_token(token)

    def may_end(self, matcher):
        return matcher.is_accepting()


class XGrammar(Peer):
    clock = staticmethod(time.process_time)

    def __init__(self, vocabulary):
        super().__init__("xgrammar", vocabulary)
        info = xgrammar.TokenizerInfo(vocabulary.tokens, vocab_type=xgrammar.VocabType.RAW, vocab_size=len(vocabulary.tokens),
                                      stop_token_ids=[vocabulary.eos_token_id])
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.mask = xgrammar.allocate_token_bitmask(1, len(vocabulary.tokens))
        self.bits = self.mask.numpy()

    def compile(self, schema):
        try:
            return self.compiler.compile_json_schema(json.dumps(schema), any_whitespace=False, separators=(", ", ": "), strict_mode=False)
        except Exception:  # whatever it raises for unsupported schemas
            return None

    def matcher(self, grammar):
        return xgrammar.GrammarMatcher(grammar)

    def fill(self, matcher):
        matcher.fill_next_token_bitmask(self.mask)

    def accept(self, matcher, token):
        matcher.accept_token(token)

    def may_end(self, matcher):
        return matcher.accept_token(self.vocabulary.eos_token_id)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("suites")
    parser.add_argument("tokens", type=pathlib.Path)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--every", type=int, default=120, help="of so many files one")
    parser.add_argument("--xgrammar-every", type=int, default=3, help="of so many of those one for xgrammar, which compiles for long")
    arguments = parser.parse_args()
    vocabulary = Vocabulary(*read_tokens(arguments.tokens))
    engines = [Sluice(arguments.suites, str(arguments.tokens)), LLGuidance(vocabulary), XGrammar(vocabulary)]
    try:
        for number, path in enumerate(sorted(arguments.folder.glob("*.json"))[::arguments.every]):
            case = json.loads(path.read_text())
            for turn in range(len(engines)):
                engine = engines[(number + turn) % len(engines)]
                if not isinstance(engine, XGrammar) or number % arguments.xgrammar_every == 0:
                    engine.take(path, case)
    except KeyboardInterrupt:
        pass  # report what was measured so far
    for engine in engines:
        engine.row()


main()
