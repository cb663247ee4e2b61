"""The examples of docs/python.md and the cells of docs/inside.ipynb, each run in order as one program, and the tour of all names."""

import json
import pathlib
import re

import pytest

import sluice
import tour

DOCS = pathlib.Path(__file__).parents[2] / "docs"
EXAMPLES = re.findall(r"^## ([^\n]+)\n\n```python\n(.*?)^```", (DOCS / "python.md").read_text(), re.MULTILINE | re.DOTALL)


def test_examples(capsys):
    names: dict[str, object] = {}
    assert len(EXAMPLES) >= 10
    for title, code in EXAMPLES:
        exec(compile(code, f"docs/python.md: {title}", "exec"), names)
    assert "there was a little girl named Lily" in capsys.readouterr().out


def test_tour_uses_every_name(tmp_path):
    tour.main(tmp_path)
    code = pathlib.Path(tour.__file__).read_text()
    assert [name for name in sluice.__all__ if f"sluice.{name}" not in code and name != "ops"] == []


def test_notebook():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    names: dict[str, object] = {}
    cells = [cell for cell in json.loads((DOCS / "inside.ipynb").read_text())["cells"] if cell["cell_type"] == "code"]
    assert len(cells) >= 3
    for at, cell in enumerate(cells):
        exec(compile("".join(cell["source"]), f"docs/inside.ipynb: cell {at}", "exec"), names)
    assert len(names["speeds"]) == 5 and min(names["speeds"]) > 0
    assert names["uses"].sum() > 0
    assert len(matplotlib.pyplot.get_fignums()) == 3
    matplotlib.pyplot.close("all")
