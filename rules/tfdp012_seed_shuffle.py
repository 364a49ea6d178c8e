"""Give draws that decide about data one seed on all workers.

What it does
    Where a stage whose output count depends on content follows a shuffle, sharding has to come after the shuffle.
    That shuffle gets `seed=dp.shuffle_seed()`, and `dp.shard` gets `order_check=True`, which compares the order with
    rank 0's; so do shuffles of data that come in batches. Shuffles of batches after sharding get the seed alone, unless
    all batches are certainly of one size (`drop_remainder=True`). A generator of the script's own without a seed,
    `np.random.default_rng()`, gets that seed too, and so does `np.random.seed()`, which would undo that `dp.init()`
    seeds NumPy's and Python's global generators alike. A seed that may be None is taken where it is a number:
    `np.random.default_rng(dp.shuffle_seed(args.seed))`.

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

from collections.abc import Callable, Iterator

import libcst as cst

from ..migrate import build
from ..migrate.facts.data import seed_place
from ..migrate.facts.program import argument
from ._base import INPUT_ONLY, Context, Edit, Outcome, SetArg

ROADS = INPUT_ONLY

_ORDER = "shuffle in one order on all workers"
_ALIKE = "draw alike on all workers"


def _of_files(context: Context, call: cst.Call) -> Iterator[Outcome]:
    """`tfds.load(…, shuffle_files=True)` takes the seed of its files in a configuration."""
    if argument(call, "read_config", 9) is None and isinstance(call.func, cst.Attribute):
        module = cst.Module([]).code_for_node(call.func.value)
        seeded = f"{module}.ReadConfig(shuffle_seed={context.dp}.shuffle_seed())"
        yield SetArg(call, "read_config", lambda _: cst.parse_expression(seeded), "read files in one order")


def _common(dp: str) -> Callable[[cst.BaseExpression], cst.BaseExpression]:
    """The job's seed where there is none."""

    def change(value: cst.BaseExpression) -> cst.BaseExpression:
        if isinstance(value, cst.Name) and value.value == "None":
            return cst.parse_expression(f"{dp}.shuffle_seed()")
        return build.call(f"{dp}.shuffle_seed", value)

    return change


def outcomes(context: Context) -> Iterator[Outcome]:
    script, unseeded = context.script, cst.parse_expression(f"{context.dp}.shuffle_seed()")
    for call in dict.fromkeys(c for point in script.shard_points for c in point.shuffles):
        if not isinstance(call.func, cst.Attribute):
            continue  # compared by the order check
        if script.names.api(call.func) == "tensorflow_datasets.load":
            yield from _of_files(context, call)
            continue
        place = seed_place(call)
        if place is not None and argument(call, *place) is None:
            yield SetArg(call, place[0], lambda _: unseeded, _ORDER, position=place[1])
    for call, seed in script.order_seeds:
        if script.seeding(call, seed) is not None:
            yield Edit(seed, _common(context.dp), _ORDER)
    for seeding in script.seedings:
        if seeding.seed is not None:
            yield Edit(seeding.seed, _common(context.dp), _ALIKE)
        else:
            first = cst.Arg(unseeded)
            yield Edit(seeding.call, lambda n, first=first: n.with_changes(args=[first, *n.args]), _ALIKE)  # type: ignore[misc]
