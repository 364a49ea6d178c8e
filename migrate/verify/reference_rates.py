"""The learning rates of the reference script: η·N, over schedules that end where the one-process script's do."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from tfdp.migrate import build
from tfdp.migrate.facts.rates import Rate
from tfdp.migrate.facts.script import Script
from tfdp.rules._base import Edit, Outcome, SetArg

_SCALED_SCHEDULE = '''\
class TfdpScaled(tfdp_tf.keras.optimizers.schedules.LearningRateSchedule):
    """A schedule whose values are multiplied by {size}."""

    def __init__(self, schedule):
        self.schedule = schedule

    def __call__(self, step):
        return self.schedule(step) * {size}

    def get_config(self):
        return {{"schedule": self.schedule}}
'''
_OWN_SCHEDULE = '''\
class TfdpSteps(tfdp_tf.keras.optimizers.schedules.LearningRateSchedule):
    """A schedule in which one step counts for {size}: it covers their examples."""

    def __init__(self, schedule):
        self.schedule = schedule

    def __call__(self, step):
        return self.schedule(step * {size})

    def get_config(self):
        return {{"schedule": self.schedule}}
'''
_SCALED_OPTIMIZER = '''\
def tfdp_scaled(optimizer):
    """The optimizer with {size} times its learning rate."""
    config = optimizer.get_config()
    return type(optimizer).from_config({{**config, "learning_rate": float(config["learning_rate"]) * {size}}})
'''


def helpers(script: Script) -> list[str]:
    """What the reference needs above it: format strings of `size`."""
    parts = [_SCALED_SCHEDULE] if any(r.schedules for r in script.rates) or script.own_schedules else []
    parts += [_OWN_SCHEDULE] if script.own_schedules else []
    return [*parts, *([_SCALED_OPTIMIZER] if any(r.hidden for r in script.rates) else [])]


def outcomes(script: Script, size: int) -> Iterator[Outcome]:
    """The same rates and schedules as in the migrated script, by plain means."""
    for rate in script.rates:
        if script.reductions.keeps(rate):
            continue  # the loss is a sum, which has grown with the batch
        if rate.hidden:
            yield Edit(rate.call, lambda n: build.call("tfdp_scaled", n), "the scaled learning rate")
        elif rate.factor is not None:
            yield Edit(rate.factor, _times(size), "the scaled learning rate")
        else:
            yield SetArg(rate.call, rate.keyword, _scaled(rate, size), "the scaled learning rate", rate.position)
    for value in script.rate_changes.scale:
        yield Edit(value, lambda v: build.times(v, str(size)), "the scaled learning rate")
    for own in script.own_schedules:
        yield Edit(own.call, lambda n: build.call("TfdpSteps", n), "the steps of the original")
        for share in own.shares:
            yield Edit(share, lambda v: build.times(v, str(size)), "a number of steps of the original")
    for decay in script.decays:
        yield SetArg(decay.call, decay.keyword, _times(size), "the decay of as many steps")


_Change = Callable[[cst.BaseExpression | None], cst.BaseExpression]


def _times(size: int) -> _Change:
    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        assert value is not None
        return build.times(value, str(size))

    return change


def _scaled(rate: Rate, size: int) -> _Change:
    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        value = value or cst.parse_expression(rate.default)
        return build.call("TfdpScaled", value) if rate.schedules else build.times(value, str(size))

    return change
