"""The examples of docs/python.md, in their order, as one program."""

import pathlib
import re

TEXT = (pathlib.Path(__file__).parents[2] / "docs/python.md").read_text()
EXAMPLES = re.findall(r"^## ([^\n]+)\n\n```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)


def test_examples(capsys):
    names: dict[str, object] = {}
    assert len(EXAMPLES) >= 10
    for title, code in EXAMPLES:
        exec(compile(code, f"docs/python.md: {title}", "exec"), names)
    assert "there was a little girl named Lily" in capsys.readouterr().out
