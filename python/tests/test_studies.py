"""inspect, plan, random and convert: the same results as the commands of those names."""

import json

import pytest

import sluice
from conftest import command_line

TINY = "qwen3.6-35b-a3b:layers=4,experts=8,vocab=1024"


def test_names_are_looked_up_without_a_home(monkeypatch):
    """As in a container whose user has no entry."""
    def unknown(user):
        raise KeyError(user)

    monkeypatch.setattr("pwd.getpwuid", unknown)
    for name in ("HOME", "XDG_DATA_HOME", "HF_HOME", "HF_HUB_CACHE"):
        monkeypatch.delenv(name, raising=False)
    assert sluice.inspect("delta-story")["layers"] == 8


def test_inspect():
    said, made = json.loads(command_line("inspect", "delta-story", "--json")), sluice.inspect("delta-story")
    parts = {part["kind"]: {"parameters": part["parameters"], "bytes": part["bytes"]} for part in said.pop("parts")}
    assert made.pop("parts") == parts
    assert made == said


def test_plan():
    made = sluice.plan("qwen3.6-35b-a3b", bits=4, memory="64GB")
    assert 30e9 < made["parameters"] < 40e9 and made["dense_bytes"] + made["expert_bytes"] <= made["weight_bytes"] * 1.01
    cpu = next(place for place in made["places"] if place["place"] == "CPU")
    assert cpu["budget"] == 64_000_000_000 and cpu["longest_context"] > 100_000
    little = sluice.plan("qwen3.6-35b-a3b", bits=4, memory="8GB")["places"][-1]
    assert 0 < little["expert_slots"] < 256  # the others are read from disk
    assert sluice.plan("delta-story", memory=1 << 30)["weight_bytes"] == sluice.inspect("delta-story")["weight_bytes"]


def test_random_and_convert(tmp_path):
    written = sluice.random(TINY, tmp_path / "plain", bits=16)
    assert 0.99 < written / sum(file.stat().st_size for file in (tmp_path / "plain").glob("*.safetensors")) <= 1
    made = sluice.convert(tmp_path / "plain", tmp_path / "packed", bits=4, threads=2)
    assert made["quantized"] > 0 and made["bytes_out"] < made["bytes_in"] / 3
    assert any(entry.startswith("4-bit") for entry in sluice.inspect(tmp_path / "packed")["formats"])
    with sluice.Model(tmp_path / "packed") as packed, sluice.Model.random(TINY, bits=4) as random:
        assert packed.generate([1, 2, 3], max_tokens=3, ignore_stop_ids=True).finish_reason == "length"
        assert random.summary["parameters"] == packed.summary["parameters"]
    with pytest.raises(sluice.Error):
        sluice.convert(tmp_path / "plain", tmp_path / "packed")  # is not empty
    with pytest.raises(sluice.InputError):
        sluice.random("no-such-geometry", tmp_path / "none")
    assert not (tmp_path / "none").exists()
