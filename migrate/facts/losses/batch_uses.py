"""Where a training step uses the size of the batch as a number, and what each use becomes when a batch is shared."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from enum import Enum

import libcst as cst

from ...catalogue import BATCHING, Kind
from ..apis import OF_KIND, SAME_COUNT, SHAPE_ARGUMENTS, SIZE_ARGUMENTS, TAKES_SHAPE
from ..batches import BatchSizes, is_part
from ..data import numpy_draw
from ..program import Origins, Problem, argument, entered, method, nodes, number, quoted, reaching, uses
from .batch_values import Reduction
from .loss import Losses

_DATA_STAGES = BATCHING | {"shuffle", "prefetch", "take", "skip", "repeat"}
_DECIDES = "a condition around the training step depends on the batch size, which the workers share"

_COMPARED = "this is compared with the number of examples at hand, and each worker has only its share of the batch"
_DROP = "leave short batches out by drop_remainder=True, or use --batch per-worker"


class Use(Enum):
    """What a use of the batch size means."""

    LOCAL = "follows the examples that are at hand"
    PASSED = "goes on under another name"
    WHOLE = "counts steps, or is only shown"
    UNKNOWN = "not understood"


class BatchUses:
    """The uses in all that the trained losses are computed from (`sliced`), and the numbers that divide their sums."""

    def __init__(
        self,
        origins: Origins,
        sizes: BatchSizes,
        losses: Losses,
        sliced: frozenset[cst.CSTNode],
        divisors: Collection[cst.CSTNode],
    ) -> None:
        self._origins, self._sizes, self._losses, self._sliced = origins, sizes, losses, sliced
        self._sites: dict[cst.BaseExpression, None] = {}
        self._problems: dict[Problem, None] = {}
        for node in sliced:
            if isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
                self._look_at(node)
            elif isinstance(node, cst.Call):
                self._drawn(node)
        self._decisions()
        self._sites.update((d, None) for d in divisors if isinstance(d, cst.BaseExpression))

    @property
    def sites(self) -> tuple[cst.BaseExpression, ...]:
        """Expressions whose value has to be the size of the batch that a process reads."""
        return tuple(self._sites)

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Uses that may have to follow the batch, or not."""
        return tuple(self._problems)

    def _look_at(self, node: cst.Name | cst.Attribute | cst.Subscript) -> None:
        parent = self._origins.index.parents.get(node)
        inner = isinstance(parent, cst.Attribute | cst.Subscript) and parent.value is node
        if inner or not self._read(node) or not self._sizes.may_stand(node):
            return
        use = self.use(node)
        if use is Use.UNKNOWN:
            self._refuse(node, "cannot tell whether this use of the batch size should become per-worker")
        elif use is Use.LOCAL and self._sizes.stands(node):
            self._sites[node] = None
        elif use is Use.LOCAL:
            self._lift(node)

    def _read(self, node: cst.BaseExpression) -> bool:
        return not isinstance(node, cst.Name) or any(n is node for n in self._origins.index.names.get(node.value, ()))

    def _refuse(self, node: cst.CSTNode, reason: str) -> None:
        next_step = "use the shape of the data here, `tf.shape(x)[0]`, or use --batch per-worker"
        self._problems[Problem("TFDP014", node, reason, next_step)] = None

    def _decisions(self) -> None:
        """Conditions, beside what is sliced, on the batch size: the number of examples at hand is another one."""
        index = self._origins.index
        places = {index.enclosing_function(n) for n in self._sliced if isinstance(n, cst.Call)}
        deciding = [n for n in index.order if isinstance(n, cst.If | cst.While | cst.IfExp)]
        tests = [d.test for d in deciding if index.enclosing_function(d) in places]
        asked = entered(self._origins, tests)  # also by functions: `if enough(batch):`
        for node in dict.fromkeys(n for each in asked for n in nodes(each)):
            if isinstance(node, cst.Comparison):
                self._compared(node)
        for node in (n for test in tests for n in nodes(test)):
            if isinstance(node, cst.Name) and self._read(node):
                parent = index.parents[node]
                read = parent if isinstance(parent, cst.Attribute | cst.Subscript) and parent.value is node else node
                if self._sizes.may_stand(read):
                    self._refuse(read, _DECIDES)

    def _compared(self, comparison: cst.Comparison) -> None:
        """`if len(x) < 32:`: the number of a worker's examples beside any other number but that of other examples."""
        sides = [comparison.left, *(c.comparator for c in comparison.comparisons)]
        others = [side for side in sides if not self._losses.value(side).power or self._counts_parts(side)]
        if 0 < len(others) < len(sides) and not _asks_for_any(comparison):
            self._problems[Problem("TFDP014", others[0], _COMPARED, _DROP)] = None

    def _counts_parts(self, node: cst.BaseExpression) -> bool:
        """`len(data)` of what is unpacked, or asked whether it is a tuple: it says of how many parts a batch is."""
        if self._origins.called(node) != "builtins.len" or not isinstance(node, cst.Call) or not node.args:
            return False
        held = node.args[0].value
        index = self._origins.index
        definitions = reaching(index, held) if isinstance(held, cst.Name) else []
        return any(self._has_parts(use) for definition in definitions for use in uses(index, definition))

    def _has_parts(self, use: cst.Name) -> bool:
        parent = self._origins.index.parents.get(use)
        if isinstance(parent, cst.Assign):
            return any(isinstance(t.target, cst.Tuple | cst.List) for t in parent.targets)
        if isinstance(parent, cst.Arg):
            return bool(parent.star) or self._origins.called(self._origins.index.parents[parent]) in OF_KIND
        return isinstance(parent, cst.StarredElement)

    # --- one use ------------------------------------------------------------------------------------------------------

    def use(self, node: cst.BaseExpression) -> Use:
        """What the surroundings of an expression say of it."""
        parents = self._origins.index.parents
        parent = parents.get(node)
        if isinstance(parent, cst.Arg):
            call = parents[parent]
            return self._of_argument(parent, call) if isinstance(call, cst.Call) else Use.UNKNOWN
        if isinstance(parent, cst.Element):
            return self._of_element(parent)
        if isinstance(parent, cst.BinaryOperation):
            return self._of_operand(node, parent)
        if isinstance(parent, cst.AugAssign) and isinstance(parent.operator, cst.DivideAssign):
            return Use.LOCAL
        if isinstance(parent, cst.FormattedStringExpression):
            return Use.WHOLE
        passed = isinstance(parent, cst.Assign | cst.AnnAssign | cst.Param | cst.Return | cst.NamedExpr)
        return Use.PASSED if passed else Use.UNKNOWN

    def _of_argument(self, arg: cst.Arg, call: cst.Call) -> Use:
        api, keyword = self._origins.called(call), arg.keyword.value if arg.keyword is not None else ""
        if api in SAME_COUNT:
            return self.use(call)
        if self._origins.function(call.func) is not None or self._origins.constructed(call) is not None:
            return Use.PASSED
        staged = not api and method(call) in _DATA_STAGES
        shown = api in {"builtins.print", "builtins.str", "builtins.repr", "builtins.format"}
        if shown or staged or numpy_draw(self._origins, call) is not None:
            return Use.WHOLE  # all workers draw for the whole batch
        shape = self._makes(call) and arg is _shape(call)
        return Use.LOCAL if shape or (api, keyword) in SIZE_ARGUMENTS else Use.UNKNOWN

    def _makes(self, call: cst.Call) -> bool:
        fills = self._origins.called(call) in {"tensorflow.fill", "numpy.zeros", "numpy.ones", "numpy.full"}
        return fills or self._origins.kind(call.func) in {Kind.DRAW, Kind.LITERAL}

    def _of_element(self, element: cst.Element) -> Use:
        """`[batch_size, …]` as a shape: the batch's axis is the first."""
        parents = self._origins.index.parents
        holder = parents.get(element)
        if not isinstance(holder, cst.List | cst.Tuple) or holder.elements[0] is not element:
            return Use.UNKNOWN
        user = parents.get(holder)
        return self._of_named_shape(user) if isinstance(user, cst.Assign | cst.AnnAssign) else self._of_shape(user)

    def _of_named_shape(self, statement: cst.Assign | cst.AnnAssign) -> Use:
        targets = [t.target for t in statement.targets] if isinstance(statement, cst.Assign) else [statement.target]
        if len(targets) != 1 or not isinstance(targets[0], cst.Name):
            return Use.UNKNOWN
        index = self._origins.index
        reads = [n for n in index.names[targets[0].value] if any(d.statement is statement for d in reaching(index, n))]
        return Use.LOCAL if all(self._of_shape(index.parents[n]) is Use.LOCAL for n in reads) else Use.UNKNOWN

    def _of_shape(self, arg: cst.CSTNode | None) -> Use:
        call = self._origins.index.parents.get(arg) if isinstance(arg, cst.Arg) else None
        if not isinstance(arg, cst.Arg) or not isinstance(call, cst.Call):
            return Use.UNKNOWN
        keyword, api = arg.keyword.value if arg.keyword is not None else "", self._origins.called(call)
        if numpy_draw(self._origins, call) is not None or (not api and method(call) == "build"):
            return Use.WHOLE  # a layer takes its weights' shapes from the other axes
        makes = self._makes(call)
        if makes or api in TAKES_SHAPE:
            place = 0 if makes else 1
            local = keyword in SHAPE_ARGUMENTS or call.args[place : place + 1] == (arg,)
        else:
            layer = api.startswith(("keras.layers.", "keras.Input"))
            local = layer and keyword in {"batch_shape", "batch_input_shape"}
        return Use.LOCAL if local else Use.UNKNOWN

    def _of_operand(self, node: cst.BaseExpression, operation: cst.BinaryOperation) -> Use:
        if isinstance(operation.operator, cst.Multiply) and isinstance(operation.left, cst.List):
            return Use.LOCAL
        if operation.right is not node:
            return Use.PASSED if is_part(operation) and self._sizes.stands(self._rounded(operation)) else Use.UNKNOWN
        if isinstance(operation.operator, cst.Modulo) and isinstance(operation.left, cst.BaseString):
            return Use.WHOLE
        if not isinstance(operation.operator, cst.Divide | cst.FloorDivide | cst.Modulo):
            return Use.UNKNOWN
        divided = self._losses.value(operation.left)
        at_hand = divided.reduction is not Reduction.CONSTANT or bool(divided.power)
        if at_hand or number(operation.left) == 1:
            return Use.LOCAL if isinstance(operation.operator, cst.Divide) else Use.UNKNOWN
        return Use.WHOLE  # of a number of examples: how many batches they make

    def _rounded(self, operation: cst.BinaryOperation) -> cst.CSTNode:
        """`int(…)` around an operation."""
        parents = self._origins.index.parents
        call = parents[parents[operation]]
        return call if self._origins.called(call) == "builtins.int" else operation

    # --- sizes that depend on the caller ------------------------------------------------------------------------------

    def _lift(self, node: cst.BaseExpression) -> None:
        """A parameter that is the batch size in the training step's calls only: those pass the local one."""
        for name, function in self._parameters(node):
            index = self._origins.index
            uses = [n for n in index.names[name] if index.enclosing_function(n) is function]
            if not uses or any(self.use(n) not in {Use.LOCAL, Use.WHOLE} for n in uses):
                break
            given = [self._origins.bind(c, function).get(name) for c in self._origins.calls_of(function)]
            if any(g is None or (self._sizes.may_stand(g) and not self._sizes.stands(g)) for g in given):
                break
            self._sites.update(
                {g: None for g in given if g is not None and g in self._sliced and self._sizes.stands(g)}
            )
            return
        self._refuse(node, "this is the batch size in some calls only")

    def _parameters(self, node: cst.BaseExpression) -> Iterator[tuple[str, cst.FunctionDef]]:
        for definition in reaching(self._origins.index, node) if isinstance(node, cst.Name) else ():
            if definition.kind == "param" and isinstance(definition.scope, cst.FunctionDef):
                yield definition.name, definition.scope

    # --- numbers that are written out ---------------------------------------------------------------------------------

    def _drawn(self, call: cst.Call) -> None:
        """`tf.random.normal([32, 100])` beside `.batch(32)`; draws of any other number have to be looked at."""
        if not self._makes(call):
            return
        drawn = self._origins.kind(call.func) is Kind.DRAW
        given = _shape(call)
        shape = self._origins.one(given.value) if given is not None else None
        if shape is None or not isinstance(shape.node, cst.List | cst.Tuple) or not shape.node.elements:
            return
        first = shape.node.elements[0].value
        if self._sizes.may_stand(first):
            return
        if isinstance(first, cst.Integer) and number(first) in self._sizes.literals and len(shape.node.elements) > 1:
            self._sites[first] = None
        elif drawn and number(first) != 1 and not self._losses.value(first).power:
            size = quoted(self._origins.index, first)
            self._refuse(first, f"cannot tell whether {size}, the number of rows drawn here, is the batch size")


def _shape(call: cst.Call) -> cst.Arg | None:
    return argument(call, "shape", 0) or argument(call, "dims", 0)


def _asks_for_any(comparison: cst.Comparison) -> bool:
    """Whether a comparison asks if there are examples at all: where the whole batch has none, no worker has any."""
    if len(comparison.comparisons) != 1:
        return False
    left, (target,) = comparison.left, comparison.comparisons
    if number(target.comparator) == 1:
        return isinstance(target.operator, cst.LessThan | cst.GreaterThanEqual)
    return 0 in {number(left), number(target.comparator)} or isinstance(target.operator, cst.Is | cst.IsNot)
