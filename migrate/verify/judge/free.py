"""The judgement of runs in float64 that nothing holds together: how far every variable is from the reference's."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..record import Array, Trace
from .compare import CANCELLED, Failure, readable

LIMIT = 1e-9


@dataclass(frozen=True)
class Free:
    """largest: relative difference of a variable or slot after all steps, by its norm, over all ranks. failure: the
    first step and variable where it is above `LIMIT`, where it still is above after the last."""

    largest: float
    failure: Failure | None = None


def judge_free(reference: Trace, ranks: Sequence[Trace], steps: int) -> Free:
    """Compare what the trained variables and their slots are after each of `steps` steps, of at least one."""
    first: Failure | None = None
    largest = 0.0
    for index in range(steps):
        differences = _differences(reference, ranks, index)
        (rank, key), largest = max(differences.items(), key=lambda item: item[1], default=((0, ""), 0.0))
        if first is None and not largest <= LIMIT:
            first = _failure(reference, index, rank, key, largest)
    return Free(largest, first if first and not largest <= LIMIT else None)


def narrow(reference: Trace) -> list[str]:
    """The trained variables that are no float64 all the same."""
    header = reference.header()
    keys = [key for key in reference.lock().trained if key.rsplit("|", 2)[1] != "float64"]
    return [readable(key, header.names if header else {}) for key in keys]


def _failure(reference: Trace, index: int, rank: int, key: str, value: float) -> Failure:
    header = reference.header()
    text = f"differs by {value:.2g}, the limit is {LIMIT:.0e}"
    return Failure(index, rank, readable(key, header.names if header else {}), "weights", value, LIMIT, text)


def _differences(reference: Trace, ranks: Sequence[Trace], index: int) -> dict[tuple[int, str], float]:
    """By rank and variable; NaN counts as infinitely far."""
    lock, wanted = reference.lock(), reference.step(index)
    found: dict[tuple[int, str], float] = {}
    for rank, trace in enumerate(ranks):
        step = trace.step(index)
        if step is None or wanted is None:
            continue
        for keys in (lock.trained, lock.slots):
            held = [key for key in keys if key in step.after and key in wanted.after]
            # One whose gradient cancels wholly, as that of a bias before a BatchNormalization, is nothing but rounding.
            sizes = [float(np.linalg.norm(wanted.after[key].astype(np.float64))) for key in held]
            least = CANCELLED * max((size for size in sizes if np.isfinite(size)), default=0.0)
            found.update(((rank, key), _distance(step.after[key], wanted.after[key], least)) for key in held)
    return found


def _distance(value: Array, wanted: Array, least: float) -> float:
    size = max(float(np.linalg.norm(wanted.astype(np.float64))), least, 1e-30)
    distance = np.linalg.norm(value.astype(np.float64) - wanted) / size
    return float(distance) if np.isfinite(distance) else float("inf")
