"""Writes simple stories in which every event has a cause: a hero, a want, an obstacle, a helper and an ending.

    python storygen.py --count 12000 --seed 7 --out generated.txt

A plot is a function that lists its events in order; each sentence is chosen among several phrasings and each noun
among the lists of storywords.py, so that two stories rarely share more than a few sentences.
"""

import argparse
import random

import plots_alone
import plots_friends
from storyteller import Teller

PLOTS = [
    plots_alone.lost_thing,
    plots_alone.too_high,
    plots_friends.both_want,
    plots_friends.weather_turns,
    plots_alone.new_skill,
    plots_friends.kindness_returns,
    plots_alone.broken_rule,
    plots_friends.made_gift,
    plots_alone.night_noise,
    plots_alone.seed_grows,
    plots_friends.shy_newcomer,
    plots_friends.missing_part,
    plots_friends.the_race,
]


def story(rng: random.Random) -> str:
    teller = Teller(rng)
    rng.choice(PLOTS)(teller)
    return teller.text()


def stories(count: int, seed: int) -> list:
    rng = random.Random(seed)
    return list(dict.fromkeys(story(rng) for _ in range(count)))


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=12000)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--out", required=True)
    options = parser.parse_args()
    with open(options.out, "w") as file:
        for text in stories(options.count, options.seed):
            file.write(text + "\n<|endoftext|>\n")


if __name__ == "__main__":
    main()
