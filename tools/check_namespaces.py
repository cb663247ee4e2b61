#!/usr/bin/env python3
"""Fails when a backend's file opens another namespace than its folder's, or when one namespace of the library or the apps has
two types or constants of one name. runtime/ and device/ hold what all kernels of a backend share and are the backend's own namespace;
specialisations of run() stand there too, for the language wants them beside their template."""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
BACKENDS = ("cpu", "cuda", "reference")
OPENING = re.compile(r"^namespace(?: ([\w:]+))? \{$")
DEFINITION = re.compile(
    r"^(?:inline |static )?(?:(?:struct|class|enum class|enum)(?: alignas\(\d+\))? (\w+)\b(?!::)[^;(]*\{"
    r"|using (\w+) = |(?:inline )?constexpr [\w:<> ]+? (\w+)(?:\[[^]]*\])* ?[={])")


def home(backend, path):
    folder = path.parent.as_posix()
    inner = "" if folder in (".", "runtime", "device") else "::" + folder.replace("/", "::")
    return f"sluice::backend::{backend}{inner}"


def definitions(text):
    """(namespace, name) of what stands in a file's named namespaces; types and constants alone."""
    opened = []
    for line in text.splitlines():
        if opening := OPENING.match(line):
            opened.append(opening[1] or "")
        elif line.startswith("}  // namespace"):
            opened.pop()
        elif opened and "" not in opened and (found := DEFINITION.match(line)):
            yield "::".join(opened), found[1] or found[2] or found[3]


def sources(base):
    return sorted(p for p in base.rglob("*") if p.suffix in (".h", ".cpp", ".cuh", ".cu"))


def check_homes(backend):
    base = ROOT / "src/backend" / backend
    files = sources(base)
    problems = []
    for path in files:
        text = path.read_text()
        own = home(backend, path.relative_to(base))
        for name in re.findall(r"^namespace (sluice::[\w:]+) \{", text, re.MULTILINE):
            inside = name == own or name.startswith(own + "::")
            runs = name == f"sluice::backend::{backend}" and "\ntemplate <>\nvoid run(" in text
            if not inside and not runs:
                problems.append(f"{path.relative_to(ROOT)}: {name} is not the namespace of its folder, {own}")
    if not problems:
        print(f"{backend}: {len(files)} files in the namespaces of their folders")
    return problems


def check_names():
    where = collections.defaultdict(set)
    for folder in ("include", "src", "apps", "python/src"):
        for path in sources(ROOT / folder):
            if not path.parent.name.endswith("_absent"):  # a stub has the namespace of the folder that it replaces
                for namespace, name in definitions(path.read_text()):
                    where[namespace, name].add(path.relative_to(ROOT).as_posix())
    problems = [f"{namespace}::{name} is defined in {' and in '.join(sorted(found))}"
                for (namespace, name), found in sorted(where.items()) if len(found) > 1]
    if not problems:
        print(f"{len(where)} types and constants, no two of one name in one namespace")
    return problems


def main():
    problems = [problem for backend in BACKENDS for problem in check_homes(backend)] + check_names()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
