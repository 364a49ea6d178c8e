"""Ends the ranks' process groups when the launcher has been killed before it could (kill -9 cannot be caught).

Run by file name in a Python without site-packages. Reads `+PID` and `-PID` lines; at the end of the input it kills
the groups that are left. A launcher that ends in order has removed them all.
"""

import contextlib
import os
import signal
import sys


def main() -> None:
    """Follow the launcher until it is gone."""
    groups: set[int] = set()
    for line in sys.stdin:
        number = int(line[1:])
        if line[0] == "+":
            groups.add(number)
        else:
            groups.discard(number)
    for group in groups:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(group, signal.SIGKILL)


if __name__ == "__main__":
    main()
