"""`python -m tfdp.runtime.launch -np N [--] script args`, with the options of `tfdp run`."""

import argparse
import sys

from . import TF_LOG, TRACEBACKS, Screen, main


def _parse() -> tuple[int, list[str], Screen, bool]:
    parser = argparse.ArgumentParser(prog="python -m tfdp.runtime.launch", description="Run a script on N processes.")
    parser.add_argument("-np", type=int, required=True, metavar="N", help="how many processes")
    parser.add_argument("--tf-log", choices=TF_LOG)
    parser.add_argument("--traceback", choices=TRACEBACKS, default="cause")
    parser.add_argument("--log-dir", metavar="DIR")
    parser.add_argument("-v", "--verbose", action="store_true", help="say at the end what sharded calls have divided")
    parser.add_argument("--independent", action="store_true", help="let each process train a model of its own")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="script args", help="what to run on each")
    found = parser.parse_args()
    argv: list[str] = found.argv
    screen = Screen(found.tf_log, found.traceback, found.log_dir, found.verbose)
    return found.np, argv[1:] if argv[:1] == ["--"] else argv, screen, found.independent


if __name__ == "__main__":
    number, command, shown, apart = _parse()
    sys.exit(main(number, command, shown, independent=apart))
