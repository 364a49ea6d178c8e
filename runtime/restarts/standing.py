"""Where a script stands at a step, and with what: by which another process is known to stand in the same place."""

from __future__ import annotations

from types import FrameType
from typing import Any, NamedTuple

import tensorflow as tf

from ..foundation import is_of_script
from . import rounds, state
from .iterators import Order, Reads
from .numbered import Numbered
from .remembered import Memory


class Kept(NamedTuple):
    """What is followed from the first line of the script on."""

    variables: Numbered
    order: Order
    reads: Reads


class Standing:
    """Where the script is at a step, and with what."""

    def __init__(self, kept: Kept, result: Any, frame: FrameType, before: list[int | None]) -> None:
        """before: as of `lines_before`. Raises UnknownRound where a loop is one that no other could be in."""
        stack = own_frames(frame)
        self.memory = Memory(stack, {each: _fixed(each, line) for each, line in zip(stack, before, strict=True)})
        self.about = {
            "before": before,
            "stack": places(stack),
            "ends": [rounds.end(each, line) for each, line in zip(stack, before, strict=True) if line is not None],
            "result": state.digest(
                [each.numpy() for each in tf.nest.flatten(result, expand_composites=True) if hasattr(each, "numpy")]
            ),
            "variables": {key: state.digest(value) for key, value in state.values_of(kept.variables.living()).items()},
            "draws": state.draws(),
            "counts": kept.order.living(),
            "taken": dict(filter(None, (kept.reads.taken(each) for _, each in self.memory.iterators.values()))),
        }


def _fixed(frame: FrameType, line_before: int | None) -> set[str]:
    """The names that are compared only: which round it is cannot be put back, nor what a call was given."""
    code = frame.f_code
    given = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount] if line_before is None else ()
    return rounds.targets(code, frame.f_lineno) | set(given)


def places(stack: list[FrameType]) -> list[tuple[str, str, int]]:
    return [(each.f_code.co_filename, each.f_code.co_name, each.f_lineno) for each in stack]


def own_frames(frame: FrameType | None) -> list[FrameType]:
    """The frames of the script, the innermost first."""
    return [each for each in rounds.frames(frame) if is_of_script(each.f_code.co_filename)]


def lines_before(frame: FrameType, marks: rounds.Marks) -> list[int | None]:
    """Where the script's functions on the stack were when a checkpoint was saved, the innermost first; None for those
    that have begun since. Raises UnknownRound where a loop of somebody else's is around."""
    for each in rounds.frames(frame):
        line = marks.line(each)
        if line is not None and not is_of_script(each.f_code.co_filename) and rounds.end(each, line):
            raise rounds.UnknownRound(f"it is called in a loop of {each.f_code.co_filename}")
    return [marks.line(each) for each in own_frames(frame)]


def difference(then: dict[str, Any], now: dict[str, Any]) -> str:
    """What is not as it was at the first step after the checkpoint, in words; empty for nothing."""
    if then["ends"] != now["ends"]:
        return f"its loop was to end before {then['ends']}, and now before {now['ends']}"
    for key, digest in then["variables"].items():
        if now["variables"].get(key, digest) != digest:
            return f"{key[0].name} is not what it was after the first step"
    if then["draws"] != now["draws"]:
        return (
            f"{state.DRAWN} is not what it was after the first step (does the script draw between a checkpoint and it?)"
        )
    for kind, what in (("counts", "its data were shuffled"), ("taken", "of its data was taken")):
        if any(then[kind][number] != now[kind][number] for number in then[kind].keys() & now[kind].keys()):
            return f"{what} more often, or less, than the first time"
    return "the first step has another result" if then["result"] != now["result"] else ""


def where(stack: list[tuple[str, str, int]]) -> str:
    """The innermost place, and by which calls it came there."""
    return ", called at ".join(f"{path}:{line}" for path, _, line in stack) or "a place outside of the script"
