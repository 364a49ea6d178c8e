"""The learning rates of the reference script: η·N, over schedules that end where the one-process script's do."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ....rules._base import Edit, Outcome, Policy, SetArg
from ... import build
from ...facts.rates import Rate
from ...facts.script import Script

_SCALED_SCHEDULE = '''\
class TfdpScaled(tfdp_tf.keras.optimizers.schedules.LearningRateSchedule):
    """A schedule whose values are multiplied by FACTOR."""

    def __init__(self, schedule):
        self.schedule = schedule

    def __call__(self, step):
        return self.schedule(step) * FACTOR

    def get_config(self):
        return {{"schedule": self.schedule}}
'''
_WARM_SCHEDULE = '''\
class TfdpScaled(tfdp_tf.keras.optimizers.schedules.LearningRateSchedule):
    """A rate, or a schedule, times a factor that rises from 1 to FACTOR over WARMUP steps."""

    def __init__(self, schedule):
        self.schedule = schedule

    def __call__(self, step):
        rate = self.schedule(step) if callable(self.schedule) else self.schedule
        risen = tfdp_tf.minimum(tfdp_tf.cast(step, "float32") / WARMUP, 1.0)
        return rate * (1.0 + risen * (FACTOR - 1.0))

    def get_config(self):
        return {{"schedule": self.schedule}}
'''
_SCALED_OPTIMIZER = '''\
def tfdp_scaled(optimizer):
    """The optimizer, or the one of that name, with its learning rate scaled."""
    if isinstance(optimizer, (str, dict)):
        optimizer = tfdp_tf.keras.optimizers.get(optimizer)
    config = optimizer.get_config()
    rate = float(config["learning_rate"])
    return type(optimizer).from_config({{**config, "learning_rate": RATE}})
'''


def helpers(script: Script, policy: Policy, size: int) -> list[str]:
    """What the reference needs above it: format strings of `size`."""
    factor, warm = _factor(policy, size), bool(policy.warmup_steps)
    rates = script.rates if policy.lr_scale != "none" else ()
    parts = [_WARM_SCHEDULE] if warm else [_SCALED_SCHEDULE] if any(r.schedules for r in rates) else []
    parts += [_SCALED_OPTIMIZER] if any(r.hidden for r in rates) else []
    rate = "TfdpScaled(rate)" if warm else f"rate * {factor}"
    named = {"FACTOR": factor, "WARMUP": str(policy.warmup_steps), "RATE": rate}
    for name, value in named.items():
        parts = [part.replace(name, value) for part in parts]
    return parts


def outcomes(script: Script, size: int, policy: Policy) -> Iterator[Outcome]:
    """The same rates and schedules as in the migrated script, by plain means."""
    if policy.lr_scale != "none":
        yield from _rates(script, _factor(policy, size), bool(policy.warmup_steps))


def _rates(script: Script, factor: str, warm: bool) -> Iterator[Outcome]:
    for rate in script.rates:
        if rate.omitted:
            yield SetArg(rate.call, rate.keyword, _named(rate), "the scaled learning rate", rate.position)
        elif rate.hidden:
            yield Edit(rate.place, build.calling("tfdp_scaled"), "the scaled learning rate")
        elif rate.factor is not None:
            yield Edit(rate.factor, build.multiplying(factor), "the scaled learning rate")
        else:
            change = _scaled(rate, factor, warm or bool(rate.schedules))
            yield SetArg(rate.call, rate.keyword, change, "the scaled learning rate", rate.position)


def _named(rate: Rate) -> build.Change:
    """The optimizer that Keras takes where none is given."""
    return lambda _: build.call("tfdp_scaled", cst.parse_expression(rate.default))


def _factor(policy: Policy, size: int) -> str:
    return {"linear": str(size), "sqrt": f"{size} ** 0.5", "none": "1"}[policy.lr_scale]


def _scaled(rate: Rate, factor: str, scheduled: bool) -> build.Change:
    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        value = value or cst.parse_expression(rate.default)
        return build.call("TfdpScaled", value) if scheduled else build.times(value, factor)

    return change
