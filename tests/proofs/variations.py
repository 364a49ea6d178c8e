"""Ways to write a script otherwise that change nothing of what it trains: the proof must pass every one."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import libcst as cst
import libcst.matchers as m
from mutants import argument, calls, dense, divided_by_all, filled, gradients, own, shards

Change = Callable[[cst.Module], cst.Module]


def of_originals(text: str, wanted: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Name and text of each that applies to a script before it is migrated, of those whose names are wanted."""
    return _applied(text, _ORIGINALS, wanted)


def of_migrated(text: str, wanted: Callable[[str], bool]) -> Iterator[tuple[str, str]]:
    """Name and text of each that applies to a migrated script."""
    return _applied(text, _MIGRATED, wanted)


def _applied(
    text: str, changes: Sequence[tuple[str, Change]], wanted: Callable[[str], bool]
) -> Iterator[tuple[str, str]]:
    module = cst.parse_module(text)
    for name, change in changes:
        if wanted(name) and (found := change(module).code) != text:
            compile(found, name, "exec")
            yield name, found


# --- names ------------------------------------------------------------------------------------------------------------


class _Rename(cst.CSTTransformer):
    """Names, but not those of attributes and keywords."""

    def __init__(self, names: set[str]) -> None:
        super().__init__()
        self._names = names

    def leave_Attribute(self, original_node: cst.Attribute, updated_node: cst.Attribute) -> cst.Attribute:  # noqa: N802
        return updated_node.with_changes(attr=original_node.attr)

    def leave_Arg(self, original_node: cst.Arg, updated_node: cst.Arg) -> cst.Arg:  # noqa: N802
        return updated_node.with_changes(keyword=original_node.keyword)

    def leave_Name(self, original_node: cst.Name, updated_node: cst.Name) -> cst.Name:  # noqa: ARG002, N802
        return (
            updated_node.with_changes(value=f"{updated_node.value}_too")
            if updated_node.value in self._names
            else updated_node
        )


def _assigned(body: Sequence[cst.CSTNode]) -> set[str]:
    """The names that statements of a block assign, by themselves or in a tuple."""
    found: set[str] = set()
    for each in body:
        for target in m.findall(each, m.AssignTarget()):
            one = cst.ensure_type(target, cst.AssignTarget).target
            parts = [element.value for element in one.elements] if isinstance(one, cst.Tuple) else [one]
            found.update(part.value for part in parts if isinstance(part, cst.Name))
    return found


def _parameters(module: cst.CSTNode) -> set[str]:
    return {param.name.value for param in m.findall(module, m.Param()) if isinstance(param, cst.Param)}


def _rename_globals(module: cst.Module) -> cst.Module:
    simple = [each for each in module.body if isinstance(each, cst.SimpleStatementLine)]
    return module.visit(_Rename(_assigned(simple) - _parameters(module)))


class _RenameLocals(cst.CSTTransformer):
    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:  # noqa: N802
        simple = [
            each
            for each in m.findall(original_node.body, m.Assign())
            if not m.findall(each, m.Attribute(value=m.Name("self")))
        ]
        shared = {name.name.value for name in m.findall(original_node, m.NameItem()) if isinstance(name, cst.NameItem)}
        return updated_node.with_changes(
            body=updated_node.body.visit(_Rename(_assigned(simple) - _parameters(original_node) - shared))
        )


# --- statements -------------------------------------------------------------------------------------------------------


def _reversed_runs(module: cst.Module, matches: Callable[[cst.CSTNode], bool]) -> cst.Module:
    """Neighbours that match, in the other order."""
    body: list[cst.CSTNode] = []
    run: list[cst.CSTNode] = []
    for each in (*module.body, None):
        if each is not None and matches(each):
            run.append(each)
            continue
        body += reversed(run)
        run = []
        body += [] if each is None else [each]
    return module.with_changes(body=body)


def _constants_reversed(module: cst.Module) -> cst.Module:
    number = m.Assign(targets=[m.AssignTarget(m.Name())], value=m.Integer() | m.Float() | m.SimpleString())
    return _reversed_runs(module, lambda node: m.matches(node, m.SimpleStatementLine(body=[number])))


def _functions_reversed(module: cst.Module) -> cst.Module:
    return _reversed_runs(
        module, lambda node: isinstance(node, (cst.FunctionDef, cst.ClassDef)) and not m.findall(node, m.ClassDef())
    )


class _Prints(cst.CSTTransformer):
    """In all functions, and in all loops of the module."""

    def leave_FunctionDef(self, original_node: cst.FunctionDef, updated_node: cst.FunctionDef) -> cst.FunctionDef:  # noqa: N802
        return _with_first(updated_node, f"__import__('tensorflow').print('in', '{original_node.name.value}')")

    def leave_For(self, original_node: cst.For, updated_node: cst.For) -> cst.For:  # noqa: ARG002, N802
        return _with_first(updated_node, "print('once more')")


def _with_first(node: object, line: str) -> object:
    block = node.body
    return node.with_changes(body=block.with_changes(body=[cst.parse_statement(line), *block.body]))


class _AfterState(cst.CSTTransformer):
    def __init__(self, lines: Sequence[str]) -> None:
        super().__init__()
        self._lines = lines

    def leave_SimpleStatementLine(  # noqa: N802
        self, original_node: cst.SimpleStatementLine, updated_node: cst.SimpleStatementLine
    ) -> object:
        if not m.findall(original_node, m.Call(func=m.Attribute(m.Name("dp"), m.Name("broadcast_state")))):
            return updated_node
        return cst.FlattenSentinel([updated_node, *(cst.parse_statement(line) for line in self._lines)])


