"""python -m sluice: the command line."""

import os
import sys

from ._options import command_line


def main() -> None:
    os.execv(command_line(), ["sluice", *sys.argv[1:]])


if __name__ == "__main__":
    main()
