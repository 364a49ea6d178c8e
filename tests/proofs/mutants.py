"""Ways to break a migrated script, for any script: each of SEMANTICS.md's that its text has a place for."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import libcst as cst
import libcst.matchers as m

_TAPE = "DistributedGradientTape"


@dataclass(frozen=True)
class Mutant:
    """A broken text; the proof must not pass it."""

    name: str
    text: str


def mutants(text: str) -> Iterator[Mutant]:
    """All that apply to a migrated script."""
    module = cst.parse_module(text)
    for name, change in _CHANGES:
        found = change(module)
        if found.code != text:
            yield Mutant(name, found.code)
    tapes = len(m.findall(module, _dp(_TAPE)))
    for number in range(tapes if tapes > 1 else 0):
        yield Mutant(f"forget tape {number + 1} of {tapes}", _replaced(module, _TAPE, _first, number).code)


# --- how one call changes ---------------------------------------------------------------------------------------------


def _dp(function: str) -> m.Call:
    return m.Call(func=m.Attribute(value=m.Name("dp"), attr=m.Name(function)))


def _first(call: cst.Call) -> cst.BaseExpression:
    return call.args[0].value


def _wrapped(function: str, **keywords: str) -> Callable[[cst.Call], cst.BaseExpression]:
    """The call as the argument of another one."""
    given = "".join(f", {key}={value}" for key, value in keywords.items())
    outer = cst.ensure_type(cst.parse_expression(f"{function}(None{given})"), cst.Call)
    return lambda call: outer.with_changes(args=[outer.args[0].with_changes(value=call), *outer.args[1:]])


def _shuffled(call: cst.Call) -> cst.BaseExpression:
    source = cst.Call(cst.Attribute(_first(call), cst.Name("shuffle")), [cst.Arg(cst.Integer("1000"))])
    return _without_check(call.with_changes(args=[call.args[0].with_changes(value=source), *call.args[1:]]))


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
    return cst.ensure_type(rows, cst.Call).with_changes(args=[cst.Arg(_first(call))])


def _rolled(call: cst.Call) -> cst.BaseExpression:
    rolled = cst.parse_expression("np.roll(None, dp.rank(), axis=0)")
    inner = cst.ensure_type(rolled, cst.Call)
    first = inner.args[0].with_changes(value=_first(call))
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


def _calls(function: str, change: Callable[[cst.Call], cst.BaseExpression]) -> Callable[[cst.Module], cst.Module]:
    return lambda module: _replaced(module, function, change)


def _own_starts(module: cst.Module) -> cst.Module:
    """Every rank starts from variables of its own."""
    module = _replaced(module, "init", lambda call: _with(call, same_start="False"))
    return _replaced(module, "broadcast_state", lambda _: cst.Name("None"))


def _divided_again(module: cst.Module) -> cst.Module:
    """The averaged gradients are averaged again."""
    gradient = m.Call(func=m.Attribute(value=_dp(_TAPE), attr=m.Name("gradient")))

    class Divide(cst.CSTTransformer):
        def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
            if not m.matches(original_node, gradient):
                return updated_node
            divide = cst.parse_expression("tf.nest.map_structure(lambda g: g / dp.size())")
            call = cst.ensure_type(divide, cst.Call)
            first = call.args[0].with_changes(comma=cst.Comma())
            return call.with_changes(args=[first, cst.Arg(updated_node)])

    return module.visit(Divide())


_CHANGES: tuple[tuple[str, Callable[[cst.Module], cst.Module]], ...] = (
    ("drop the shard", _calls("shard", _first)),
    ("shard twice", _calls("shard", lambda call: _wrapped("dp.shard", source_check="False")(_without_check(call)))),
    ("deal after an unseeded shuffle", _calls("shard", _shuffled)),
    ("drop the broadcast", _own_starts),
    ("sum for mean, or mean for sum", _calls(_TAPE, _other_reduction)),
    ("tapes not wrapped", _calls(_TAPE, _first)),
    ("wrap the tape twice", _calls(_TAPE, _wrapped(f"dp.{_TAPE}"))),
    ("average divided again", _divided_again),
    ("skip the learning-rate scale", _calls("scale_lr", _first)),
    ("scale twice", _calls("scale_lr", _wrapped("dp.scale_lr"))),
    ("batch not divided", _calls("local_batch_size", _first)),
    ("rows of a batch dealt twice", _calls("local_rows", _wrapped("dp.local_rows"))),
    ("the same rows for all", _calls("local_rows", _first_rows)),
    ("rows of batches that differ by rank", _calls("local_rows", _rolled)),
    ("batch of one worker dealt", _calls("global_batch_size", _first)),
)
