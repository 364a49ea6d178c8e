"""`python -m tfdp.runtime.launch -np N [--] script args`, with the options of `tfdp run`."""

import argparse
import functools
import sys
from collections.abc import Callable

from ..foundation import allow_ports
from . import TF_LOG, TRACEBACKS, Nodes, Screen, main, of_options


def _parse() -> tuple[int, list[str], Screen, bool, Callable[[], Nodes | None], int]:
    parser = argparse.ArgumentParser(prog="python -m tfdp.runtime.launch", description="Run a script on N processes.")
    parser.add_argument("-np", type=int, required=True, metavar="N", help="how many processes")
    parser.add_argument("--tf-log", choices=TF_LOG)
    parser.add_argument("--traceback", choices=TRACEBACKS, default="cause")
    parser.add_argument("--log-dir", metavar="DIR")
    parser.add_argument("-v", "--verbose", action="store_true", help="say at the end what sharded calls have divided")
    parser.add_argument("--independent", action="store_true", help="let each process train a model of its own")
    parser.add_argument("--max-restarts", type=int, default=0, metavar="K", help="start a job that fails again")
    parser.add_argument("--nnodes", type=int, metavar="K")
    parser.add_argument("--node-rank", type=int, metavar="R")
    parser.add_argument("--root", metavar="HOST[:PORT]")
    parser.add_argument("--start-timeout", type=float, metavar="SECONDS")
    parser.add_argument("--link-timeout", type=float, metavar="SECONDS")
    parser.add_argument("--port-range", metavar="LOW-HIGH")
    parser.add_argument("argv", nargs=argparse.REMAINDER, metavar="script args", help="what to run on each")
    found = parser.parse_args()
    argv: list[str] = found.argv
    allow_ports(found.port_range)
    screen = Screen(found.tf_log, found.traceback, found.log_dir, found.verbose)
    nodes = functools.partial(
        of_options, found.nnodes, found.node_rank, found.root, found.start_timeout, found.link_timeout
    )
    argv = argv[1:] if argv[:1] == ["--"] else argv
    return found.np, argv, screen, found.independent, nodes, found.max_restarts


if __name__ == "__main__":
    number, command, shown, apart, hosts, restarts = _parse()
    sys.exit(main(number, command, shown, independent=apart, nodes=hosts, max_restarts=restarts))
