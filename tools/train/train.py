"""Trains one of the bundled models on packed story tokens.

    python train.py delta-story --corpus corpus.npz --out runs/delta --steps 6000

BF16 autocast over F32 weights, AdamW with a cosine schedule, dropout, a moving average of the weights, and in the
last part straight-through training on the quantised weights. Books and fables come first, stories last; the average
with the lowest loss on the held-out stories is kept. With --teacher, earlier models' predictions are targets too.
"""

import argparse
import json
import math
import time
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import torch

import forward
from affine import AffineWeights
from architectures import build
from parts import load_parts, save_parts
from rows import Mixture, valid_batches

EARLY = {
    "pd_children": 0.50,
    "fables": 0.05,
    "tinystories": 0.14,
    "chat": 0.12,
    "generated": 0.11,
    "chat_generated": 0.08,
}
LATE = {
    "pd_children": 0.07,
    "fables": 0.03,
    "tinystories": 0.42,
    "chat": 0.38,
    "generated": 0.05,
    "chat_generated": 0.05,
}


def arguments():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model", choices=["delta-story", "latent-story"])
    parser.add_argument("--corpus", required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--steps", type=int, default=6000)
    parser.add_argument("--rows", type=int, default=32, help="rows of tokens per step")
    parser.add_argument("--length", type=int, default=512, help="tokens per row, a multiple of 64")
    parser.add_argument("--start", type=Path, help="parts of a trained model to go on from")
    parser.add_argument("--rate", type=float, default=1.5e-3)
    parser.add_argument("--decay", type=float, default=0.2)
    parser.add_argument("--dropout", type=float, default=0.1)
    parser.add_argument("--early", type=float, default=0.4, help="share of the steps with the early mixture")
    parser.add_argument(
        "--quantised", type=float, default=0.2, help="share of the steps, the last, on quantised weights"
    )
    parser.add_argument("--average", type=float, default=0.997)
    parser.add_argument("--balance", type=float, default=0.01, help="weight of the router's balancing loss")
    parser.add_argument("--bias-rate", type=float, default=1e-3, help="step of DeepSeek's router bias")
    parser.add_argument("--teacher", action="append", default=[], metavar="MODEL=PARTS")
    parser.add_argument("--teacher-weight", type=float, default=0.5)
    parser.add_argument("--every", type=int, default=200, help="steps between evaluations")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--layers", type=int, default=0, help="cut the model down, for a test")
    parser.add_argument(
        "--valid-batches", type=int, default=1 << 20, help="evaluate on fewer batches, for a test"
    )
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--eager", action="store_true", help="do not compile")
    return parser.parse_args()


class Trainer:
    def __init__(self, options):
        self.options = options
        torch.manual_seed(options.seed)
        torch.backends.cuda.matmul.allow_tf32 = True
        forward.use_training_kernels()
        self.model = build(options.model, options.layers).to(options.device)
        if options.start:
            self.model.load_state_dict({k: v.float() for k, v in load_parts(options.start).items()})
        self.average = build(options.model, options.layers).to(options.device).requires_grad_(False)
        self.average.load_state_dict(self.model.state_dict())
        self.grid, self.average_grid = AffineWeights(self.model), AffineWeights(self.average)
        self.layer, self.head, self.distilled = forward.layer, forward.head, forward.distilled_head
        if not options.eager:
            torch._dynamo.config.recompile_limit = 64
            self.layer, self.head, self.distilled = (
                torch.compile(f) for f in (self.layer, self.head, self.distilled)
            )
        matrices = [p for p in self.model.parameters() if p.dim() >= 2]
        vectors = [p for p in self.model.parameters() if p.dim() < 2]
        self.optimizer = torch.optim.AdamW(
            [{"params": matrices, "weight_decay": options.decay}, {"params": vectors, "weight_decay": 0.0}],
            lr=options.rate,
            betas=(0.9, 0.95),
            fused=options.device == "cuda",
        )
        arrays = np.load(options.corpus)
        self.mixture = Mixture(arrays, options.length, options.seed)
        self.valid = [
            tuple(map(self.place, b))
            for b in valid_batches(arrays, options.length, options.rows)[: options.valid_batches]
        ]
        self.teachers = [self.load_teacher(t) for t in options.teacher]
        self.biases = [m for m in self.model.modules() if hasattr(m, "e_score_correction_bias")]

    def place(self, array):
        return torch.from_numpy(array).to(self.options.device, non_blocking=True)

    def load_teacher(self, text):
        name, folder = text.split("=")
        model = build(name, self.options.layers)
        model.load_state_dict({k: v.float() for k, v in load_parts(Path(folder)).items()})
        return model.to(self.options.device).eval().requires_grad_(False)

    def autocast(self):
        return torch.autocast("cuda", torch.bfloat16, enabled=self.options.device == "cuda")

    def rate(self, step):
        warm = min(1.0, (step + 1) / 150)
        cosine = 0.5 * (1 + math.cos(math.pi * step / self.options.steps))
        return warm * (0.02 + 0.98 * cosine)

    @torch.no_grad()
    def teach(self, ids):
        """Mean distribution of the teachers [tokens, vocab]; not compiled, which would take longer than it saves."""
        total = 0
        for teacher in self.teachers:
            hidden = forward.trunk(teacher, ids)[0]
            total = total + teacher.lm_head(teacher.model.norm(hidden)).float().softmax(-1)
        return (total / len(self.teachers)).bfloat16().flatten(0, 1)

    def losses(self, ids, labels):
        """Mean loss of the true next tokens, the loss to minimise, and the load of each layer's experts."""
        count = (labels != -100).sum()
        with self.autocast():
            targets = self.teach(ids) if self.teachers else None
            hidden, balance, loads = forward.trunk(self.model, ids, self.options.dropout, self.layer)
            if self.teachers:
                hard, soft = (x / count for x in self.distilled(self.model, hidden, labels, targets))
                loss = torch.lerp(hard, soft, self.options.teacher_weight)
            else:
                hard = loss = self.head(self.model, hidden, labels) / count
        return hard, loss + self.options.balance * balance, loads

    def step(self, number):
        progress, scale = number / self.options.steps, self.rate(number)
        ids, labels = map(
            self.place,
            self.mixture.batch(self.options.rows, EARLY if progress < self.options.early else LATE),
        )
        for group in self.optimizer.param_groups:
            group["lr"] = self.options.rate * scale
        with self.grid.applied() if progress >= 1 - self.options.quantised else nullcontext():
            hard, loss, loads = self.losses(ids, labels)
            loss.backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.steer_router([x for x in loads if x.numel() > 1], self.options.bias_rate * scale)
        follow = min(self.options.average, (1 + number) / (10 + number))
        torch._foreach_lerp_(list(self.average.parameters()), list(self.model.parameters()), 1 - follow)
        for ours, theirs in zip(self.average.buffers(), self.model.buffers()):
            ours.copy_(theirs)
        return hard.detach(), loads

    @torch.no_grad()
    def steer_router(self, loads, rate):
        """DeepSeek's balance without a loss: the bias rises for experts with little load. Its least value is kept at
        zero, which changes no choice and keeps every biased score positive, as engines that mask with zero need.
        """
        for gate, load in zip(self.biases, loads):
            bias = gate.e_score_correction_bias
            bias.add_(rate * torch.sign(load.mean() - load))
            bias.sub_(bias.min())

    @torch.no_grad()
    def evaluate(self, quantised):
        total = count = 0
        with self.average_grid.applied() if quantised else nullcontext(), self.autocast():
            for ids, labels in self.valid:
                total += forward.head(self.average, forward.trunk(self.average, ids)[0], labels)
                count += (labels != -100).sum()
        return (total / count).item()

    def run(self):
        self.options.out.mkdir(parents=True, exist_ok=True)
        best, began, recent = float("inf"), time.time(), []
        for number in range(self.options.steps):
            loss, loads = self.step(number)
            recent.append(loss)
            if (number + 1) % self.options.every and number + 1 != self.options.steps:
                continue
            exact, grid = self.evaluate(False), self.evaluate(True)
            crowd = max((x.max() / x.mean()).item() for x in loads if x.numel() > 1)
            line = {
                "step": number + 1,
                "train": round(torch.stack(recent).mean().item(), 4),
                "valid": round(exact, 4),
                "valid_4bit": round(grid, 4),
                "crowd": round(crowd, 2),
                "seconds": round(time.time() - began, 1),
                "epochs": {n: s.epochs for n, s in self.mixture.sources.items()},
            }
            print(json.dumps(line), flush=True)
            with open(self.options.out / "log.jsonl", "a") as log:
                log.write(json.dumps(line) + "\n")
            recent = []
            score = exact + grid if self.options.quantised else exact
            if score < best and number > 0.7 * self.options.steps:
                best = score
                save_parts(self.average.state_dict(), self.options.out / "parts")


if __name__ == "__main__":
    Trainer(arguments()).run()
