"""Ways to break a migrated script, for any script: each of SEMANTICS.md's that its text has a place for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

from tfdp.migrate.verify.diagnosis import Cause

_TAPE, _OPTIMIZER = "DistributedGradientTape", "DistributedOptimizer"


@dataclass(frozen=True)
class Mutant:
    """A broken text; the proof must not pass it, and names the cause. cause: None where the runtime stops
    it, or a file that every rank writes shows it."""

    name: str
    text: str
    cause: Cause | None


def mutants(text: str, wanted: Callable[[str], bool] = lambda name: True) -> Iterator[Mutant]:  # noqa: ARG005
    """All that apply to a migrated script, of those whose names are wanted."""
    module = cst.parse_module(text)
    for name, change, cause in _CHANGES:
        if not wanted(name):
            continue
        found = change(module)
        if found.code != text:
            yield Mutant(name, found.code, cause)
    tapes = len(m.findall(module, _dp(_TAPE)))
    for number in range(tapes if tapes > 1 else 0):
        if wanted(name := f"forget tape {number + 1} of {tapes}"):
            yield Mutant(name, _replaced(module, _TAPE, argument, number).code, Cause.NOT_AVERAGED)
    optimizers = len(m.findall(module, _dp(_OPTIMIZER)))
    for number in range(optimizers if optimizers > 1 else 0):
        if wanted(name := f"forget optimizer {number + 1} of {optimizers}"):
            own_step = m.findall(module, m.FunctionDef(m.Name("train_step")))
            cause = Cause.NOT_AVERAGED if own_step else None
            yield Mutant(name, _replaced(module, _OPTIMIZER, argument, number).code, cause)


# --- how one call changes ---------------------------------------------------------------------------------------------


def _dp(function: str) -> m.Call:
    return m.Call(func=m.Attribute(value=m.Name("dp"), attr=m.Name(function)))


def argument(call: cst.Call) -> cst.BaseExpression:
    """The first argument: what the call is done to."""
    return call.args[0].value


def _wrapped(function: str, **keywords: str) -> Callable[[cst.Call], cst.BaseExpression]:
    """The call as the argument of another one."""
    given = "".join(f", {key}={value}" for key, value in keywords.items())
    outer = cst.ensure_type(cst.parse_expression(f"{function}(None{given})"), cst.Call)
    return lambda call: outer.with_changes(args=[outer.args[0].with_changes(value=call), *outer.args[1:]])


def _shuffled(call: cst.Call) -> cst.BaseExpression:
    source = cst.Call(cst.Attribute(argument(call), cst.Name("shuffle")), [cst.Arg(cst.Integer("1000"))])
    return _without_check(call.with_changes(args=[call.args[0].with_changes(value=source), *call.args[1:]]))


def _array_shards(module: cst.Module) -> list[cst.BaseExpression]:
    """The shards of arrays: a fit has several, its targets' too."""
    fits = m.findall(module, m.Call(func=m.Attribute(attr=m.Name("fit"))))
    sharded = [[a.value for a in cst.ensure_type(f, cst.Call).args if m.matches(a.value, _dp("shard"))] for f in fits]
    return [shards for shards in sharded if len(shards) > 1 for shards in shards]


def shards(change: Callable[[cst.Call], cst.BaseExpression], *, arrays: bool) -> Callable[[cst.Module], cst.Module]:
    """Change the shards of arrays that are fitted, or all others."""

    def changed(module: cst.Module) -> cst.Module:
        found = _array_shards(module)

        class Change(cst.CSTTransformer):
            def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
                wanted = m.matches(original_node, _dp("shard")) and (original_node in found) is arrays
                return change(updated_node) if wanted else updated_node

        return module.visit(Change())

    return changed


def _reordered(call: cst.Call) -> cst.BaseExpression:
    nest = "__import__('tensorflow').nest"  # a script may import Keras alone
    order = "np.random.default_rng(dp.rank()).permutation(len(a))"
    mixed = filled(f"{nest}.map_structure(lambda a: a[{order}], A)", A=argument(call))
    return _without_check(call.with_changes(args=[call.args[0].with_changes(value=mixed), *call.args[1:]]))


def _with_own_callbacks(call: cst.Call) -> cst.BaseExpression:
    """What the callbacks of a fit write and decide, every rank writes and decides for itself."""
    return argument(call) if call.args else call


def _without_check(call: cst.Call) -> cst.Call:
    return cst.ensure_type(_with(call, source_check="False"), cst.Call)


