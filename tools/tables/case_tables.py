#!/usr/bin/env python3
"""Writes src/jinja/case_tables.inc: the case and digit properties of Python's str that PCRE2's tables lack.

    tools/tables/case_tables.py

Characters whose upper, title or folded form is not the single character that PCRE2's case conversion gives, and characters
that are digits or numbers but no decimals. Run with Python 3.11 (Unicode 14.0).
"""

import pathlib
import sys
import unicodedata

OUT = pathlib.Path(__file__).parents[2] / "src/jinja/case_tables.inc"


def literal(text):
    return '"' + "".join(f"\\x{byte:02x}" for byte in text.encode()) + '"'


def ranges(predicate):
    found = []
    for code in range(0x80, sys.maxunicode + 1):
        if not predicate(chr(code)):
            continue
        if found and found[-1][1] == code - 1:
            found[-1][1] = code
        else:
            found.append([code, code])
    return found


def rows(items, width=118):
    lines, line = [], "   "
    for item in items:
        if len(line) + len(item) + 1 > width:
            lines.append(line)
            line = "   "
        line += " " + item
    return "\n".join([*lines, line])


def main():
    points = [chr(code) for code in range(0x80, sys.maxunicode + 1) if not 0xD800 <= code < 0xE000]
    text = f"// Written by tools/tables/case_tables.py from Unicode {unicodedata.unidata_version}.\n"
    for name, special in {
        "kUpper": [(c, c.upper()) for c in points if len(c.upper()) > 1],
        "kTitle": [(c, c.title()) for c in points if c.title() != c.upper()],
        "kFolded": [(c, c.casefold()) for c in points if c.casefold() != c.lower()],
    }.items():
        items = [f"{{0x{ord(c):x}, {literal(to)}}}," for c, to in special]
        text += f"constexpr Mapping {name}[] = {{\n{rows(items)}\n}};\n"
    for name, predicate in {
        "kDigits": lambda c: c.isdigit() and not c.isdecimal(),
        "kNumbers": lambda c: c.isnumeric() and not c.isdecimal(),
    }.items():
        items = [f"{{0x{first:x}, 0x{last:x}}}," for first, last in ranges(predicate)]
        text += f"constexpr Interval {name}[] = {{\n{rows(items)}\n}};\n"
    OUT.write_text(text)


if __name__ == "__main__":
    main()
