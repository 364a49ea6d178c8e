"""Scale the learning rate by the number of workers.

What it does
    Wraps the rate where the optimizer is made: `Adam(dp.scale_lr(0.001))`. An omitted rate is written out.
    An optimizer that is made by name, or from a configuration, becomes `dp.scale_optimizer(…)`. For an optimizer
    written by hand the rate is the factor of its update that is an argument of its constructor, for an update written
    out in the step, `w.assign_sub(rate * gradient)`, the factor that is a number. A rate that is assigned during
    training is scaled there; one in proportion to the present rate (`optimizer.learning_rate * 0.5`) is scaled already
    and stays, the floor beside it does not. In the `global` batch mode all rates stay, and so they do where the loss is
    a sum over the batch: the gradients of N workers are N times as large already.

Why
    N workers take steps over N times as many examples; the linear scaling rule (Goyal et al. 2017) keeps the training
    curve.

Example
    optimizer = tf.keras.optimizers.Adam(0.001)
    # becomes
    optimizer = tf.keras.optimizers.Adam(dp.scale_lr(0.001))

When it refuses
    Where the optimizer is made outside the file; where its rate is a function, a variable, an object of the file's own
    or made by code that is not understood; where what is assigned to it during training is not understood, follows the
    step, or may differ by worker (this in both modes); and where the updates of an optimizer written by hand do not all
    have the same rate as a factor, or depend on the step.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from tfdp.migrate import build
from tfdp.migrate.facts.rates import Rate
from tfdp.rules._base import Context, Edit, Outcome, SetArg

_REASON = "scale the learning rate by the workers"


def outcomes(context: Context) -> Iterator[Outcome]:
    if context.batch == "global" or context.script.migrated:
        return
    for value in context.script.rate_changes.scale:
        yield Edit(value, lambda n: build.call(f"{context.dp}.scale_lr", n), "scale the rate that is assigned here")
    for rate in context.script.rates:
        if rate.scaled or context.script.reductions.keeps(rate):
            continue
        if rate.hidden:
            yield Edit(rate.call, _called(f"{context.dp}.scale_optimizer"), _REASON)
        elif rate.factor is not None:
            yield Edit(rate.factor, _called(f"{context.dp}.scale_lr"), _REASON)
        else:
            yield SetArg(rate.call, rate.keyword, _scaled(context.dp, rate), _REASON, rate.position)


def _called(function: str) -> Callable[[cst.BaseExpression], cst.BaseExpression]:
    return lambda value: build.call(function, value)


def _scaled(dp: str, rate: Rate) -> Callable[[cst.BaseExpression | None], cst.BaseExpression]:
    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        return build.call(f"{dp}.scale_lr", value or cst.parse_expression(rate.default))

    return change