def _with(call: cst.Call, **keywords: str) -> cst.BaseExpression:
    kept = [
        a.with_changes(comma=cst.Comma()) for a in call.args if a.keyword is None or a.keyword.value not in keywords
    ]
    new = [cst.Arg(cst.parse_expression(value), keyword=cst.Name(key)) for key, value in keywords.items()]
    return call.with_changes(args=[*kept, *new])


def _first_rows(call: cst.Call) -> cst.BaseExpression:
    rows = cst.parse_expression("(lambda batch: batch[: len(batch) // dp.size()])(None)")
    return cst.ensure_type(rows, cst.Call).with_changes(args=[cst.Arg(argument(call))])


def _rolled(call: cst.Call) -> cst.BaseExpression:
    rolled = cst.parse_expression("np.roll(None, dp.rank(), axis=0)")
    inner = cst.ensure_type(rolled, cst.Call)
    first = inner.args[0].with_changes(value=argument(call))
    return call.with_changes(args=[cst.Arg(inner.with_changes(args=[first, *inner.args[1:]]))])


def _other_reduction(call: cst.Call) -> cst.BaseExpression:
    sums = any(a.keyword is not None and a.keyword.value == "op" for a in call.args)
    return _with(call, op="dp.Average" if sums else "dp.Sum")


# --- how a module changes ---------------------------------------------------------------------------------------------


class _Replace(cst.CSTTransformer):
    def __init__(self, function: str, change: Callable[[cst.Call], cst.BaseExpression], only: int | None) -> None:
        super().__init__()
        self._matcher, self._change, self._only, self._count = _dp(function), change, only, -1

    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
        if not m.matches(original_node, self._matcher):
            return updated_node
        self._count += 1
        return self._change(updated_node) if self._only in (None, self._count) else updated_node


def _replaced(
    module: cst.Module, function: str, change: Callable[[cst.Call], cst.BaseExpression], only: int | None = None
) -> cst.Module:
    return module.visit(_Replace(function, change, only))


def calls(function: str, change: Callable[[cst.Call], cst.BaseExpression]) -> Callable[[cst.Module], cst.Module]:
    """Change the calls of a function of the runtime."""
    return lambda module: _replaced(module, function, change)


def _own_starts(module: cst.Module) -> cst.Module:
    """Every rank starts from variables of its own."""
    module = _replaced(module, "init", lambda call: _with(call, same_start="False"))
    module = _replaced(module, "fit_callbacks", lambda call: argument(call) if call.args else cst.Name("None"))
    return _replaced(module, "broadcast_state", lambda _: cst.Name("None"))


def gradients(change: Callable[[cst.Call], cst.BaseExpression]) -> Callable[[cst.Module], cst.Module]:
    """Change the calls that ask an averaging tape for gradients."""
    gradient = m.Call(func=m.Attribute(value=_dp(_TAPE), attr=m.Name("gradient")))

    class Change(cst.CSTTransformer):
        def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
            return change(updated_node) if m.matches(original_node, gradient) else updated_node

    return lambda module: module.visit(Change())


def filled(pattern: str, **parts: cst.BaseExpression) -> cst.BaseExpression:
    """An expression with names in it replaced."""

    class Fill(cst.CSTTransformer):
        def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.BaseExpression:  # noqa: N802
            part = parts.get(original_node.value)
            if part is None:
                return updated_node
            return part.with_changes(lpar=[*updated_node.lpar, *part.lpar], rpar=[*part.rpar, *updated_node.rpar])

    return cst.ensure_type(cst.parse_expression(pattern).visit(Fill()), cst.BaseExpression)


def _divided_again(call: cst.Call) -> cst.BaseExpression:
    """The averaged gradients are averaged again."""
    # Also of gradients that are IndexedSlices.
    return filled("tf.nest.map_structure(lambda g: tf.math.scalar_mul(1 / dp.size(), g), CALL)", CALL=call)


def own(call: cst.Call) -> cst.Call:
    """The same gradients, of this rank only."""
    method = cst.ensure_type(call.func, cst.Attribute)
    return call.with_changes(func=method.with_changes(value=argument(cst.ensure_type(method.value, cst.Call))))


def dense(change: Callable[[cst.Module], cst.Module]) -> Callable[[cst.Module], cst.Module]:
    """Only where no gradient is IndexedSlices, which `dp.allreduce` does not take."""
    embedding = m.Call(func=m.Attribute(attr=m.Name("Embedding")))
    return lambda module: module if m.findall(module, embedding) else change(module)


