"""Goldens of the chat template interpreter: the output of Hugging Face's jinja2 environment.

Run with transformers 5.22.2 and jinja2 3.1.6:  python tools/golden/chat_template.py tests/data/text/chat_template
"""

import datetime
import json
import pathlib
import random
import sys

import jinja2
from transformers.utils import chat_template_utils

sys.path.insert(0, str(pathlib.Path(__file__).parent))
import chat_template_chats
import chat_template_expressions
import chat_template_random
import chat_template_statements


class FixedClock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return cls(2024, 7, 26, 15, 4, 5)


chat_template_utils.datetime = FixedClock


def render(template, variables):
    """One case: the rendered text, or the family and message of the exception."""
    case = {"template": template, "variables": variables}
    try:
        compiled = chat_template_utils._compile_jinja_template(template)
        return case | {"output": compiled.render(**json.loads(json.dumps(variables)))}
    except jinja2.exceptions.UndefinedError as error:
        return case | {"error": "undefined", "message": str(error)}
    except (jinja2.exceptions.SecurityError, jinja2.exceptions.TemplateSyntaxError) as error:
        return case | {"error": type(error).__name__}
    except jinja2.exceptions.TemplateError as error:
        raised = type(error) is jinja2.exceptions.TemplateError
        return case | ({"error": "raised", "message": str(error)} if raised else {"error": "runtime"})
    except (TypeError, ValueError, LookupError, ArithmeticError, SyntaxError, AttributeError,
            AssertionError, RuntimeError) as error:
        return case | {"error": type(error).__name__}


def write(path, cases):
    """Cases share contexts and templates, so a file stores each of them once."""
    tables = {"variables": [], "template": []}
    for case in cases:
        for key, table in tables.items():
            if case[key] not in table:
                table.append(case[key])
            case[key] = table.index(case[key])
    parts = {"variables": tables["variables"], "templates": tables["template"], "cases": cases}
    rows = {key: ",\n".join(json.dumps(row, ensure_ascii=False) for row in part) for key, part in parts.items()}
    text = ",\n".join(f'"{key}": [\n{row}\n]' for key, row in rows.items())
    path.write_text("{" + text + "}\n", encoding="utf-8")
    failures = sum("error" in case for case in cases)
    print(f"{path.name}: {len(cases)} cases, {failures} raise")


def main():
    folder = pathlib.Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    for module in (chat_template_expressions, chat_template_statements, chat_template_chats):
        cases = [render(template, variables) for template, variables in module.cases()]
        write(folder / f"{module.__name__.removeprefix('chat_template_')}.json", cases)
    generator = random.Random(20240726)
    cases = [render(*chat_template_random.case(generator)) for _ in range(600)]
    write(folder / "random.json", cases)


if __name__ == "__main__":
    main()
