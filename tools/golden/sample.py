"""Makes files about sampling from torch and Hugging Face's own logits processors: op files for tests/data/ops
(penalties, bias, mask, log-probabilities) and tables of probabilities for tests/data/sampling (the distribution of draws).

Made with torch 2.13.0 (CPU), transformers 5.22.2, safetensors 0.8.0. Usage: python sample.py TEST_DATA_FOLDER
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file
from transformers import (LogitsProcessorList, MinPLogitsWarper, RepetitionPenaltyLogitsProcessor,
                          SequenceBiasLogitsProcessor, TemperatureLogitsWarper, TopKLogitsWarper, TopPLogitsWarper)

TOP = 20


def occurrences(past, vocab):
    return torch.stack([torch.bincount(p, minlength=vocab) for p in past]).int()


def seen(logits, past, settings):
    """One request's logits after penalties, bias and mask."""
    scores = logits[None].double()
    if past.numel():
        scores = RepetitionPenaltyLogitsProcessor(settings["repetition_penalty"])(past[None], scores)
    count = torch.bincount(past, minlength=logits.numel())
    # From the OpenAI documentation: mu[j] -> mu[j] - c[j] * alpha_frequency - float(c[j] > 0) * alpha_presence
    scores = scores - count * settings["frequency_penalty"] - (count > 0).double() * settings["presence_penalty"]
    if settings["bias"]:
        scores = SequenceBiasLogitsProcessor({(i,): b for i, b in settings["bias"].items()})(past[None], scores)
    return scores[0].masked_fill(~settings["allowed"], -torch.inf)


