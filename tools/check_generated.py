#!/usr/bin/env python3
"""Judges documents that were written by schemas: grammar_suites TOKENS generate FOLDER | tools/check_generated.py FOLDER

A line is the name of a file in FOLDER, a tab and a document. Fails if one does not fulfil the schema of its file. Of a name that
an object repeats the judge sees the last value, as readers of JSON do; how many documents do that is counted.
"""

import decimal
import json
import pathlib
import re
import sys

import jsonschema

EXACT = decimal.Context(prec=1000, Emax=decimal.MAX_EMAX, Emin=decimal.MIN_EMIN)


def read_number(text):
    """Large whole numbers with an exponent (1e308) are kept exact, as those without one are."""
    number = decimal.Decimal(text)
    whole = 15 < number.adjusted() < 400 and number == number.to_integral_value(context=EXACT)
    return int(number) if whole else float(text)


def read_object(pairs):
    global repeats
    made = dict(pairs)
    repeats = repeats or len(made) < len(pairs)
    return made


def pattern(validator, pattern, instance, schema):
    """ECMAScript's \\s holds the byte order mark, Python's does not."""
    if isinstance(instance, str) and not re.search(pattern, instance) and not re.search(pattern, instance.replace("\ufeff", " ")):
        yield jsonschema.ValidationError(f"{instance!r} does not match {pattern!r}")


folder = pathlib.Path(sys.argv[1])
validators, wrong, good, repeated, not_judged = {}, 0, 0, 0, 0
for line in sys.stdin:
    name, tab, text = line.rstrip("\n").partition("\t")
    if not tab:
        print(line, end="")
        continue
    if name not in validators:
        schema = json.loads((folder / name).read_text(), parse_float=read_number)["schema"]
        judge = jsonschema.validators.validator_for(schema, jsonschema.Draft202012Validator)
        validators[name] = jsonschema.validators.extend(judge, {"pattern": pattern})(schema, format_checker=judge.FORMAT_CHECKER)
    repeats = False
    try:
        document = json.loads(text, parse_float=read_number, object_pairs_hook=read_object)
        error = jsonschema.exceptions.best_match(validators[name].iter_errors(document))
    except Exception as problem:  # a schema or a number that the judge cannot read
        not_judged += 1
        print(f"NOT JUDGED {name}: {problem!r}"[:300])
        continue
    repeated += repeats
    good += error is None
    if error is not None:
        wrong += 1
        print(f"WRONG {name}: {error.message} at {error.json_path} by {list(error.schema_path)}"[:400])
print(f"documents {good + wrong} by {len(validators)} schemas, wrong {wrong}; not judged {not_judged}, with a repeated name {repeated}")
sys.exit(wrong > 0)
