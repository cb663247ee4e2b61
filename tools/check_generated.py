#!/usr/bin/env python3
"""Judges documents that were written by schemas: grammar_suites TOKENS generate FOLDER | tools/check_generated.py FOLDER

A line is the name of a file in FOLDER, a tab and a document. Fails if one does not fulfil the schema of its file.
"""

import decimal
import json
import pathlib
import sys

import jsonschema


def read_number(text):
    """Large whole numbers with an exponent (1e308) are kept exact, as those without one are."""
    number = decimal.Decimal(text)
    whole = 15 < number.adjusted() < 400 and number == number.to_integral_value()
    return int(number) if whole else float(text)


folder = pathlib.Path(sys.argv[1])
validators, wrong, good = {}, 0, 0
for line in sys.stdin:
    name, tab, text = line.rstrip("\n").partition("\t")
    if not tab:
        print(line, end="")
        continue
    if name not in validators:
        schema = json.loads((folder / name).read_text(), parse_float=read_number)["schema"]
        validators[name] = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)(schema)
    try:
        error = jsonschema.exceptions.best_match(validators[name].iter_errors(json.loads(text, parse_float=read_number)))
    except Exception as problem:  # a schema that the judge cannot read
        print(f"NOT JUDGED {name}: {problem}"[:300])
        continue
    good += error is None
    if error is not None:
        wrong += 1
        print(f"WRONG {name}: {error.message} at {error.json_path} by {list(error.schema_path)}"[:400])
print(f"documents {good + wrong} by {len(validators)} schemas, wrong {wrong}")
sys.exit(wrong > 0)
