"""Give draws that decide about data one seed on all workers.

What it does
    Where a stage whose output count depends on content follows a shuffle, sharding has to come after the shuffle.
    That shuffle gets `seed=dp.shuffle_seed()`, and `dp.shard` gets `order_check=True`, which compares the order with
    rank 0's; so do shuffles of data that come in batches. Shuffles of batches after sharding get the seed alone, unless
    all batches are certainly of one size (`drop_remainder=True`). A generator of the script's own without a seed,
    `np.random.default_rng()`, gets that seed too. (NumPy's and Python's global generators are seeded alike by
    `dp.init()`.)

Why
    Workers that shard different orders see some examples twice and others never. Workers that come to a short last
    batch at different steps give its examples more weight than the others'.

Example
    dataset = dataset.shuffle(1000).filter(keep).batch(32)
    # becomes
    dataset = dp.shard(dataset.shuffle(1000, seed=dp.shuffle_seed()).filter(keep), order_check=True).batch(32)

When it refuses
    Where the script also sets TensorFlow's global seed, which has to differ by worker and changes the shuffle's order.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..migrate.facts.data import unseeded
from ..migrate.facts.program import argument
from ._base import Context, Edit, Outcome, SetArg

_SEED_POSITION = {"shuffle": 1, "list_files": 2, "sample_from_datasets": 2}
_SEED_KEYWORD = {"make_csv_dataset": "shuffle_seed"}


def _of_files(context: Context, call: cst.Call) -> Iterator[Outcome]:
    """`tfds.load(…, shuffle_files=True)` takes the seed of its files in a configuration."""
    if argument(call, "read_config", 9) is None and isinstance(call.func, cst.Attribute):
        module = cst.Module([]).code_for_node(call.func.value)
        seeded = f"{module}.ReadConfig(shuffle_seed={context.dp}.shuffle_seed())"
        yield SetArg(call, "read_config", lambda _: cst.parse_expression(seeded), "read files in one order")


def outcomes(context: Context) -> Iterator[Outcome]:
    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        return value or cst.parse_expression(f"{context.dp}.shuffle_seed()")

    for call in dict.fromkeys(c for point in context.script.shard_points for c in point.shuffles):
        if not isinstance(call.func, cst.Attribute):
            continue  # compared by the order check
        if context.script.names.api(call.func) == "tensorflow_datasets.load":
            yield from _of_files(context, call)
            continue
        position = _SEED_POSITION.get(call.func.attr.value)
        keyword = _SEED_KEYWORD.get(call.func.attr.value)
        if keyword is not None:
            yield SetArg(call, keyword, change, "shuffle in one order on all workers")
        if position is None:
            continue
        if argument(call, "seed", position) is None:
            yield SetArg(call, "seed", change, "shuffle in one order on all workers", position=position)
    for call in unseeded(context.script.origins) if context.script.trained or context.script.fitted.calls else ():
        seed = cst.Arg(cst.parse_expression(f"{context.dp}.shuffle_seed()"))
        yield Edit(call, lambda n, seed=seed: n.with_changes(args=[seed]), "draw alike on all workers")  # type: ignore[misc]
