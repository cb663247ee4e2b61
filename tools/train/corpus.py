"""Turns story text into token arrays for train.py: one npz with tokens and document boundaries for each source.

python corpus.py --tokenizer tokenizer --text FOLDER --generated generated.txt --out corpus.npz
"""

import argparse
import random
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from instructions import conversation, noun_lexicon
from make_tokenizer import documents


def conversations(stories: list, lexicon: dict, rng: random.Random) -> list:
    """Every story once as the answer to an instruction; one conversation in twelve continues with a second story."""
    order = rng.sample(stories, len(stories))
    chats = []
    while order:
        first = order.pop()
        second = order.pop() if order and rng.random() < 0.08 else ""
        chats.append(conversation(first, lexicon, len(stories), rng, second))
    return chats


def encode(tokenizer: Tokenizer, texts: list) -> tuple:
    """Flat uint16 tokens, each document closed by <|endoftext|>, and the boundaries between documents."""
    end = tokenizer.token_to_id("<|endoftext|>")
    rows = [e.ids + [end] for e in tokenizer.encode_batch(texts)]
    borders = np.cumsum([0] + [len(r) for r in rows])
    return np.fromiter((t for r in rows for t in r), np.uint16), borders.astype(np.int32)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument(
        "--text", type=Path, required=True, help="folder with tinystories, fables, pd_children, valid .txt"
    )
    parser.add_argument("--generated", required=True)
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    rng = random.Random(11)
    sources = {
        name: documents(options.text / f"{name}.txt")
        for name in ("tinystories", "fables", "pd_children", "valid")
    }
    sources["generated"] = documents(options.generated)
    lexicon = noun_lexicon(sources["tinystories"])
    # Three instructions per story, so that an epoch of conversations requests the same story in different ways.
    sources["chat"] = [c for _ in range(3) for c in conversations(sources["tinystories"], lexicon, rng)]
    sources["chat_generated"] = conversations(sources["generated"], lexicon, rng)
    tokenizer = Tokenizer.from_file(str(options.tokenizer / "tokenizer.json"))
    arrays = {}
    for name, texts in sources.items():
        arrays[name], arrays[name + "_borders"] = encode(tokenizer, texts)
        print(f"{name}: {len(texts)} documents, {len(arrays[name])} tokens")
    np.savez_compressed(options.out, **arrays)


if __name__ == "__main__":
    main()
