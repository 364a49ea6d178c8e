"""Divide step counts by the number of workers.

What it does
    With the `per-worker` batch mode, `dataset.batch(…).take(k)` becomes `.take(dp.local_steps(k))`, and so do the
    numbers in `range(k)`, `while step < k` and `if step >= k: break` of loops that take one batch at a time (of a
    dataset, or drawn at random out of arrays), `steps_per_epoch` of `fit`, and the step-counting arguments of
    learning-rate schedules (`decay_steps` and the like: not rounded, but for `boundaries`). A schedule of the
    script's own class becomes `dp.local_schedule(…)`, which calls it with N times the step. A number in proportion
    to the length of the sharded dataset (`len(dataset) * 10`) is divided already: it stays, and is multiplied for
    an own schedule. What a loop over a dataset adds up and the script divides by a number of steps (`total /
    steps`) is divided by `dp.local_steps(steps)`. With `--batch global` all stay.

Why
    One step of N workers covers N batches: the same number of steps would train N times as long, and a schedule
    would decay N times too late.

Example
    for x, y in dataset.batch(32).take(1000):
        train_step(x, y)
    # becomes
    for x, y in dataset.batch(32).take(dp.local_steps(1000)):
        train_step(x, y)

When it refuses
    Where a training loop ends by a `break`, `return` or `while` whose condition is no counter of its steps, and where
    a step count is computed from anything but numbers, constants, arguments and lengths of arrays: it may shrink with
    a worker's shard already.
    Where an own schedule changes something each time it is called. Where a loss or a gradient depends on the number of
    the step (a weight that grows, a factor that falls), which with fewer steps would change more slowly; and where
    weights are set, or a callback ends training, after a number of steps (`if step % 10 == 0: target.set_weights(…)`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from ..migrate import build
from ..migrate.facts.counting import WHOLE, StepBound, divided
from ._base import EVERY_ROAD, Context, Edit, Outcome, SetArg

ROADS = EVERY_ROAD


def outcomes(context: Context) -> Iterator[Outcome]:
    if not context.widens:
        return

    switches = context.script.switches(context.batch, context.road)
    for call in context.script.steps.takes:
        change = _divided(context.dp, switches.keywords(call))
        yield SetArg(call, "count", change, "divide the number of steps by the workers", position=0)
    for steps in context.script.steps.of_fits:
        change = _divided(context.dp, {"down": "True"} if steps.down else {})
        yield SetArg(
            steps.call, steps.keyword, change, "divide the number of steps by the workers", position=steps.position
        )
    for bound in context.script.steps.bounds:
        yield Edit(bound.node, _bound(context.dp, bound), "divide the number of steps by the workers")
    for steps in context.script.steps.of_schedules:
        change = _divided(context.dp, {} if steps.keyword in WHOLE else {"whole": "False"})
        yield SetArg(
            steps.call, steps.keyword, change, "divide the schedule's steps by the workers", position=steps.position
        )
    for divisor in context.script.steps.of_means:
        yield Edit(divisor, _divided(context.dp, {}), "take the mean over the steps of one worker")
    for node in context.script.array_batches.steps:
        yield Edit(node, _divided(context.dp, {}), "divide the number of steps by the workers")
    yield from _of_rates(context)


def _of_rates(context: Context) -> Iterator[Outcome]:
    def whole(value: cst.BaseExpression | None) -> cst.BaseExpression:
        assert value is not None
        return build.times(value, f"{context.dp}.size()")

    def local(schedule: cst.BaseExpression) -> cst.BaseExpression:
        return build.call(f"{context.dp}.local_schedule", schedule)

    for own in context.script.steps.own_schedules:
        yield Edit(own.call, local, "let the schedule see the steps of one process")
        for share in own.shares:
            yield Edit(share, whole, "give the schedule its steps in those of one process")
    for decay in context.script.steps.decays:
        yield SetArg(decay.call, decay.keyword, whole, "let the rate fall as far in fewer steps")


def _bound(dp: str, bound: StepBound) -> Callable[[cst.BaseExpression], cst.BaseExpression]:
    change = _divided(dp, {"down": "True"} if bound.down else {})
    return lambda node: divided(node, bound.more, change)


def _divided(dp: str, keywords: dict[str, str]) -> Callable[[cst.BaseExpression | None], cst.BaseExpression]:
    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        assert value is not None
        return build.call(f"{dp}.local_steps", value, **keywords)

    return change
