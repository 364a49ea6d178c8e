"""Horovod's API over this runtime: a script moves by changing its import.

    import tfdp.runtime.horovod.tensorflow as hvd

Names, arguments and their order are those of Horovod 0.28.1; what is left out says so where it is used. A script
trains as it did: it shards its data, seeds, broadcasts and writes by itself, each rank computes its own batches, and
gradients are averaged.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from .names import LEFT_OUT, MODULES

__all__ = ["LEFT_OUT", "MODULES", "run"]
__version__ = "0.28.1"  # of the Horovod whose names these are: scripts print it, and compare it
_ELSEWHERE = ("hostfile", "host_discovery_script", "min_num_proc", "max_num_proc", "min_np", "max_np", "slots")


def run(
    func: Callable[..., Any],
    args: Sequence[Any] = (),
    kwargs: Mapping[str, Any] | None = None,
    num_proc: int = 1,
    *,
    hosts: str | None = None,
    np: int | None = None,
    **options: Any,
) -> list[Any]:
    """`horovod.run`: call a function on that many new processes of this machine; what each gives, by rank.

    Other options, which are about how Horovod's own processes find each other, mean nothing here.

    Raises:
        ValueError: other hosts, or a number of processes that changes.
        WorkerError, TypeError: as `Runner.run`.
    """
    named = [name for name in _ELSEWHERE if options.get(name) is not None]
    others = [host for host in (hosts or "").split(",") if host.partition(":")[0] not in ("", "localhost", "127.0.0.1")]
    if named or others:
        given = f"hosts={hosts!r}" if others else named[0]
        raise ValueError(f"horovod.run({given}): the processes are those of this machine, as many from start to end")
    from ..runner import run_on_all

    return run_on_all(func, args, dict(kwargs or {}), num_proc if np is None else np)


def __getattr__(name: str) -> Any:
    """The modules, as `import horovod.tensorflow` gives them."""
    if name not in ("keras", "tensorflow"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}: it has tensorflow and keras")
    return importlib.import_module(f"{__name__}.{name}")
