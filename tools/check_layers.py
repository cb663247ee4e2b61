#!/usr/bin/env python3
"""Fails if an include points up, sideways, or from an app or the Python package past the public headers (levels:
tools/layers.txt), if code that runs models names a backend, or if the library does what only programs may do."""

import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Folders that know backends only by their traits.
BLIND = ("src/state/", "src/layers/", "src/models/", "src/engine/", "src/nodes/", "src/scheduler/")
BACKEND = re.compile(r'"(?:reference|cpu|cuda)"')
OF_PROGRAMS = re.compile(r"\b(?:getenv|std::exit|std::abort|_Exit|std::cout|std::cerr|std::puts|std::printf|std::fprintf)\b|fmt::print\(")
INCLUDE = re.compile(r'^\s*#\s*include\s+"([^"]+)"', re.MULTILINE)


def read_levels():
    levels = {}
    for line in (ROOT / "tools/layers.txt").read_text().splitlines():
        if line and not line.startswith("#"):
            path, level = line.split()
            levels[path] = int(level)
    return levels


def place(path, levels):
    """The longest entry of the table that contains the file, and its level."""
    parts = path.split("/")
    for end in range(len(parts), 0, -1):
        entry = "/".join(parts[:end])
        if entry in levels:
            return entry, levels[entry]
    return None, None


def resolve(source, name):
    app = ["/".join(source.split("/")[:2]), "apps"] if source.startswith("apps/") else []
    for base in ("include", "src", *app, str(pathlib.PurePosixPath(source).parent)):
        if (ROOT / base / name).is_file():
            return f"{base}/{name}"
    return None


def allowed(source, target, levels):
    source_entry, source_level = place(source, levels)
    target_entry, target_level = place(target, levels)
    if source_entry == target_entry:
        return True
    if source_entry in ("apps", "python"):
        return target.startswith("include/sluice/")
    # Backends share the files beside them, but never include each other.
    if source_entry.startswith("src/backend/") and target_entry == "src/backend":
        return True
    # A public header belongs to the folder that implements it.
    if target.startswith("include/sluice/") and target_level == source_level:
        return True
    return target_level < source_level


def main():
    levels = read_levels()
    problems = []
    files = [p for folder in ("include", "src", "apps", "python") for p in (ROOT / folder).rglob("*") if p.suffix in (".h", ".cpp", ".cu", ".cuh", ".inc")]
    for path in sorted(files):
        source = path.relative_to(ROOT).as_posix()
        if place(source, levels)[0] is None:
            problems.append(f"{source}: its folder has no level in tools/layers.txt")
            continue
        text = path.read_text()
        if source.startswith(BLIND) and (named := BACKEND.search(text)):
            problems.append(f"{source}: names the backend {named.group()}")
        if source.startswith(("src/", "include/")) and (found := OF_PROGRAMS.search(text)):
            problems.append(f"{source}: {found.group()} is for programs: the library never prints, exits or reads the environment")
        for name in INCLUDE.findall(text):
            target = resolve(source, name)
            if target is None:
                problems.append(f"{source}: includes {name}, which is not in the tree")
            elif place(target, levels)[0] is None:
                problems.append(f"{source}: includes {target}, which has no level")
            elif not allowed(source, target, levels):
                problems.append(f"{source}: must not include {target}")
            elif target.startswith("src/backend/") and not source.startswith("src/backend/"):
                problems.append(f"{source}: only backends include {target}")
    print("\n".join(problems) or f"{len(files)} files, every include points down")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
