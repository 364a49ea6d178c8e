"""`Runner(np=4).run(main, …)`: a function on new processes, as HorovodRunner runs it, from a script or a notebook."""

from __future__ import annotations

from .driver import Runner, WorkerError, run_on_all

__all__ = ["Runner", "WorkerError", "run_on_all"]
