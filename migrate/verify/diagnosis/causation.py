"""Why a proof failed: a named cause and one sentence, told from the pattern of the differences.

A cause never decides whether a proof fails, and none is named where the pattern fits none: no diagnosis is better than
a wrong one. Causes are tried in an order: from those that make all other figures meaningless to those that are left.
"""

import os
import re
from collections.abc import Callable, Sequence

import numpy as np

from ..judge import Comparison
from ..record import Data, Trace
from . import calls as diagnosis_calls
from . import data as diagnosis_data
from . import gradient as diagnosis_gradient
from . import update as diagnosis_update
from .causes import Cause, Diagnosis, ranks
from .patterns import Scene, scene


def diagnose(
    found: Comparison,
    reference: Trace,
    traces: Sequence[Trace],
    steps: int,
    *,
    batch: str,
    reason: str = "",
    script: str = "",
    data: Data | None = None,
    calls: bool = False,
) -> Diagnosis | None:
    """The likely cause of what `compare` found, None where nothing is known.

    traces: of the ranks. steps: how many were compared. batch: `per-worker` or `global`. reason: why the migrated run
    failed, with the end of its output; empty where it did not. script: the path under which the migrated text ran; its
    lines are named as such, because the file there may hold another text. data: who read which examples. calls: whether
    calls are sharded.
    """
    seen = scene(found, reference, traces, steps, batch=batch, reason=reason, data=data)
    causes = _OF_AN_END if reason else _OF_CALLS if calls else _IN_ORDER
    known = next((said for said in (cause(seen) for cause in causes) if said), None)
    if known is None or not script:
        return known
    site = re.compile(rf"(?<![\w.-]){re.escape(os.path.basename(script))}:(\d+( \(in [^)]*\))?)")
    return Diagnosis(known.cause, site.sub(r"line \1 of the migrated script", known.text))


def _diverged(seen: Scene) -> Diagnosis | None:
    """The number of gradients before an update is another one."""
    long = [rank for rank, header in enumerate(seen.headers) if header and header.outcome == "diverged"]
    if len(long) == seen.size:
        return Diagnosis(
            Cause.STEPS, "every rank takes more gradients before it updates its variables than the reference"
        )
    # A rank that is ahead ends the others before they have come as far.
    step = seen.counts[long[0]] if long else 0
    if long:
        return _decision(long, f"takes one more gradient in step {step} before its variables change")
    return None


def _stopped(seen: Scene) -> Diagnosis | None:
    """The runtime itself has noticed, and says so in the output."""
    for pattern, cause, text in _STOPS:
        if re.search(pattern, seen.reason):
            # What is sharded twice is another thing on each rank the second time.
            again = diagnosis_data.sharded_twice(seen) if cause is Cause.ORDERS else None
            return again or Diagnosis(cause, text)
    return None


_STOPS = (
    (
        "With sharded calls every worker holds the same batch",
        Cause.ORDERS,
        "the workers hold different batches, draws or losses; the runtime has stopped them",
    ),
    (
        "before the first gradient",
        Cause.START,
        "the ranks start from different variables; the runtime has stopped them",
    ),
    (
        "in the exchange of gradients at",
        Cause.UPDATE,
        "one rank gives a variable another value than the others do; the runtime has stopped them",
    ),
    (
        "is of different batches on the ranks",
        Cause.DECISION,
        "one rank leaves out a batch, or takes one more than the others; the runtime has stopped them",
    ),
    (
        "the records given to dp.shard|of the first .* batches at",
        Cause.ORDERS,
        "the ranks hold different data, in order or values, before they share it out; the runtime has stopped them",
    ),
    (
        "wrap a tape once",
        Cause.AVERAGED_TWICE,
        "a tape is wrapped in dp.DistributedGradientTape twice; the runtime has stopped it",
    ),
    (
        "CollectiveMismatchError|RankFinishedError|StallError|will not come",
        Cause.DECISION,
        "the ranks did not make the same collective calls: one of them took another way through the script, or ended",
    ),
)


def _start(seen: Scene) -> Diagnosis | None:
    if seen.failure is None or seen.failure.kind != "start" or seen.expected is None:
        return None
    expected = seen.expected.before
    keys = [key for key in (*seen.lock.trained, *seen.lock.slots) if key in expected]
    apart = [
        rank
        for rank, step in enumerate(seen.steps)
        if step and not all(np.array_equal(step.before[key], expected[key]) for key in keys if key in step.before)
    ]
    if 0 in apart:
        text = "the migrated script gives its variables other start values than the reference, on rank 0 too"
        return Diagnosis(Cause.START, text)
    text = (
        f"{ranks(apart)} start{'s' if len(apart) == 1 else ''} from other values than rank 0: variables are not "
        "broadcast before the first step, or changed afterwards (dp.broadcast_state)"
    )
    return Diagnosis(Cause.START, text)


def _counts(seen: Scene) -> Diagnosis | None:
    """One rank, or all, took another number of steps, or of gradients in one."""
    failure = seen.failure
    if failure is None or failure.kind not in ("steps", "calls"):
        return None
    if failure.kind == "steps":
        odd = [rank for rank, count in enumerate(seen.counts) if count < failure.limit]
        what = f"takes only {min(seen.counts)} steps"
    else:
        wanted = len(seen.expected.calls) if seen.expected else 0
        closed = [step is not None and step.closed and len(step.calls) == wanted for step in seen.steps]
        odd = [rank for rank, fine in enumerate(closed) if not fine]
        what = f"does not take its gradients and its update as the others in step {failure.step}"
        if not any(closed) and all(step is not None and len(step.calls) == wanted for step in seen.steps):
            text = f"no rank changes its variables with the gradient of step {failure.step}"
            return Diagnosis(Cause.UPDATE, text)
    if 0 < len(odd) < seen.size:
        return _decision(odd, what)
    text = (
        "every rank takes another number of steps, or of gradients in one, than the reference: they are divided wrongly"
    )
    return Diagnosis(Cause.STEPS, text)


def _decision(odd: Sequence[int], what: str) -> Diagnosis:
    text = f"{ranks(odd)} {what}: it decides by values that are not equal on all ranks, or by its rank"
    return Diagnosis(Cause.DECISION, text)


_OF_AN_END: tuple[Callable[[Scene], Diagnosis | None], ...] = (_diverged, _stopped)
_OF_CALLS: tuple[Callable[[Scene], Diagnosis | None], ...] = (
    _diverged,
    diagnosis_calls.other_start,
    _counts,
    diagnosis_calls.apart,
    diagnosis_gradient.not_averaged,
    diagnosis_calls.divided_wrongly,
    diagnosis_update.updated_otherwise,
)
_IN_ORDER: tuple[Callable[[Scene], Diagnosis | None], ...] = (
    _diverged,
    _start,
    _counts,
    diagnosis_gradient.penalty,
    diagnosis_gradient.constant,
    diagnosis_gradient.not_averaged,
    diagnosis_gradient.partly_constant,
    diagnosis_data.read_otherwise,
    diagnosis_update.updated_otherwise,
)
