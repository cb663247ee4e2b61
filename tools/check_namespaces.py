#!/usr/bin/env python3
"""Fails if a file opens a namespace other than its folder's, or if one namespace of the library or the apps has two types or constants
of the same name. HOMES lists the folders whose namespace is not spelt like their path, and why. Any file may also open

- a namespace within its folder's that is no sub-folder's,
- `sluice` and `sluice::ops`, the namespaces of the public headers, to define or complete what these declare,
- any other to declare a type that it only names, or to specialise a template, which must stand in the template's namespace."""

import collections
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
ROOTS = ("include", "src", "apps", "python/src")  # the trees in which sub-folders are namespaces
HOMES = {
    "include/sluice": "sluice",
    "python/src": "sluice::python",
    "src/base": "sluice",  # used by every folder, so without a name of its own, like the public headers
    "src/tensor": "sluice::ops",  # completes the public headers of views and element types
    "src/ops/limits": "sluice::ops",  # member functions of the public ops, and the rules they share
    "src/runner/cases": "sluice::runner",  # specialisations of the function runner::cases, and what they share
    # One of two implementations of a header in the parent folder.
    "src/experts/uring": "sluice::experts",
    "src/nodes/mpi": "sluice::nodes",
    # What all kernels of a backend share is in the backend's own namespace.
    "src/backend/cpu/runtime": "sluice::backend::cpu",
    "src/backend/cuda/runtime": "sluice::backend::cuda",
    "src/backend/cuda/device": "sluice::backend::cuda",
    "src/backend/reference/runtime": "sluice::backend::reference",
}
PUBLIC = ("sluice", "sluice::ops")
OPENING = re.compile(r"^namespace(?: ([\w:]+))? \{$")
DEFINITION = re.compile(
    r"^(?:inline |static )?(?:(?:struct|class|enum class|enum)(?: alignas\(\d+\))? (\w+)\b(?!::)[^;(]*\{"
    r"|using (\w+) = |(?:inline )?constexpr [\w:<> ]+? (\w+)(?:\[[^]]*\])* ?[={])")


def home(folder):
    """The namespace of a folder; x_absent stands for folder x, which a build leaves out."""
    folder = folder.removesuffix("_absent")
    if folder in HOMES:
        return HOMES[folder]
    parent, _, name = folder.rpartition("/")
    return "sluice" if folder in ROOTS else f"{home(parent)}::{name}"


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


def blocks(text):
    """(namespace, content) for each namespace opened in full; short ones, of declarations alone, close without a comment."""
    for opening in re.finditer(r"^namespace (sluice[\w:]*) \{\n", text, re.MULTILINE):
        rest = text[opening.end():]
        end = re.search(rf"^}}  // namespace {opening[1]}$", rest, re.MULTILINE) or re.search("^}", rest, re.MULTILINE)
        yield opening[1], rest[:end.start()]


def check_homes(root):
    files = sources(ROOT / root)
    homes = {path: home(path.parent.relative_to(ROOT).as_posix()) for path in files}
    taken = set(homes.values())
    problems = []
    for path in files:
        text = path.read_text()
        own = homes[path]
        for name, content in blocks(text):
            inside = name == own or name.startswith(own + "::") and name not in taken
            public = name in PUBLIC and (path.suffix == ".cpp" or '#include "sluice/' in text)
            elsewhere = "\ntemplate <>\n" in content or re.fullmatch(r"(\s*(class|struct) \w+;)+\s*", content)
            if not inside and not public and not elsewhere:
                problems.append(f"{path.relative_to(ROOT)}: {name} is not the namespace of its folder, {own}")
    if not problems:
        print(f"{root}: {len(files)} files in the namespaces of their folders")
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
    problems = [problem for root in ROOTS for problem in check_homes(root)] + check_names()
    for problem in problems:
        print(problem)
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
