"""What is wrong with a script of sharded calls, whose workers all compute what one process does."""

from __future__ import annotations

import numpy as np

from .causes import Cause, Diagnosis, places, ranks
from .patterns import Scene, StepGradient


def other_start(seen: Scene) -> Diagnosis | None:
    """Variables start from other values than those of one process with the same entropy."""
    if seen.failure is None or seen.failure.kind != "start" or seen.expected is None:
        return None
    expected = seen.expected.before
    keys = [key for key in (*seen.lock.trained, *seen.lock.slots) if key in expected]
    apart = [
        rank
        for rank, step in enumerate(seen.steps)
        if step and not all(np.array_equal(step.before[key], expected[key]) for key in keys if key in step.before)
    ]
    text = f"{ranks(apart)} start{'s' if len(apart) == 1 else ''} from other values than one process does"
    return Diagnosis(Cause.START, f"{text}: something is drawn before dp.init, by the rank, or in another order")


def apart(seen: Scene) -> Diagnosis | None:
    """The workers do not compute the same loss."""
    odd = [taken for taken in seen.taken if not taken.same_losses]
    if not odd:
        return None
    text = (
        f"the workers compute different losses at {_sites(odd)}: each holds the whole batch and draws alike, unless "
        "something gives a worker values of its own, such as a seed, a batch or a file by rank, or a clock"
    )
    return Diagnosis(Cause.ORDERS, text)


def divided_wrongly(seen: Scene) -> Diagnosis | None:
    """All workers agree on a loss or a gradient that is not that of one process."""
    wrong = [taken for taken in seen.taken if taken.combined and taken.same_gradients and seen.wrong(taken)]
    if not wrong:
        return None
    text = (
        f"all workers compute the same at {_sites(wrong)}, and it is not what one process does: their numbers depend "
        "on the number of workers, or a divided call is not what it is for the whole batch"
    )
    return Diagnosis(Cause.DIVISION, text)


def _sites(taken: list[StepGradient]) -> str:
    return places([each.calls[0].site for each in taken])
