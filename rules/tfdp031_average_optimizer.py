"""Average gradients in the optimizers of Keras' own training.

What it does
    Gives `dp.DistributedOptimizer(…)` to `compile` for every model that `fit` or `train_on_batch` trains: around the
    optimizer where it stands in the call, where it is made if it has a name there. One that is given by name or left
    out is written out. The same for the optimizers of a model's own `train_step`, and for `optimizer.minimize`. The
    optimizer stays itself; it saves and loads as before. Where the loss is a sum over the batch, `op=dp.Sum` adds up
    instead.

Why
    `fit` takes and applies its gradients out of sight. In the optimizer they are averaged before it clips them, and
    before a loss scale looks for infinities.

Example
    model.compile(optimizer="adam", loss="mse")
    # becomes
    model.compile(optimizer=dp.DistributedOptimizer(dp.scale_optimizer("adam")), loss="mse")

When it refuses
    Where a trained model is compiled outside the file or its optimizer is made there; where a model's own `train_step`
    cannot be followed to an optimizer, or is run by a loop of the file too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from ..migrate import build
from ..migrate.facts.keras import Given
from ._base import INPUT_ONLY, Context, Edit, Outcome, SetArg
from .tfdp020_scale_learning_rate import called

ROADS = INPUT_ONLY

_REASON = "average gradients over all workers"


def outcomes(context: Context) -> Iterator[Outcome]:
    script = context.script
    scales = context.batch == "per-worker" and context.policy.lr_scale != "none" and not script.migrated
    scaled = {r.place for r in script.rates if r.hidden} if scales else set()
    for given in dict.fromkeys(u.given for u in script.fitted.averaging.updates):
        if given.done:
            continue
        if given.call is not None and given.keyword is not None:
            change = _averaged(context, given, scales and given.value is None)
            yield SetArg(given.call, given.keyword, change, _REASON, given.position)
        elif given.value is not None:
            yield Edit(given.value, _averaged(context, given, given.value in scaled), _REASON)


def _averaged(context: Context, given: Given, scale: bool) -> Callable[[cst.BaseExpression | None], cst.BaseExpression]:
    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        value = value or cst.parse_expression(given.default)
        value = called(context, "scale_optimizer")(value) if scale else value
        return build.call(f"{context.dp}.DistributedOptimizer", value)

    return change
