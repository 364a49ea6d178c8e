"""`python -m tfdp.runtime.launch -np N [--independent] [--] script args`."""

import argparse
import sys

from . import main


def _parse() -> tuple[int, list[str], bool]:
    parser = argparse.ArgumentParser(prog="python -m tfdp.runtime.launch", description="Run a script on N processes.")
    parser.add_argument("-np", type=int, required=True, metavar="N", help="how many processes")
    parser.add_argument("--independent", action="store_true", help="let each process train a model of its own")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="script args", help="what to run on each")
    found = parser.parse_args()
    argv: list[str] = found.argv
    return found.np, argv[1:] if argv[:1] == ["--"] else argv, found.independent


if __name__ == "__main__":
    number, command, apart = _parse()
    sys.exit(main(number, command, independent=apart))
