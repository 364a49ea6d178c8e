"""Where a script stands at a step, and with what: by which another process is known to stand in the same place."""

from __future__ import annotations

from collections.abc import Collection
from types import FrameType
from typing import Any, NamedTuple

import tensorflow as tf

from ..foundation import is_of_script
from . import rounds, state
from .iterators import Order, Reads
from .numbered import Key, Numbered
from .plain import is_plain
from .remembered import Memory

_SMALL = 4096  # elements of variables that are kept, and not only compared


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
        values = state.values_of(kept.variables.living())
        self.about: dict[str, Any] = {
            "things": self.memory.things,
            "identities": self.memory.identities,
            "before": before,
            "stack": places(stack),
            "ends": [rounds.end(each, line) for each, line in zip(stack, before, strict=True) if line is not None],
            "result": state.digest(
                [each.numpy() for each in tf.nest.flatten(result, expand_composites=True) if _is_tensor(each)]
            ),
            "variables": {key: state.digest(value) for key, value in values.items()},
            "small": {key: value for key, value in values.items() if value.size <= _SMALL},
            "draws": state.draws(),
            "counts": kept.order.living(),
            "taken": dict(filter(None, (kept.reads.taken(each) for _, each in self.memory.iterators.values()))),
        }


def _is_tensor(thing: Any) -> bool:
    return isinstance(thing, tf.__internal__.EagerTensor) and is_plain(thing)


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
        if line is not None and not is_of_script(each.f_code.co_filename) and rounds.is_in_loop(each, line):
            raise rounds.UnknownRound(f"it is called in a loop of {each.f_code.co_filename}")
    stack = own_frames(frame)
    for each in stack:
        if marks.line(each) is not None:
            rounds.refuse_others_loops(each)
    return [marks.line(each) for each in stack]


def difference(then: dict[str, Any], now: dict[str, Any], saved: Collection[Key], awaited: Collection[Key]) -> str:
    """What is not as it was at the first step after the checkpoint, in words; empty for nothing.

    saved: the variables that were there when the checkpoint was saved. awaited: those of them that the rest of the step
    is to make, as what an optimizer remembers after the first gradient.
    """
    if then["ends"] != now["ends"]:
        was, is_now = (
            ", ".join(str(end.stop) for ends in each for end in ends) for each in (then["ends"], now["ends"])
        )
        return f"its loop was to end before {was}, and ends before {is_now}"
    both = then["variables"].keys() & now["variables"].keys() & saved
    for key in saved & then["variables"].keys():
        if key not in both and key not in awaited:
            return f"{key[0].name} was made before, and was not made again"
        if key in both and then["variables"][key] != now["variables"][key]:
            return f"{key[0].name} is not what it was after the first step"
    # Those that were made since have other numbers.
    since, now_since = (
        sorted((key[0], key[1], value) for key, value in each["variables"].items() if key not in both)
        for each in (then, now)
    )
    since = [each for each in since if each[:2] not in awaited]
    if [(kind, value) for kind, _, value in since] != [(kind, value) for kind, _, value in now_since]:
        name = next((kind.name for kind, *_ in (*since, *now_since)), "")
        return (
            f"{name}, or another variable that was made after the checkpoint, is not what it was after the first step"
        )
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
