"""Make draws inside the model differ by rank.

What it does
    `tf.random.set_seed(s)` becomes `tf.random.set_seed(dp.rank_seed(s))`; `keras.utils.set_random_seed(s)` becomes
    `dp.set_random_seed(s)`, which seeds Python and NumPy alike on all workers and TensorFlow by rank. Where TensorFlow
    itself draws the training data, shuffles what `fit` is given in batches, or may shuffle in another file, the seed
    stays common until training (without any, `dp.common_seed()` sets one), and `dp.seed_by_rank()` goes before that.
    Rank 0, and a run with one worker, keep the seed as it is.

    What NumPy draws for the examples of a training step is drawn for those of all workers, and each keeps its rows:
    `dp.local_rows(np.random.normal(size=(dp.global_batch_size(batch_size), 100)))`.

Why
    Draws inside the model must differ by worker, and draws that make the data must not. With one seed every worker
    drops the same units and draws the same noise; with several, their shares are shares of different data. NumPy's
    generators decide about data, and are common.

Example
    tf.random.set_seed(42)
    # becomes
    tf.random.set_seed(dp.rank_seed(42))

When it refuses
    Where NumPy draws what goes into the model, and whether that is one row for each example is not understood.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..migrate import build
from ..migrate.catalogue import Kind
from ._base import INPUT_ONLY, Context, Edit, Insert, Outcome, SetArg

ROADS = INPUT_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    yield from _rows_of_noise(context)
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


def _rows_of_noise(context: Context) -> Iterator[Outcome]:
    rows, size = build.calling(f"{context.dp}.local_rows"), build.calling(f"{context.dp}.global_batch_size")
    for draw in () if context.script.migrated else context.script.noise.draws:
        yield Edit(draw.call, rows, "draw for all workers, and keep one's own rows")
        if draw.at_hand or context.batch == "per-worker":
            yield Edit(draw.size, size, "the examples of all workers")


def _common_until_training(context: Context) -> Iterator[Outcome]:
    script, dp = context.script, context.dp
    if script.calls("seed_by_rank"):
        return
    if not script.seeds:
        start = context.start
        code = f"{dp}.common_seed()  # tfdp: every worker draws the same data"
        yield Insert(start.anchor, "before" if start.first else "after", code, "draw the data alike on all workers")
    for before in script.starts:
        code = f"{dp}.seed_by_rank()  # tfdp: draws inside the model differ by worker"
        yield Insert(before, "before", code, "seed draws inside the model by rank")
