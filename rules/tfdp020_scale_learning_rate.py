"""Scale the learning rate by the number of workers.

What it does
    Wraps the rate where the optimizer is made: `Adam(dp.scale_lr(0.001))`. An omitted rate is written out. An
    optimizer that is made by name, or from a configuration, becomes `dp.scale_optimizer(…)`. For an optimizer written
    by hand the rate is the factor of its update that is an argument of its constructor, for an update written out in
    the step, `w.assign_sub(rate * gradient)`, the factor that is a number. A rate that is assigned during training is
    scaled there; one in proportion to the present rate (`optimizer.learning_rate * 0.5`) is scaled already and stays,
    its floor does not. In the `global` batch mode all rates stay. `--lr-scale sqrt` or `none` changes the factor,
    `--warmup-steps K` lets it rise over the first K steps.

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

from ..migrate import build
from ..migrate.catalogue import Kind
from ..migrate.facts.rates import Rate
from ._base import EVERY_ROAD, Context, Edit, Outcome, Refuse, SetArg

ROADS = EVERY_ROAD

_REASON = "scale the learning rate by the workers"


def outcomes(context: Context) -> Iterator[Outcome]:
    if not context.widens:
        return
    if not context.policy.scales_by_workers:
        yield from _unscalable(context)
    if context.policy.lr_scale == "none":
        return
    updates = context.script.fitted.averaging.updates if context.road == "input" else ()
    averaged = {u.given.value for u in updates if u.given.keyword is None}
    for rate in context.script.rates:
        if rate.scaled:
            continue
        if (rate.omitted and context.road == "input") or (rate.hidden and rate.place in averaged):
            continue  # written out, or scaled, where it is averaged (TFDP031)
        if rate.omitted:
            yield SetArg(rate.call, rate.keyword, _by_name(context, rate), _REASON, rate.position)
        elif rate.hidden:
            yield Edit(rate.place, called(context, "scale_optimizer"), _REASON)
        elif rate.factor is not None:
            yield Edit(rate.factor, called(context, "scale_lr"), _REASON)
        else:
            yield SetArg(rate.call, rate.keyword, _scaled(context, rate), _REASON, rate.position)


def _unscalable(context: Context) -> Iterator[Refuse]:
    """What a factor other than the number of workers, or one that rises, cannot be given to."""
    script = context.script
    for rate in script.rates:
        place: cst.CSTNode = rate.place
        own = not rate.hidden and script.origins.kind(rate.call.func) is not Kind.OPTIMIZER
        if context.policy.warmup_steps and own:
            reason = "--warmup-steps makes a schedule of the rate, which an update written by hand does not take"
            yield Refuse(place, reason, "use a Keras optimizer, or leave --warmup-steps out")
    for place in script.rate_changes if context.policy.warmup_steps else ():
        reason = "--warmup-steps makes a schedule of the rate, and Keras assigns nothing to a schedule"
        yield Refuse(place, reason, "leave --warmup-steps out, or raise the rate here")


def called(context: Context, function: str) -> Callable[[cst.BaseExpression], cst.BaseExpression]:
    """Builds a call of one of the runtime's functions that scale, with the options of the command."""
    keywords = {}
    if context.policy.lr_scale != "linear":
        keywords["scale"] = f'"{context.policy.lr_scale}"'
    if context.policy.warmup_steps:
        keywords["warmup_steps"] = str(context.policy.warmup_steps)
    return lambda value: build.call(f"{context.dp}.{function}", value, **keywords)


def _by_name(context: Context, rate: Rate) -> Callable[[cst.BaseExpression | None], cst.BaseExpression]:
    """The optimizer that Keras takes where none is given."""
    scaled = called(context, "scale_optimizer")
    return lambda _: scaled(cst.parse_expression(rate.default))


def _scaled(context: Context, rate: Rate) -> Callable[[cst.BaseExpression | None], cst.BaseExpression]:
    scaled = called(context, "scale_lr")
    return lambda value: scaled(value or cst.parse_expression(rate.default))
