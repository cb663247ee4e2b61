import gc
import threading
import time

import numpy
import pytest

import sluice
from conftest import START, STORY


def test_known_story(model):
    with model.session(200) as session:
        answer = session.generate(START, max_tokens=40, temperature=0)
    assert str(answer) == answer.text == STORY
    assert answer.finish_reason == "length" and len(answer.ids) == len(answer.tokens) == 40
    assert model.detokenize(answer.ids) == STORY
    assert answer.prompt_tokens == 4 and answer.tokens_per_second > 0


def test_text_and_ids_round_trip(model):
    text = "Grüße, 世界! \n\tå🙂"
    assert model.detokenize(model.tokenize(text)) == text


def test_logits_agree_whichever_way_they_are_asked_for(model):
    ids = model.tokenize(START + STORY)
    rows = model.logits(ids)
    assert rows.shape == (len(ids), model.summary["vocab"]) and rows.dtype == numpy.float32
    with model.session(100) as session:
        session.extend(ids)
        assert numpy.array_equal(session.logits(), rows[-1])
        session.reset()
        session.extend(ids[:20])
        session.extend(ids[20:])
        assert numpy.array_equal(session.logits(), rows[-1])


def test_most_likely_token_is_that_of_the_logits(model):
    ids = model.tokenize(START)
    with model.session(64) as session:
        for token in session.generate(ids, max_tokens=12, temperature=0).ids:
            ids.append(token)
    rows = model.logits(ids)
    assert rows[3:-1].argmax(1).tolist() == ids[4:]


def test_logprobs(model):
    with model.session(64) as session:
        answer = session.generate(START, max_tokens=5, temperature=0, logprobs=3)
    row = model.logits(model.tokenize(START))[-1].astype(numpy.float64)
    expected = row - row.max() - numpy.log(numpy.exp(row - row.max()).sum())
    first = answer.tokens[0]
    assert first.logprob == pytest.approx(expected.max(), abs=1e-4)
    assert [i for i, _ in first.top] == numpy.argsort(-expected, kind="stable")[:3].tolist()
    assert answer.logprobs[0] == first.logprob and len(answer.logprobs) == 5
    assert model.generate(START, max_tokens=5, temperature=0, logprobs=3).tokens == answer.tokens
    alone = model.generate(START, max_tokens=5, temperature=0, logprobs=0)
    assert alone.logprobs == answer.logprobs and alone.tokens[0].top == ()
    assert model.generate(START, max_tokens=5, temperature=0).logprobs is None


def test_snapshot_restore_fork(model):
    with model.session(128) as session:
        session.extend(START)
        saved = session.snapshot()
        first = session.generate(max_tokens=10, temperature=0, prompt=model.tokenize(","))
        session.restore(saved)
        assert len(session) == len(saved) == 4
        fork = session.fork()
        again = session.generate(model.tokenize(","), max_tokens=10, temperature=0)
        assert first.ids == again.ids
        assert fork.generate(model.tokenize(","), max_tokens=10, temperature=0).ids == first.ids
        assert fork.tokens == session.tokens
        mark = fork.mark()
        fork.extend([1, 2, 3])
        fork.rewind(mark)
        assert len(fork) == len(session)


def test_empty_timelines(model):
    with model.session(8) as session:
        assert len(session) == 0 and session and session.snapshot()  # truth does not depend on the length
        assert session.extend_with_logits([]).shape == model.logits([]).shape == (0, model.summary["vocab"])
        session.extend([1, 2])
        assert repr(session.snapshot()) == "<sluice.Snapshot after 2 tokens>" and "Session" in repr(session)


def test_seed(model):
    def write(seed):
        with model.session(64) as session:
            return session.generate(START, max_tokens=20, temperature=1, seed=seed).text

    assert write(7) == write(7) != write(8)


def test_on_token_stops(model):
    heard = []
    with model.session(64) as session:
        answer = session.generate(START, lambda token: heard.append(token.text) or len(heard) < 3, max_tokens=20, temperature=0)
    assert answer.finish_reason == "cancelled" and len(heard) == 3
    for returned, tokens in ((numpy.False_, 1), (None, 5), (0, 5), (numpy.True_, 5)):
        with model.session(64) as session:
            assert len(session.generate(START, lambda token: returned, max_tokens=5, temperature=0).ids) == tokens


def test_on_token_raises(model):
    with model.session(64) as session:
        with pytest.raises(KeyError):
            session.generate(START, lambda token: {}[token.id], max_tokens=20)


def test_on_token_cannot_use_its_session(model):
    """It would wait for itself forever. It can use everything else."""
    with model.session(64) as session:
        for use in (lambda: len(session), session.snapshot, session.fork, session.close, lambda: session.generate("a")):
            with pytest.raises(sluice.InputError, match="on_token"):
                session.generate(START, lambda token: bool(use()) or True, max_tokens=3)
            session.reset()
        others = []
        answer = session.generate(START, lambda token: others.append(model.generate(START, max_tokens=3, temperature=0).text) or True,
                                  max_tokens=3, temperature=0)
        assert others == [answer.text] * 3


def test_errors_by_kind(model, tmp_path):
    with pytest.raises(sluice.InputError, match="neither a model folder"):
        sluice.Model("no-such-model")
    (tmp_path / "config.json").write_text("{")
    with pytest.raises(sluice.CheckpointError):
        sluice.Model(tmp_path)
    with pytest.raises(ValueError):
        sluice.Model(backend="abacus")
    try:
        sluice.Model(backend="cuda").close()  # if both the build and the machine have it
    except sluice.UnsupportedError as error:
        assert "CUDA" in str(error)
    with pytest.raises(TypeError, match="unknown setting tempreture"):
        model.session(8).generate(START, tempreture=1)
    with pytest.raises(sluice.InputError):
        model.session(4).extend(list(range(10)))
    with pytest.raises(sluice.InputError, match="not a size"):
        sluice.Model(memory="many")
    assert issubclass(sluice.BusyError, sluice.Error)
    assert issubclass(sluice.ResourceError, sluice.Error) and not issubclass(sluice.ResourceError, ValueError)


def test_dropped_in_any_order():
    model = sluice.Model("delta-story")
    session = model.session(64)
    snapshot = session.snapshot()
    model.close()
    with pytest.raises(sluice.InputError, match="closed"):
        model.tokenize("x")
    del model
    gc.collect()
    session.extend([1, 2, 3])  # the session keeps what it needs
    session.close()
    with pytest.raises(sluice.InputError, match="closed"):
        session.extend([1])
    assert len(snapshot) == 0 and snapshot


def test_threads_share_a_model(model):
    answers = [None] * 8

    def work(at):
        with model.session(64) as session:
            answers[at] = session.generate(START, max_tokens=20, temperature=0).text

    threads = [threading.Thread(target=work, args=(at,)) for at in range(len(answers))]
    [thread.start() for thread in threads]
    [thread.join() for thread in threads]
    assert len(set(answers)) == 1 and STORY.startswith(answers[0])


def test_interpreter_runs_while_computing(model):
    ids = model.tokenize(START + STORY) * 12
    counted = 0
    done = threading.Event()

    def compute():
        model.logits(ids)
        done.set()

    thread = threading.Thread(target=compute)
    thread.start()
    while not done.is_set():
        counted += 1
        time.sleep(0.0005)
    thread.join()
    assert counted > 20
