"""`python -m tfdp.runtime.launch -np N [--] script args`."""

import argparse
import sys

from . import main


def _parse() -> tuple[int, list[str]]:
    parser = argparse.ArgumentParser(prog="python -m tfdp.runtime.launch", description="Run a script on N processes.")
    parser.add_argument("-np", type=int, required=True, metavar="N", help="how many processes")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="script args", help="what to run on each")
    found = parser.parse_args()
    argv: list[str] = found.argv
    return found.np, argv[1:] if argv[:1] == ["--"] else argv


if __name__ == "__main__":
    sys.exit(main(*_parse()))
