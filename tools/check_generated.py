#!/usr/bin/env python3
"""Validates documents that were generated from schemas: grammar_suites TOKENS generate FOLDER | tools/check_generated.py FOLDER

A line is the name of a file in FOLDER, a tab and a document. Fails if one is invalid under the schema of its file. If an object repeats
a name, the validator sees the last value, as JSON parsers do; such documents are counted.
"""

import datetime
import fractions
import json
import pathlib
import re
import sys

import jsonschema

sys.set_int_max_str_digits(0)


def read_number(text):
    """Exact; whole numbers as int. Exponents are limited to 20,000, far beyond any bound in a schema."""
    mantissa, _, exponent = text.lower().partition("e")
    exponent = max(-20000, min(20000, int(exponent or "0")))
    number = fractions.Fraction(mantissa) * fractions.Fraction(10) ** exponent
    return int(number) if number.denominator == 1 else number


def is_leap_second(date, time):
    """RFC 3339, section 5.7: the last second of a day in UTC and, if the date is known, of June or December."""
    read = re.fullmatch(r"(\d\d:\d\d):60(?:\.\d+)?(Z|[+-]\d\d:\d\d)", time)
    if not read:
        return False
    zone = read[2].replace("Z", "+00:00")
    day = "2000" + (date[4:] or "-06-15")  # the library does not support the years next to 0000 and 9999
    instant = datetime.datetime.fromisoformat(f"{day}T{read[1]}:59{zone}").astimezone(datetime.timezone.utc)
    return instant.strftime("%H:%M") == "23:59" and (not date or instant.strftime("%m-%d") in ("06-30", "12-31"))


def checker_of(judge):
    """The validator's formats, corrected where they reject valid strings: leap seconds and, in relative JSON pointers, a
    digit after any zero (10, but also 105)."""
    checker = jsonschema.FormatChecker(())
    checker.checkers = dict(judge.FORMAT_CHECKER.checkers)

    def amend(name, also):
        if name not in checker.checkers:
            return
        function, raises = checker.checkers[name]
        raises = (raises,) if isinstance(raises, type) else tuple(raises)
        checker.checkers[name] = (lambda text: not isinstance(text, str) or also(text) or function(text), raises + (ValueError,))

    amend("time", lambda text: is_leap_second("", text.upper()))
    amend("date-time", lambda text: is_leap_second(*text.upper().split("T", 1)) if "T" in text.upper() else False)
    amend("relative-json-pointer", lambda text: re.fullmatch(r"(0|[1-9][0-9]*)(#|(/([^~/]|~[01])*)*)", text, re.DOTALL))
    return checker


def read_object(pairs):
    global repeats
    made = dict(pairs)
    repeats = repeats or len(made) < len(pairs)
    return made


def pattern(validator, pattern, instance, schema):
    """ECMAScript's \\s includes the byte order mark, Python's does not."""
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
        validators[name] = jsonschema.validators.extend(judge, {"pattern": pattern})(schema, format_checker=checker_of(judge))
    repeats = False
    try:
        document = json.loads(text, parse_float=read_number, object_pairs_hook=read_object)
        error = jsonschema.exceptions.best_match(validators[name].iter_errors(document))
    except Exception as problem:  # a schema or number that the checker cannot read
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
