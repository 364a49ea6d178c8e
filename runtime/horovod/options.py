"""What Horovod's functions take that this runtime does not, or takes in other words."""

from __future__ import annotations

from typing import Any

from ..foundation import Average, ReduceOp, Sum, TfdpError, call_site
from .names import LEFT_OUT


def left_out(module: str, name: str) -> AttributeError:
    """The error for a name that a module of Horovod's has, or has not, and this one has not."""
    why = LEFT_OUT.get(name)
    if why is None:
        return AttributeError(f"module {module!r} has no attribute {name!r}, as Horovod 0.28.1's has not")
    return AttributeError(f"{name} is not in {module}: {why}")


class _AllRanks:
    """`global_process_set`: the only one there is."""

    process_set_id = 0

    def size(self) -> int:
        """How many ranks there are."""
        from ..job import size

        return size()

    def rank(self) -> int:
        """This process's number."""
        from ..job import rank

        return rank()

    def included(self) -> bool:
        """Whether this process belongs to it: always."""
        return True


global_process_set = _AllRanks()


def reduction(average: bool | None, op: ReduceOp | None) -> ReduceOp:
    """The one that `average`, the older word, or `op` asks for; Average without either. Raises ValueError for both."""
    if average is not None and op is not None:
        raise ValueError(f"allreduce at {call_site()} has both op and average: give op alone")
    if op is not None:
        return op
    return Average if average is None or average else Sum


def refuse_process_set(process_set: Any) -> None:
    """Raise TfdpError for anything but all ranks."""
    if process_set is not None and process_set is not global_process_set:
        raise TfdpError(f"process_set at {call_site()}: {LEFT_OUT['ProcessSet']}")