def random_settings(vocab, generator):
    def number(low, high, none):
        given = torch.rand(2, generator=generator)
        return round(float(low + (high - low) * given[0]), 3) if given[1] < 0.6 else none

    allowed = torch.ones(vocab, dtype=torch.bool)
    if torch.rand(1, generator=generator) < 0.5:
        allowed = torch.rand(vocab, generator=generator) < 0.4
        allowed[vocab // 2] = True
    tokens = torch.randperm(vocab, generator=generator)[: int(torch.randint(0, 5, (1,), generator=generator))]
    return {"repetition_penalty": number(0.6, 1.8, 1.0), "presence_penalty": number(-2, 2, 0.0),
            "frequency_penalty": number(-1, 1, 0.0), "allowed": allowed,
            "bias": {int(t): round(float(torch.randn(1, generator=generator)) * 4, 3) for t in tokens},
            "logprobs": int(torch.randint(-1, TOP + 1, (1,), generator=generator))}


def as_float32(settings):
    """The op's fields are F32, so the oracle's input is, too."""
    exact = dict(settings)
    for name in ("repetition_penalty", "presence_penalty", "frequency_penalty"):
        exact[name] = float(torch.tensor(settings[name], dtype=torch.float32))
    exact["bias"] = {i: float(torch.tensor(b, dtype=torch.float32)) for i, b in settings["bias"].items()}
    return exact


def pack(allowed):
    bits = torch.zeros((allowed.numel() + 7) // 8 * 8, dtype=torch.uint8)
    bits[: allowed.numel()] = allowed.to(torch.uint8)
    return (bits.view(-1, 8) << torch.arange(8, dtype=torch.uint8)).sum(1).to(torch.uint8)


def choices(folder, case, rows, vocab, seed):
    """Greedy choices of requests of all kinds in one call."""
    generator = torch.Generator().manual_seed(seed)
    logits = torch.randn(rows, vocab, generator=generator) * 3
    settings = [as_float32(random_settings(vocab, generator)) for _ in range(rows)]
    past = [torch.randint(0, vocab, (int(torch.randint(0, 2 * vocab, (1,), generator=generator)),), generator=generator)
            for _ in range(rows)]
    counts = occurrences(past, vocab)
    biases = max(1, max(len(s["bias"]) for s in settings))
    bias_ids = torch.full((rows, biases), -1, dtype=torch.int32)
    bias = torch.zeros(rows, biases)
    ids, logprob = torch.empty(rows, dtype=torch.int32), torch.full((rows,), -torch.inf)
    top_ids, top = torch.full((rows, TOP), -1, dtype=torch.int32), torch.full((rows, TOP), -torch.inf)
    after = counts.clone()
    for t, s in enumerate(settings):
        for i, (token, value) in enumerate(s["bias"].items()):
            bias_ids[t, i], bias[t, i] = token, value
        scores = seen(logits[t], past[t], s)
        ids[t] = scores.argmax()
        if s["repetition_penalty"] != 1 or s["presence_penalty"] or s["frequency_penalty"]:
            after[t, ids[t]] += 1
        if s["logprobs"] < 0:
            continue
        logprobs = torch.log_softmax(scores, 0)
        logprob[t] = logprobs[ids[t]]
        values, best = logprobs.topk(min(s["logprobs"], int(torch.isfinite(scores).sum())))
        top_ids[t, : best.numel()], top[t, : best.numel()] = best.int(), values.float()
    positions = torch.tensor([p.numel() - 1 for p in past], dtype=torch.int32)
    tensors = {"logits": logits, "positions": positions, "counts": counts, "bias_ids": bias_ids, "bias": bias,
               "allowed": torch.stack([pack(s["allowed"]) for s in settings]),
               "logprobs": torch.tensor([s["logprobs"] for s in settings], dtype=torch.int32)}
    for name in ("repetition_penalty", "presence_penalty", "frequency_penalty"):
        tensors[name] = torch.tensor([s[name] for s in settings])
    expected = {"ids": ids, "positions": positions + 1, "counts": after, "logprob": logprob, "top_ids": top_ids,
                "top_logprobs": top}
    tensors |= {f"expect.{name}": tensor for name, tensor in expected.items()}
    save_file({name: tensor.contiguous() for name, tensor in tensors.items()}, folder / f"sample_{case}.safetensors",
              {"op": "sample", "tolerance": "2e-6"})


def draws(folder, vocab, seed):
    """The probabilities of a row under each setting; in the second half of the rows after penalties, bias and mask."""
    generator = torch.Generator().manual_seed(seed)
    table = [(0.7, 0, 1.0, 0.0), (1.0, 5, 1.0, 0.0), (1.3, 0, 0.8, 0.0), (1.0, 0, 1.0, 0.1), (2.0, 12, 0.9, 0.05),
             (0.4, 3, 0.95, 0.0), (1.5, 0, 0.3, 0.2), (1.0, 1, 0.5, 0.5), (5.0, 30, 0.99, 0.01), (1.0, 0, 1.0, 0.0)]
    none = {"repetition_penalty": 1.0, "presence_penalty": 0.0, "frequency_penalty": 0.0, "bias": {},
            "allowed": torch.ones(vocab, dtype=torch.bool)}
    logits = torch.randn(len(table), vocab, generator=generator) * 2
    settings, past = [none] * len(table), [torch.zeros(0, dtype=torch.long)] * len(table)
    for _ in table:
        settings.append(as_float32(random_settings(vocab, generator)))
        past.append(torch.randint(0, vocab, (vocab // 2,), generator=generator))
    logits = torch.cat([logits, torch.randn(len(table), vocab, generator=generator) * 2])
    table = table * 2
    probabilities = []
    bias_ids, bias = torch.full((len(table), 5), -1, dtype=torch.int32), torch.zeros(len(table), 5)
    for t, (row, (temperature, top_k, top_p, min_p)) in enumerate(zip(logits, table)):
        for i, (token, value) in enumerate(settings[t]["bias"].items()):
            bias_ids[t, i], bias[t, i] = token, value
        scores = seen(row, past[t], settings[t])
        steps = LogitsProcessorList([TemperatureLogitsWarper(temperature)])
        if top_k:
            steps.append(TopKLogitsWarper(top_k))
        if top_p < 1:
            steps.append(TopPLogitsWarper(top_p))
        if min_p:
            steps.append(MinPLogitsWarper(min_p))
        probabilities.append(torch.softmax(steps(torch.zeros(1, 0, dtype=torch.long), scores[None]), -1)[0])
    columns = list(zip(*table))
    penalties = {name: torch.tensor([s[name] for s in settings])
                 for name in ("repetition_penalty", "presence_penalty", "frequency_penalty")}
    save_file({"logits": logits, "probabilities": torch.stack(probabilities).float(), "counts": occurrences(past, vocab),
               "bias_ids": bias_ids, "bias": bias, "allowed": torch.stack([pack(s["allowed"]) for s in settings]), **penalties,
               "temperature": torch.tensor(columns[0]), "top_k": torch.tensor(columns[1], dtype=torch.int32),
               "top_p": torch.tensor(columns[2]), "min_p": torch.tensor(columns[3])}, folder / "draws.safetensors")


def main():
    data = pathlib.Path(sys.argv[1])
    (data / "sampling").mkdir(exist_ok=True)
    choices(data / "ops", "requests", 16, 100, 1)
    choices(data / "ops", "requests_wide", 3, 4500, 2)
    draws(data / "sampling", 40, 3)


main()
