#!/usr/bin/env python3
"""Draws a terminal with a command and its output as SVG: the picture in the README.

    ./demo 2>&1 | tools/docs/terminal_picture.py ./demo > docs/demo.svg

Of ninja's progress lines only the last is kept, as on a terminal. Nothing else is changed.
"""

import html
import re
import sys
import textwrap

COLUMNS = 100
CHAR = 8.4  # advance of a 14 px monospace font
LINE = 20
MARGIN = 20
BAR = 36  # height of the window's title bar

BACKGROUND, TITLE_BAR, TEXT, DIM, ACCENT, PROMPT = "#161b22", "#21262d", "#e6edf3", "#8b949e", "#79c0ff", "#7ee787"
PROGRESS = re.compile(r"\[\d+/\d+\] ")


def shown(output):
    """(colour, line) for every line of the screen."""
    lines = output.rstrip("\n").split("\n")
    for at, line in enumerate(lines):
        following = lines[at + 1] if at + 1 < len(lines) else ""
        if PROGRESS.match(line) and (PROGRESS.match(following) or following.startswith("ninja:")):
            continue
        quiet = PROGRESS.match(line) or line.startswith(("ninja:", "Installing:", "prompt "))
        colour = ACCENT if line.startswith("== ") else DIM if quiet else TEXT
        for part in textwrap.wrap(line, COLUMNS, break_long_words=True) or [""]:
            yield colour, part


def picture(command, output):
    rows = [(TEXT, None), *shown(output)]
    width, height = COLUMNS * CHAR + 2 * MARGIN, BAR + len(rows) * LINE + 2 * MARGIN
    yield (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" width="{width:g}" '
           f'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,\'DejaVu Sans Mono\',monospace" font-size="14">')
    yield f"<title>{html.escape(command)} and what it prints</title>"
    yield f'<rect width="100%" height="100%" rx="10" fill="{BACKGROUND}"/>'
    yield f'<path d="M0 {BAR}V10a10 10 0 0 1 10-10H{width - 10:g}a10 10 0 0 1 10 10V{BAR}z" fill="{TITLE_BAR}"/>'
    for at, colour in enumerate(("#ff5f57", "#febc2e", "#28c840")):
        yield f'<circle cx="{22 + 20 * at}" cy="{BAR / 2:g}" r="6" fill="{colour}"/>'
    for row, (colour, text) in enumerate(rows):
        y = BAR + MARGIN + (row + 0.75) * LINE
        if text is None:
            yield (f'<text x="{MARGIN}" y="{y:g}" fill="{PROMPT}">$ <tspan fill="{TEXT}" font-weight="bold">'
                   f"{html.escape(command)}</tspan></text>")
        elif text:
            yield f'<text x="{MARGIN}" y="{y:g}" fill="{colour}" xml:space="preserve">{html.escape(text)}</text>'
    yield "</svg>"


if __name__ == "__main__":
    print("\n".join(picture(sys.argv[1], sys.stdin.read())))
