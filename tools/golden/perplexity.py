"""Perplexity of a quantised model by mlx-lm, in float32 on the CPU, beside that of sluice over the same documents.

Run with mlx-lm 0.32.2 and mlx 0.32.4:
python tools/golden/perplexity.py build/release/bin/sluice models/delta-story valid.txt [--documents N]

Each document is scored alone, from its second token to the <|endoftext|> that closes it. Documents of similar length share a
batch, padded at their ends, which a causal model does not see. Unpacked weights (`--unpack`) have the same values
and are much faster on a CPU than mlx's packed products. Exits with 1 if the two differ by more than 0.2%.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time

import mlx.core as mx
import numpy as np
from mlx_lm import load
from mlx_lm.utils import dequantize_model
from tokenizers import Tokenizer

END = "<|endoftext|>"
LIMIT = 2e-3  # relative, of nats per token


def losses(model, batch):
    """The loss of every document in nats, over its tokens after the first."""
    width = max(map(len, batch)) - 1
    ids = np.zeros((len(batch), width), np.int32)
    next_ids = np.zeros_like(ids)
    for row, document in enumerate(batch):
        ids[row, : len(document) - 1] = document[:-1]
        next_ids[row, : len(document) - 1] = document[1:]
    logits = model(mx.array(ids)).astype(mx.float32)
    chosen = mx.take_along_axis(logits, mx.array(next_ids)[..., None], axis=-1)[..., 0]
    nats = np.array(mx.logsumexp(logits, axis=-1) - chosen, np.float64)
    return [nats[row, : len(document) - 1].sum() for row, document in enumerate(batch)]


def by_mlx(folder, documents, batch, unpack):
    model, _ = load(folder)
    model.set_dtype(mx.float32)
    if unpack:
        model = dequantize_model(model)
    tokenizer = Tokenizer.from_file(f"{folder}/tokenizer.json")
    end = tokenizer.token_to_id(END)
    encoded = sorted((tokenizer.encode(text).ids + [end] for text in documents), key=len)
    nats, tokens, start = 0.0, 0, time.time()
    for at in range(0, len(encoded), batch):
        nats += sum(losses(model, encoded[at : at + batch]))
        tokens += sum(len(ids) - 1 for ids in encoded[at : at + batch])
        print(f"\r{min(at + batch, len(encoded))} of {len(encoded)} documents, {nats / tokens:.4f}, "
              f"{time.time() - start:.0f} s", end="", file=sys.stderr, flush=True)
    print(file=sys.stderr)
    return nats / tokens, tokens


def by_sluice(sluice, folder, documents):
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as file:
        file.write(f"\n{END}\n".join(documents))
        file.flush()
        done = subprocess.run([sluice, "perplexity", folder, file.name, "--json"], check=True, stdout=subprocess.PIPE)
    result = json.loads(done.stdout)
    return result["nats_per_token"], result["tokens"]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("sluice")
    parser.add_argument("model")
    parser.add_argument("file", help=f"documents separated by lines {END}")
    parser.add_argument("--documents", type=int, help="only the first ones")
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--unpack", action="store_true")
    options = parser.parse_args()
    mx.set_default_device(mx.cpu)
    with open(options.file) as file:
        documents = [text.strip() for text in file.read().split(END)]
    documents = [text for text in documents if text][: options.documents]
    ours, our_tokens = by_sluice(options.sluice, options.model, documents)
    theirs, their_tokens = by_mlx(options.model, documents, options.batch, options.unpack)
    assert our_tokens == their_tokens, f"{our_tokens} tokens by sluice, {their_tokens} by mlx-lm"
    print(f"{options.model}: {len(documents)} documents, {our_tokens} tokens: sluice {ours:.5f}, mlx-lm {theirs:.5f} "
          f"nats per token, {ours / theirs - 1:+.5%}")
    sys.exit(bool(abs(ours / theirs - 1) > LIMIT))


if __name__ == "__main__":
    main()
