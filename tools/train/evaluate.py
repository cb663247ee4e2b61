"""Loss on held-out stories, and samples, by transformers (F32) or by mlx-lm (the quantised checkpoint).

    python evaluate.py transformers delta-story-hf --valid valid.txt --samples 5
    python evaluate.py mlx models/delta-story --valid valid.txt

Each document is scored alone, from its second token to the <|endoftext|> that closes it; bits per byte divides the same
loss by the bytes of the documents' text.
"""

import argparse
import math
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from make_tokenizer import documents

PROMPTS = [
    "write a story about a dog and a red ball",
    "Tell me a story about a girl named Lily and a cat.",
    "Write a short story about a bear and honey.",
    "Tell me a story.",
    "A story about a lost kite, please",
]


class Transformers:
    def __init__(self, folder, device):
        import torch
        from transformers import AutoModelForCausalLM

        self.torch, self.device = torch, device
        self.model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval().to(device)

    def losses(self, ids):
        ids = self.torch.tensor(ids, device=self.device)
        with self.torch.no_grad():
            logits = self.model(ids[None, :-1], use_cache=False).logits[0]
        return self.torch.nn.functional.cross_entropy(logits, ids[1:], reduction="none").cpu().numpy()

    def sample(self, ids, seed, tokens):
        self.torch.manual_seed(seed)
        out = self.model.generate(self.torch.tensor([ids], device=self.device), max_new_tokens=tokens)
        return out[0, len(ids) :].tolist()


class Mlx:
    def __init__(self, folder):
        import mlx.core as mx
        from mlx_lm import load

        self.mx = mx
        self.model, self.tokenizer = load(folder)
        self.model.set_dtype(mx.float32)  # the packed weights stay 4-bit; BF16 arithmetic is far slower on a CPU

    def losses(self, ids):
        mx = self.mx
        logits = self.model(mx.array([ids[:-1]]))[0].astype(mx.float32)
        chosen = mx.take_along_axis(logits, mx.array(ids[1:])[:, None], axis=-1)[:, 0]
        return np.array(mx.logsumexp(logits, axis=-1) - chosen)

    def sample(self, ids, seed, tokens):
        from mlx_lm.generate import generate_step
        from mlx_lm.sample_utils import make_sampler

        self.mx.random.seed(seed)
        out = []
        for token, _ in generate_step(
            self.mx.array(ids), self.model, sampler=make_sampler(0.7, 0.9), max_tokens=tokens
        ):
            if token in self.tokenizer.eos_token_ids:
                break
            out.append(token)
        return out


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("engine", choices=["transformers", "mlx"])
    parser.add_argument("folder")
    parser.add_argument("--valid", help="held-out documents, separated by <|endoftext|>")
    parser.add_argument("--documents", type=int, default=1 << 30, help="score only the first ones")
    parser.add_argument("--samples", type=int, default=0, help="stories to write, seeds from 1")
    parser.add_argument("--tokens", type=int, default=220)
    parser.add_argument("--device", default="cpu", help="where transformers computes")
    options = parser.parse_args()
    model = (
        Transformers(options.folder, options.device)
        if options.engine == "transformers"
        else Mlx(options.folder)
    )
    tokenizer = Tokenizer.from_file(str(Path(options.folder) / "tokenizer.json"))
    for seed in range(1, options.samples + 1):
        prompt = PROMPTS[(seed - 1) % len(PROMPTS)]
        ids = tokenizer.encode(f"<|im_start|>user\n{prompt}<|im_end|>\n<|im_start|>assistant\n").ids
        print(
            f"--- seed {seed}: {prompt}\n{tokenizer.decode(model.sample(ids, seed, options.tokens))}\n",
            flush=True,
        )
    if options.valid:
        texts = documents(options.valid)[: options.documents]
        end = tokenizer.token_to_id("<|endoftext|>")
        scores = [model.losses(tokenizer.encode(t).ids + [end]) for t in texts]
        total, count = sum(float(s.sum()) for s in scores), sum(len(s) for s in scores)
        size = sum(len(t.encode()) for t in texts)
        print(
            f"{options.engine} {len(texts)} documents, {count} tokens: {total / count:.4f} nats per token, "
            f"{total / math.log(2) / size:.4f} bits per byte"
        )


if __name__ == "__main__":
    main()
