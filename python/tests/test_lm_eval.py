"""The adapter for lm-eval, if that is installed."""

import json

import pytest
import torch

pytest.importorskip("lm_eval")

import lm_eval
from lm_eval.api.instance import Instance
from lm_eval.api.registry import get_model
from lm_eval.api.task import ConfigurableTask

from sluice.lm_eval import SluiceLM

from conftest import START, STORY


def instance(kind, *arguments):
    return Instance(request_type=kind, doc={}, arguments=arguments, idx=0)


@pytest.fixture(scope="module")
def lm(model):
    return SluiceLM(model)


def test_loglikelihood(lm, model):
    text = " there was a cat"
    score, greedy = lm.loglikelihood([instance("loglikelihood", START, text)])[0]
    ids, first = model.tokenize(START + text), len(model.tokenize(START))
    rows = torch.from_numpy(model.logits(ids)).double().log_softmax(1)
    expected = sum(rows[at - 1, ids[at]] for at in range(first, len(ids)))
    assert score == pytest.approx(float(expected), abs=1e-4) and not greedy
    assert lm.loglikelihood([instance("loglikelihood", START, STORY[:20])])[0][1]  # what it would generate itself


def test_spaces_go_with_the_word_behind_them(lm):
    both = lm.loglikelihood([instance("loglikelihood", START + " ", "there was"), instance("loglikelihood", START, " there was")])
    assert both[0] == both[1]


def test_texts_beyond_the_context(model):
    """In lm-eval's windows, the last of which overlaps the previous one."""
    lm, text, longest = SluiceLM(model), START + STORY, 30
    lm._longest = longest
    ids = [model.stop_ids[0], *model.tokenize(text)]
    assert longest + 1 < len(ids) < 2 * longest

    def scores(part):
        rows = torch.from_numpy(model.logits(part[:-1])).double().log_softmax(1)
        return rows[torch.arange(len(part) - 1), part[1:]]

    expected = scores(ids[:longest + 1]).sum() + scores(ids[-longest - 1:])[longest * 2 + 1 - len(ids):].sum()
    made = lm.loglikelihood_rolling([instance("loglikelihood_rolling", text)])[0]
    assert made == pytest.approx(float(expected), rel=1e-6)
    assert lm.loglikelihood([instance("loglikelihood", text, " cat")])[0][0] < 0  # a long context loses its beginning


def test_conversations(lm, model):
    messages = [{"role": "user", "content": "Tell me a story."}]
    assert lm.apply_chat_template(messages) == model.render(messages) and lm.tokenizer_name == "delta-story"


def test_is_known_by_its_name(lm):
    """As created by simple_evaluate and the command line."""
    made = get_model("sluice").create_from_arg_string("model=delta-story,threads=2", {"batch_size": 1, "device": None})
    asked = [instance("loglikelihood", START, STORY[:20])]
    assert made.loglikelihood(asked) == lm.loglikelihood(asked)


def test_generate_until(lm):
    made = lm.generate_until([instance("generate_until", START, {"until": ["Lily"], "max_gen_toks": 40}),
                              instance("generate_until", START, {"until": [], "max_gen_toks": 40})])
    assert made == [STORY.split("Lily")[0], STORY]


def test_settings_of_generate_until(lm, model):
    def made(**settings):
        return lm.generate_until([instance("generate_until", START, {"max_gen_toks": 40, **settings})])[0]

    hot = {"temperature": 2.0, "do_sample": True}
    assert made(temperature=2.0, do_sample=False) == made(until=None) == made(**hot, top_k=1) == STORY
    assert made(**hot) == made(temperature=2.0) == model.generate(START, max_tokens=40, temperature=2.0, seed=0).text != STORY
    assert made(**hot, top_p=0.5) == model.generate(START, max_tokens=40, temperature=2.0, top_p=0.5, seed=0).text
    for name in ("max_new_tokens", "max_tokens", "max_completion_tokens"):
        assert made(max_gen_toks=None, **{name: 3}) == model.generate(START, max_tokens=3, temperature=0).text


def test_local_task(lm, tmp_path):
    data = [{"start": START, "good": ", there was a little girl", "bad": " purple of Tuesday seven"} for _ in range(4)]
    file = tmp_path / "data.json"
    file.write_text("\n".join(json.dumps(row) for row in data))
    task = ConfigurableTask(config={
        "task": "endings", "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(file)}, "cache_dir": str(tmp_path)},
        "test_split": "test", "output_type": "multiple_choice", "doc_to_text": "{{start}}", "target_delimiter": "",
        "doc_to_choice": ["{{bad}}", "{{good}}"], "doc_to_target": 1})
    task.config.doc_to_choice = lambda doc: [doc["bad"], doc["good"]]
    result = lm_eval.simple_evaluate(lm, tasks=[task], bootstrap_iters=0)
    assert result["results"]["endings"]["acc,none"] == 1.0
