"""The windows in which lm-eval scores a long text, for tests/unit/study.

Run with lm-eval 0.4.13: python tools/golden/windows.py [FOLDER WITH THE PACKAGE lm_eval]

Each case is [tokens, context, stride] and the windows [begin, end, target]: the model reads the tokens [begin, end) and is
scored on [target, end + 1).
"""

import json
import pathlib
import re
import sys
from typing import Generator  # used in the function's annotation

OUT = pathlib.Path(__file__).parents[2] / "tests/data/study/windows.json"


def rolling_windows():
    """lm-eval's function. The module has many dependencies, so with a folder only the function's source is used."""
    if len(sys.argv) < 2:
        from lm_eval.utils import get_rolling_token_windows

        return get_rolling_token_windows
    text = (pathlib.Path(sys.argv[1]) / "lm_eval/utils.py").read_text()
    found = {"Generator": Generator}
    exec(re.search(r"def get_rolling_token_windows.*?(?=\n\n\ndef )", text, re.S).group(), found)  # noqa: S102
    return found["get_rolling_token_windows"]


def main():
    windows = rolling_windows()
    cases = []
    for tokens in (1, 2, 3, 7, 8, 9, 15, 16, 17, 33, 100):
        for context in (1, 2, 5, 8, 64):
            for stride in sorted({1, 2, 3, context // 2, context}):
                if not 1 <= stride <= context:
                    continue
                rows = []
                for read, predicted in windows(list(range(1, tokens)), 0, context, context - stride + 1):
                    rows.append([read[0], read[-1] + 1, predicted[0]])
                    assert predicted[-1] == read[-1] + 1
                cases.append({"case": [tokens, context, stride], "windows": rows})
    OUT.write_text(json.dumps(cases, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