def _clipped_first(call: cst.Call) -> cst.BaseExpression:
    """Each rank clips its own gradients; what is averaged are those."""
    clipped = "tf.nest.map_structure(lambda g: dp.allreduce(tf.clip_by_norm(g, 1e-3)), CALL)"
    return filled(clipped, CALL=own(call))


def divided_by_all(module: cst.Module) -> cst.Module:
    """Losses are divided by a batch that is not the rank's own, but that of all."""
    asked = m.findall(module, m.Call(func=m.Attribute(value=_dp(_TAPE), attr=m.Name("gradient"))))
    names = {a.value for call in asked if isinstance(a := argument(cst.ensure_type(call, cst.Call)), cst.Name)}
    tape = m.With(items=[m.OneOf(m.WithItem(item=m.Call(func=m.Attribute(attr=m.Name("GradientTape")))))])

    class Divide(cst.CSTTransformer):
        def leave_With(self, original_node: cst.With, updated_node: cst.With) -> cst.With:  # noqa: N802
            if not m.matches(original_node, tape):
                return updated_node
            return cst.ensure_type(updated_node.visit(DivideLoss()), cst.With)

    class DivideLoss(cst.CSTTransformer):
        def leave_Assign(self, original_node: cst.Assign, updated_node: cst.Assign) -> cst.Assign:  # noqa: N802
            target = original_node.targets[0].target
            if not (isinstance(target, cst.Name) and target.value in names):
                return updated_node
            return updated_node.with_changes(value=filled("(LOSS) / dp.size()", LOSS=updated_node.value))

    # A loss that is added up would have to be divided as a whole.
    return module if m.findall(module, m.AugAssign(target=m.OneOf(*map(m.Name, names)))) else module.visit(Divide())


def _own_totals(module: cst.Module) -> cst.Module:
    """Without the sums and means over the ranks of which a loss is made."""
    for function in ("allreduce", "global_mean", "global_sum"):
        module = calls(function, argument)(module)
    return module


_CHANGES: tuple[tuple[str, Callable[[cst.Module], cst.Module], Cause], ...] = (
    ("drop the shard", calls("shard", argument), Cause.NOT_SHARDED),
    (
        "shard twice",
        calls("shard", lambda call: _wrapped("dp.shard", source_check="False")(_without_check(call))),
        Cause.SHARDED_TWICE,
    ),
    ("shard after an unseeded shuffle", shards(_shuffled, arrays=False), Cause.ORDERS),
    ("arrays in an order of each rank", shards(_reordered, arrays=True), Cause.EXAMPLES),
    ("drop the broadcast", _own_starts, Cause.START),
    ("sum for mean, or mean for sum", calls(_TAPE, _other_reduction), Cause.SUMMED),
    ("tapes not wrapped", calls(_TAPE, argument), Cause.NOT_AVERAGED),
    ("wrap the tape twice", calls(_TAPE, _wrapped(f"dp.{_TAPE}")), Cause.AVERAGED_TWICE),
    ("average divided again", gradients(_divided_again), Cause.DIVIDED),
    ("clipped before the average", dense(gradients(_clipped_first)), Cause.LATE),
    ("loss divided by the batch of all", divided_by_all, Cause.LOSS_SUM),
    ("totals of each worker", _own_totals, Cause.LOSS_SUM),
    ("skip the learning-rate scale", calls("scale_lr", argument), Cause.RATE),
    ("scale twice", calls("scale_lr", _wrapped("dp.scale_lr")), Cause.RATE),
    ("batch not divided", calls("local_batch_size", argument), Cause.BATCH),
    ("rows of a batch sharded twice", calls("local_rows", _wrapped("dp.local_rows")), Cause.SHARDED_TWICE),
    ("the same rows for all", calls("local_rows", _first_rows), Cause.NOT_SHARDED),
    ("rows of batches that differ by rank", calls("local_rows", _rolled), Cause.ORDERS),
    ("batches not sharded", calls("shard_batches", argument), Cause.NOT_SHARDED),
    ("optimizers not averaged", calls(_OPTIMIZER, argument), None),
    ("sum for mean in optimizers", calls(_OPTIMIZER, _other_reduction), Cause.SUMMED),
    ("skip the scale of optimizers", calls("scale_optimizer", argument), Cause.RATE),
    ("scale optimizers twice", calls("scale_optimizer", _wrapped("dp.scale_optimizer")), Cause.RATE),
    ("callbacks of rank 0 on all", calls("fit_callbacks", _with_own_callbacks), None),
    ("batch of one worker sharded", calls("global_batch_size", argument), Cause.EXAMPLES),
)
