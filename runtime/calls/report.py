"""What is divided, what not, and why: for `tfdp run -v`, the proof, and whoever asks."""

from __future__ import annotations

from typing import Any, NamedTuple

import tensorflow as tf

from ..foundation import uncaught
from . import sight


class Line(NamedTuple):
    """One layer or function. `reason` says why it is not divided; "" where it is.

    row_bytes: how much its calls in a step, their gradients included, gather for each row that is divided; None where
    that is not known before it runs.
    """

    name: str
    reason: str
    row_bytes: int | None


LARGE = 1024  # bytes of a row: below, a second exchange would cost more than it saves
_NAMED = 3  # layers of one reason
SINGLE, NONE = "one row", "no rows"  # the reason where a call is given no more
# What the end of a job begins with in which nothing is divided.
NOTHING = "nothing in this script could be sharded: every worker would do all the work"
_lines: dict[str, Line] = {}
_places: dict[str, int] = {}  # by name, the graph that was built last and gathers; 0 outside of graphs
_building: dict[str, None] = {}
_sites: list[str] = []  # where the first gradient was taken; none before


def divided(name: str) -> None:
    """It has been divided, in training."""
    if sight.is_validation():
        return
    found = _lines.get(name)
    if found is None or found.reason or tf.executing_eagerly():
        _lines[name] = Line(name, "", 0)


def gathered(name: str, rows: Any) -> None:
    """An exchange of a worker's rows has been made, or built into a graph, in training."""
    if sight.is_validation():
        return
    place = 0 if tf.executing_eagerly() else id(tf.compat.v1.get_default_graph())
    known = _lines.get(name, Line(name, "", 0)).row_bytes if _places.get(name) == place else 0
    size = rows.shape[1:].num_elements()
    _places[name] = place
    _lines[name] = Line(name, "", None if None in (size, known) else known + size * rows.dtype.size)


def undivided(name: str, reason: str) -> None:
    """It has been called whole, unless it has been divided otherwise."""
    known = _lines.get(name)
    if known is None or known.reason in (SINGLE, NONE):
        _lines[name] = Line(name, reason, None)


def building(name: str) -> None:
    """It has been called whole because the call builds it."""
    _building[name] = None


def report() -> list[Line]:
    """All that tapes have recorded so far."""
    return list(_lines.values())


def is_anything_divided() -> bool:
    """Whether a call was divided."""
    return any(not line.reason for line in _lines.values())


def are_single_rows() -> bool:
    """Whether there were calls, and all were given one row, or none."""
    return bool(_lines) and all(line.reason in (SINGLE, NONE) for line in _lines.values())


def said() -> list[str]:
    """The report as lines, with what would avoid the largest gathering."""
    parts = [each for each in _lines.values() if not each.reason]
    found = [f"tfdp: divided over the workers: {each.name}{_bytes(each)}" for each in parts]
    found += [f"tfdp: computed by every worker: {names} ({reason})" for reason, names in _whole().items()]
    largest = max(parts, key=lambda each: each.row_bytes or 0, default=None)
    if largest is None:
        return [*found, "tfdp: no call was divided over the workers"]
    if largest.row_bytes and largest.row_bytes >= LARGE:
        way = (
            "put the training step into a tf.function, in which rows are gathered only where they are asked for"
            if _places.get(largest.name) == 0
            else "give it to layers, losses and metrics of Keras' own, which take a worker's rows as they are"
        )
        found.append(f"tfdp: most is gathered of what {largest.name} gives; to avoid it, {way}")
    return found


def _whole() -> dict[str, str]:
    """What is not divided, by the reason."""
    by_reason: dict[str, list[str]] = {}
    for line in _lines.values():
        if line.reason:
            by_reason.setdefault(line.reason, []).append(line.name)
    return {reason: _some(names) for reason, names in by_reason.items()}


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


def _bytes(line: Line) -> str:
    return "" if line.row_bytes is None else f" ({line.row_bytes:,} bytes gathered for each of a worker's rows)"


def gradient(site: str) -> None:
    """One is taken there: the first is remembered."""
    if not _sites:
        _sites.append(site)


def said_at_the_end() -> list[str]:
    """What a user is to be told who has not asked: that nothing was divided, and nothing has ended the job."""
    if uncaught() is not None or is_anything_divided():
        return []
    return [f"tfdp: {nothing_divided(site)}" for site in _sites]


def nothing_divided(site: str) -> str:
    """Why a job ends in which nothing is divided."""
    reasons = "; ".join(f"{names}: {reason}" for reason, names in _whole().items())
    found = "No call of a Keras layer or model, nor of a function of dp.by_rows, was recorded by a tf.GradientTape"
    way = "Put what gives each row of the batch a result of its own into a layer, or into a function for dp.by_rows"
    if reasons:
        found = f"Of what a tape has recorded: {reasons}"
    elif _building:
        found = f"{_some(list(_building))} was called while it made its variables, and not again"
        way = "Build it, or call it once, before the step"
    return f"{NOTHING}. {found}. This was seen with the gradients at {site}. {way}"