def _after_state(*lines: str) -> Change:
    return lambda module: module.visit(_AfterState(lines))


# --- expressions ------------------------------------------------------------------------------------------------------


class _MeanAsSum(cst.CSTTransformer):
    def leave_Call(self, original_node: cst.Call, updated_node: cst.Call) -> cst.BaseExpression:  # noqa: N802
        if not m.matches(original_node, m.Call(func=m.Attribute(m.Name("tf"), m.Name("reduce_mean")), args=[m.Arg()])):
            return updated_node
        mean = "tf.reduce_sum(tf.reverse(tf.reshape(t, [-1]), [0])) / tf.cast(tf.size(t), t.dtype)"
        # What is asked for may be a list, which has no dtype.
        return filled(f"(lambda t: {mean})(tf.convert_to_tensor(VALUE))", VALUE=updated_node.args[0].value)


def _written(pattern: str) -> Callable[[cst.Call], cst.BaseExpression]:
    """What the call is done to, written otherwise."""
    return lambda call: cst.ensure_type(filled(f"({pattern})", IT=argument(call)), cst.BaseExpression)


def _of(pattern: str) -> Callable[[cst.Call], cst.BaseExpression]:
    """The call, with what it is done to written otherwise."""
    return lambda call: call.with_changes(
        args=[call.args[0].with_changes(value=filled(pattern, IT=argument(call))), *call.args[1:]]
    )


def _by_slices(call: cst.Call) -> cst.BaseExpression:
    """Each rank makes a dataset of its own rows."""
    made = m.Call(func=m.Attribute(attr=m.Name("from_tensor_slices")), args=[m.Arg()])
    whole = argument(call)
    if not m.matches(whole, made):
        return call
    rows = "lambda a: a[: len(a) // dp.size() * dp.size()][dp.rank() :: dp.size()]"
    arrays = argument(cst.ensure_type(whole, cst.Call))
    return filled(f"tf.data.Dataset.from_tensor_slices(tf.nest.map_structure({rows}, ARRAYS))", ARRAYS=arrays)


def _result(pattern: str) -> Callable[[cst.Call], cst.BaseExpression]:
    return lambda call: filled(pattern, CALL=call)


def _by_hand(pattern: str) -> Callable[[cst.Call], cst.BaseExpression]:
    return lambda call: filled(pattern, CALL=own(call))


def _times_size(call: cst.Call) -> cst.BaseExpression:
    scheduled = m.findall(argument(call), m.Name("schedule"))
    return call if scheduled else _written("(IT) * dp.size()")(call)


def _added_up(module: cst.Module) -> cst.Module:
    """A part of the loss on each rank, and their gradients added up."""
    parts = divided_by_all(module)
    if parts.code == module.code:
        return module
    return gradients(_by_hand("tf.nest.map_structure(lambda g: dp.allreduce(g, op=dp.Sum), CALL)"))(parts)


_ORIGINALS: tuple[tuple[str, Change], ...] = (
    ("other names in the module", _rename_globals),
    ("other names in functions", lambda module: module.visit(_RenameLocals())),
    ("constants in another order", _constants_reversed),
    ("functions in another order", _functions_reversed),
    ("extra prints", lambda module: module.visit(_Prints())),
)
_TAPE = "DistributedGradientTape"
_MIGRATED: tuple[tuple[str, Change], ...] = (
    ("parts of gradients added up by hand", dense(_added_up)),
    ("gradients averaged by hand", dense(gradients(_by_hand("tf.nest.map_structure(dp.allreduce, CALL)")))),
    (
        "gradients divided before they are added",
        calls(_TAPE, _written(f"dp.{_TAPE}(IT, gradient_predivide_factor=4.0)")),
    ),
    ("gradients not compressed", calls(_TAPE, _written(f"dp.{_TAPE}(IT, compression=dp.Compression.none)"))),
    ("gradients twice, halved", dense(gradients(_result("tf.nest.map_structure(lambda g: (g + g) / 2, CALL)")))),
    ("mean as a sum over its size, backwards", lambda module: module.visit(_MeanAsSum())),
    ("rate times the number of ranks", calls("scale_lr", _times_size)),
    ("sharded by TensorFlow", shards(_written("(IT).shard(dp.size(), dp.rank())"), arrays=False)),
    ("sharded from a common order", shards(_of("(IT).shuffle(64, seed=dp.shuffle_seed())"), arrays=False)),
    (
        "sharded from a cache",
        shards(_of("(IT).cache().map(lambda *parts: parts if parts[1:] else parts[0])"), arrays=False),
    ),
    ("sharded by slices", calls("shard", _by_slices)),
    ("shuffled once more after sharding", shards(_result("CALL.shuffle(32)"), arrays=False)),
    ("explicit broadcast left out", calls("broadcast_state", lambda _: cst.Name("None"))),
    ("ranks meet, and talk", _after_state("dp.barrier()", "print(dp.rank(), dp.average_value(1.0))")),
    ("a variable that nothing uses", _after_state("spare = __import__('tensorflow').Variable(1.0, name='spare')")),
    ("broadcast twice", _after_state("dp.broadcast_state()")),
)
