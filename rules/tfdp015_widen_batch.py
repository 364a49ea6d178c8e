"""The batch of all workers, where each step computes the batches of N.

What it does
    With `--batch per-worker` on sharded calls, where every worker runs the whole script: the batch of the training
    data becomes `dp.global_batch_size(…)`, in `.batch(…)`, in `fit` and in slices of arrays. Learning rates are
    scaled (TFDP020) and numbers of steps divided (TFDP011), as on sharded input. With `--batch global` all stay.

Why
    N workers that share the script's own batch have few rows each. N times the batch keeps them as busy as one was, and
    an epoch N times as short.

Example
    dataset = dataset.shuffle(1000).batch(32)
    # becomes
    dataset = dataset.shuffle(1000).batch(dp.global_batch_size(32))

When it refuses
    Where what the batch, the learning rate or the number of steps is does not follow from the file, by the reasons of
    TFDP010, TFDP011 and TFDP020; where a learning rate is read, or changed while the script trains; where a loss is
    not known to be a mean over the batch; and where the size of the batch, a learning rate or the optimizer is used for
    anything else than what is known: a comparison, another setting, a decay written by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..migrate import build
from ..migrate.facts.keras import POSITIONS, batch_size_of
from ._base import CALLS_ONLY, Context, Edit, Outcome, Parameter, Refuse, SetArg

ROADS = CALLS_ONLY

_REASON = "take the batch of all workers"


def outcomes(context: Context) -> Iterator[Outcome]:
    script = context.script
    if context.batch == "global" or script.calls("init"):
        return
    if (unknown := script.unwidened) is not None:
        yield Refuse(unknown.node, unknown.reason, unknown.next_step)
        return
    widened = f"{context.dp}.global_batch_size"
    switches = script.switches(context.batch, context.road)
    for call in script.batches:
        change = build.calling(widened, **switches.keywords(call))
        yield SetArg(call, "batch_size", change, _REASON, position=0)
    for fit in script.fitted.data:
        place = POSITIONS["batch_size"]
        if fit.arrays:
            yield SetArg(fit.fit.call, "batch_size", lambda v: build.call(widened, batch_size_of(v)), _REASON, place)
    arrays = script.array_batches
    for node in dict.fromkeys([*arrays.sizes, *arrays.divisors]):
        yield Edit(node, build.calling(widened), _REASON)
    for function in switches.functions:
        yield Parameter(function, switches.name, "False", "tell training data from others, whose batch stays")
    for call, value in switches.calls.items():
        yield SetArg(call, switches.name, build.replacing(value), "these are training data")
