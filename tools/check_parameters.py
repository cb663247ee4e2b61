#!/usr/bin/env python3
"""Fails if a function, constructor or lambda has more than six parameters: related ones should form a struct."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
MOST = 6
SUFFIXES = (".h", ".cpp", ".cu", ".cuh", ".inc")
# Not code: comments, literals and directives are replaced by blanks, so that line numbers stay.
NOISE = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'|^[ \t]*#(?:\\\n|[^\n])*', re.S | re.M)
OPENING = re.compile(r"(?:([A-Za-z_~]\w*|operator *\S+?)|\])\s*\(")
BUILTIN = r"(?:unsigned |signed )?(?:bool|char|short|int|long(?: long)?|float|double|unsigned|auto)"
NAME = r"\w+(?: *\[[^]]*\])*"
PARAMETER = re.compile(
    r"(?:\[\[\w+\]\] )?(?:const |typename |struct )*"  # qualifiers before a type
    r"(?:" + BUILTIN + r"|[A-Za-z_][\w:]*)(?: *<.*>(?:::\w+)*)?(?: const)?"  # the type
    r"(?=[ *&.(])(?: *(?:[*&]|\.\.\.|const\b|__restrict__|HWY_RESTRICT))*"  # pointers and references
    r" *(?:" + NAME + r"|\( *[&*]+ *\w*\) *(?:\[[^]]*\]|\(.*\))+)?")


def blank(match):
    return re.sub(r"[^\n]", " ", match[0])


def split(text, start):
    """The parts between the commas of a list that was opened before `start`, and the end of the list."""
    parts, begin, depth, angles = [], start, 0, 0
    for at in range(start, len(text)):
        sign = text[at]
        if sign in "([{":
            depth += 1
        elif sign in ")]}":
            if depth == 0:
                return parts + [text[begin:at]], at + 1
            depth -= 1
        elif sign == "<" and depth == 0 and re.match(r"\w", text[at - 1]):
            angles += 1
        elif sign == ">" and angles > 0 and text[at - 1] != "-":
            angles -= 1
        elif sign == "," and depth == 0 and angles == 0:
            parts.append(text[begin:at])
            begin = at + 1
    return [], len(text)


def declared(part):
    """Whether a part reads as a parameter and not as an argument."""
    words = re.sub(r"\s+", " ", re.sub(r"[^=!<>]=[^=].*", "", part, flags=re.S)).strip()
    return re.fullmatch(BUILTIN, words) or PARAMETER.fullmatch(words)


def long_lists(text):
    """(line, name, count) of every list of more than MOST parameters."""
    text = NOISE.sub(blank, text)
    for opening in OPENING.finditer(text):
        parts, _ = split(text, opening.end())
        if len(parts) > MOST and all(declared(part) for part in parts):
            yield text.count("\n", 0, opening.start()) + 1, opening[1] or "a lambda", len(parts)


def main():
    files = sorted(path for folder in ("include", "src", "apps", "python/src") for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES)
    problems = [f"{path.relative_to(ROOT)}:{line}: {name} takes {count} parameters"
                for path in files for line, name, count in long_lists(path.read_text())]
    print("\n".join(problems) or f"{len(files)} files, no function of more than {MOST} parameters")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
