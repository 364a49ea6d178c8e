"""Make draws inside the model differ by rank.

What it does
    `tf.random.set_seed(s)` becomes `tf.random.set_seed(dp.rank_seed(s))`; `keras.utils.set_random_seed(s)` becomes
    `dp.set_random_seed(s)`, which seeds Python and NumPy alike on all workers and TensorFlow by rank. Where TensorFlow
    shuffles what `fit` is given, the seed stays common until training, and `dp.seed_by_rank()` goes before that.
    Rank 0, and a run with one worker, keep the seed as it is.

Why
    Draws inside the model must differ by worker, and draws that make the data must not. With one seed every worker
    drops the same units and draws the same noise; with several, their shares are shares of different data. NumPy's
    generators decide about data, and are common.

Example
    tf.random.set_seed(42)
    # becomes
    tf.random.set_seed(dp.rank_seed(42))

When it refuses
    Never by itself.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..migrate import build
from ..migrate.catalogue import Kind
from ._base import INPUT_ONLY, Context, Edit, Insert, Outcome, SetArg

ROADS = INPUT_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    if context.script.common_until_training:
        yield from _common_until_training(context)
        return

    def by_rank(value: cst.BaseExpression | None) -> cst.BaseExpression:
        assert value is not None
        return build.call(f"{context.dp}.rank_seed", value)

    for call, kind in context.script.seeds:
        if kind is Kind.SEED:
            yield SetArg(call, "seed", by_rank, "seed draws inside the model by rank", position=0)
        else:
            replaced = cst.parse_expression(f"{context.dp}.set_random_seed")
            yield Edit(call.func, lambda _, new=replaced: new, "seed draws inside the model by rank")  # type: ignore[misc]


def _common_until_training(context: Context) -> Iterator[Outcome]:
    script, dp = context.script, context.dp
    if script.calls("seed_by_rank"):
        return
    for before in script.starts:
        code = f"{dp}.seed_by_rank()  # tfdp: draws inside the model differ by worker"
        yield Insert(before, "before", code, "seed draws inside the model by rank")
