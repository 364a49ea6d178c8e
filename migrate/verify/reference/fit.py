"""The data of Keras' `fit` in the reference script: what workers drop is dropped."""

from __future__ import annotations

from collections.abc import Iterator

from ....rules._base import Outcome, SetArg
from ... import build
from ...facts.keras import POSITIONS, FitData, batch_size_of, held_out_by
from ...facts.script import Script

_ARRAYS = '''\
def tfdp_is_array(part):
    """Whether a part of a list is an input of its own, not a row of one."""
    return part is None or isinstance(part, (dict, tuple)) or len(getattr(part, "shape", ())) > 0


def tfdp_each(data, change):
    """A change made to each array of a structure."""
    if data is None:
        return None
    if isinstance(data, dict):
        return {{key: tfdp_each(part, change) for key, part in data.items()}}
    if isinstance(data, tuple) or (isinstance(data, list) and all(map(tfdp_is_array, data))):
        return type(data)([tfdp_each(part, change) for part in data])
    return change(data)


def tfdp_even(data, validation_split=0.0):
    """The rows of arrays that {size} workers share evenly: the last n mod {size} are dropped."""

    def change(rows):
        end = int(len(rows) * (1.0 - validation_split))
        return getattr(rows, "iloc", rows)[: end - end % {size}]

    return tfdp_each(data, change)


def tfdp_held_out(data, validation_split):
    """The rows that Keras holds out for validation."""
    return tfdp_each(data, lambda rows: getattr(rows, "iloc", rows)[int(len(rows) * (1.0 - validation_split)) :])
'''


def helpers(script: Script) -> list[str]:
    """What the reference needs above it: format strings of `size`."""
    return [_ARRAYS] if any(f.arrays for f in script.fitted.data) else []


def outcomes(script: Script, size: int, per_worker: bool) -> Iterator[Outcome]:
    """Arrays, batch sizes and numbers of steps."""
    for fit in script.fitted.data:
        yield from _arrays(script, fit)
        if per_worker and fit.arrays:
            change = _batch_size(size)
            yield SetArg(fit.fit.call, "batch_size", change, "the global batch", position=POSITIONS["batch_size"])
    for steps in script.steps.of_fits if per_worker else ():
        change = _steps(steps.down)
        yield SetArg(steps.call, steps.keyword, change, "the divided number of steps", position=steps.position)


def _arrays(script: Script, fit: FitData) -> Iterator[Outcome]:
    code = script.index.code
    split = code(fit.split.value) if fit.split is not None else None
    keywords = {"validation_split": split} if split is not None else {}
    for name, _ in fit.arrays:
        change = build.calling("tfdp_even", **keywords)
        yield SetArg(fit.fit.call, name, change, "drop what the workers drop", position=POSITIONS[name])
    if split is not None:
        held_out = build.replacing(held_out_by("tfdp_held_out", (code(value) for _, value in fit.arrays), split))
        message = "hold out what Keras holds out"
        yield SetArg(fit.fit.call, "validation_split", held_out, message, becomes="validation_data")


def _batch_size(size: int) -> build.Change:
    return lambda value: build.times(batch_size_of(value), str(size))


def _steps(down: bool) -> build.Change:
    return build.calling("tfdp_steps", **({"down": "True"} if down else {}))
