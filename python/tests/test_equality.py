"""The same bits as from the C++ program, for both bundled models."""

import json

import numpy
import pytest

import sluice
from conftest import START, STORY, command_line, read_tensors

MODELS = ["delta-story", "latent-story"]


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_logits_and_greedy_ids(name, exact, tmp_path):
    with sluice.Model(name, exact=exact) as model:
        ids = model.tokenize(START + STORY)
        command_line("logits", name, "--tokens", ",".join(map(str, ids)), "--greedy", 24, "--out", tmp_path / "out",
                     *([] if exact else ["--rounded"]))
        expected = read_tensors(tmp_path / "out")
        rows = model.logits(ids)
        assert numpy.array_equal(rows.view(numpy.uint32), expected["logits"][:len(ids)].view(numpy.uint32))
        settings = {"max_tokens": 24, "temperature": 0, "ignore_stop_ids": True}
        greedy = expected["greedy"].tolist()
        assert model.generate(ids, **settings).ids == greedy
        assert [token.id for token in model.stream(ids, **settings)] == greedy
        with model.session(128) as session:
            assert session.generate(ids, **settings).ids == greedy


@pytest.mark.parametrize("name", MODELS)
def test_greedy_text(name):
    said = json.loads(command_line("run", "-m", name, "--raw", START, "-n", 60, "--temperature", 0, "--json"))
    with sluice.Model(name) as model:
        assert model.generate(START, max_tokens=60, temperature=0).text == said["text"]


@pytest.mark.parametrize("name", MODELS)
def test_perplexity(name, tmp_path):
    text = START + STORY + "."
    file = tmp_path / "text"
    file.write_text(text)
    said = json.loads(command_line("perplexity", name, file, "--json"))
    with sluice.Model(name) as model:
        made = model.perplexity(text)
        assert (made["tokens"], made["nats_per_token"]) == (said["tokens"], said["nats_per_token"])
        # And as computed with numpy from the logits: for every token after the first, including the one that ends the text.
        ids = [*model.tokenize(text), model.tokenize("<|endoftext|>")[0]]
        rows = model.logits(ids).astype(numpy.float64)
        rows -= rows.max(1, keepdims=True)
        logprobs = rows - numpy.log(numpy.exp(rows).sum(1, keepdims=True))
        nats = -logprobs[numpy.arange(len(ids) - 1), ids[1:]].mean()
        assert made["nats_per_token"] == pytest.approx(nats, rel=1e-5)
