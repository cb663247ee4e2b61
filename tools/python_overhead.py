#!/usr/bin/env python3
"""Measures the overhead of Python per token: tools/python_overhead.py [GEOMETRY] [--tokens N] [--turns N], with the package installed.

The same model decodes in turns by a loop in C++ (Session.generate, which comes back to Python once) and by
`for token in model.stream(...)`, which comes back for every token. Prints medians over the turns of the time
per token and of the processor time per token, which other programs on the machine affect less, and Python's overhead in a
turn: the median and the quartiles of the differences, also as a fraction of a token's time at 300 per second.
"""

import argparse
import statistics
import time

import sluice


def timed(work, tokens):
    wall, processor = time.perf_counter(), time.process_time()
    assert work() == tokens
    return (time.perf_counter() - wall) / tokens * 1e6, (time.process_time() - processor) / tokens * 1e6


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("geometry", nargs="?", default="qwen3.6-35b-a3b:layers=1,experts=8,vocab=4096")
    parser.add_argument("--tokens", type=int, default=300)
    parser.add_argument("--turns", type=int, default=15)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    model = sluice.Model.random(arguments.geometry, threads=arguments.threads)
    settings = {"max_tokens": arguments.tokens, "temperature": 0, "ignore_stop_ids": True}

    def in_cpp():
        with model.session(arguments.tokens + 8) as session:
            return len(session.generate([1, 2, 3], **settings).ids)

    def from_python():
        return sum(1 for _ in model.stream([1, 2, 3], **settings))

    ways = {"C++": in_cpp, "Python": from_python}
    taken = {name: [] for name in ways}
    for turn in range(arguments.turns + 1):
        for name, work in ways.items():
            times = timed(work, arguments.tokens)
            if turn > 0:  # the first turn warms up
                taken[name].append(times)
    medians = {name: [statistics.median(column) for column in zip(*times)] for name, times in taken.items()}
    for name, (wall, processor) in medians.items():
        print(f"{name:7} {wall:8.1f} us per token ({1e6 / wall:6.1f} per second), {processor:8.1f} us of the processor")
    for at, kind in enumerate(("time", "processor")):
        added = [python[at] - cpp[at] for python, cpp in zip(taken["Python"], taken["C++"])]
        low, middle, high = statistics.quantiles(added, n=4)
        print(f"Python adds to the {kind}: {middle:.1f} us ({low:.1f} to {high:.1f}), {middle / medians['C++'][at] * 100:.2f}% here, "
              f"{middle / 1e6 * 300 * 100:.2f}% at 300 per second")


main()
