"""What a loss is over the batch: averaging gradients is exact only for a mean (SEMANTICS.md 5)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from dataclasses import replace

import libcst as cst

from ...catalogue import STAGES, VARIABLE_COLLECTIONS, Kind
from ..apis import NEW_AXIS, NOT_BATCHES, NOT_WEIGHTS, SAME_ELEMENTS
from ..batches import BatchSizes
from ..program import ITER, Answers, Origin, Origins, Unknown, additions, holds_weights, method, number, reaching
from . import batch_values as batch
from .batch_values import Reduction, Value
from .calls import LossCalls
from .causes import cause
from .shapes import axis_of, dimension, shaped
from .tensor_calls import Evaluate, binary
from .totals import Totals

__all__ = ["Losses", "Reduction"]

_OPAQUE = Value(Reduction.PER_EXAMPLE, opaque=True)
_DATA = Value(Reduction.PER_EXAMPLE, opaque=True, given=True)


class Losses(Answers[Origin, Value]):
    """Classifies loss expressions.

    `sizes` knows what stands for the size of the batch: without it every number is only a number. `rows` are
    expressions that are known to be batches. `compiled` gives the loss that Keras computes for a model.
    """

    nothing = batch.NOTHING
    unknown = batch.UNKNOWN
    settles = True
    most = 20_000
    depth = 80

    def __init__(
        self,
        origins: Origins,
        sizes: BatchSizes | None = None,
        rows: Collection[cst.CSTNode] = frozenset(),
        compiled: Evaluate = lambda _: batch.UNKNOWN,
    ) -> None:
        super().__init__()
        self._origins, self._rows = origins, rows
        self._sizes = sizes if sizes is not None else BatchSizes(origins, ())
        self._calls = LossCalls(origins, self.value, self.part, self.quotient, compiled)
        self.objects = self._calls.objects
        self.cause: Unknown | None = None  # why the value last asked about is not understood
        self._causes: dict[Origin, Unknown] = {}
        self.totals = Totals()
        self.columns: set[cst.CSTNode] = set()  # parameters that are batches, with more axes behind that of the batch
        self.labels: set[cst.CSTNode] = set()  # those of them that are data
        self.settings: set[cst.CSTNode] = set()  # parameters that are what their defaults are
        self.divisors: set[cst.CSTNode] = set()  # written out numbers that divide a sum and are the batch's size
        self.shares: set[cst.BaseExpression] = set()  # sums of data alone by which a sum is divided

    def reduction(self, node: cst.CSTNode) -> Reduction:
        """What the expression is over the batch; of several possible origins, all must agree."""
        return self._of_tape(node).kind

    def of_trained(self, node: cst.CSTNode) -> Reduction:
        """The same of a loss whose gradient is trained by: where it is no mean, its sums are taken over all ranks."""
        return self.settled(lambda: self._of_tape(node)).kind

    def settled(self, evaluate: Callable[[], Value]) -> Value:
        """The value of a whole loss: where it is no mean, with sums over the batch taken over all ranks."""
        others = set(self.divisors), set(self.shares)

        def forget() -> None:
            self.forget()
            self._causes.clear()
            self.divisors, self.shares = set(others[0]), set(others[1])

        return self.totals.settled(evaluate, forget)

    def _of_tape(self, node: cst.CSTNode) -> Value:
        self.cause = None
        found = self.value(node)
        if found.reduction is Reduction.PER_EXAMPLE and (found.opaque or found.guessed or found.averaged):
            self.cause = self._unsure(node, found)
            return batch.UNKNOWN  # it may be a tuple, or a mean already
        if found.reduction is Reduction.PER_EXAMPLE and found.power:  # a tape takes the sum of what it is given
            return batch.total(found, found.power + 1, found.given)
        return batch.as_loss(found)

    def value(self, node: cst.CSTNode) -> Value:
        """How the expression depends on the batch."""
        if node in self._rows:
            return _OPAQUE
        api = self._origins.names.api(node)
        return self.part(node, ()) if api is None else _named(api)

    def part(self, node: cst.CSTNode, path: tuple[int, ...]) -> Value:
        """The same of a part of the expression's value."""
        found = self._origins.of(node, path)
        return batch.join(self._at(o) for o in found) if found else batch.UNKNOWN

    def _at(self, origin: Origin) -> Value:
        """The value of one origin; of one that needs itself, the first value that agrees with itself."""
        if origin.node in self._rows:
            return _OPAQUE
        if origin.node in self.columns:
            given = origin.node in self.labels
            return replace(batch.DEEP_ROWS, given=given) if not origin.path else replace(_OPAQUE, given=given)
        if isinstance(origin.node, cst.Param) and origin.node in self.settings and origin.node.default is not None:
            return self.value(origin.node.default)
        begun = origin in self._answers or origin in self._open
        before, self.cause = self.cause, None
        found = self.ask(origin)
        known = found.reduction is not Reduction.UNKNOWN or found.of_all
        if not known and not begun:  # by the first thing in it that is not understood, else by the way it is made
            self._causes[origin] = self.cause or cause(self._origins, origin.node)
        self.cause = before if known else before or self._causes.get(origin)
        return found

    def join(self, values: Iterable[Value]) -> Value:
        """A value that may be any of these."""
        return batch.join(values)

    def answer(self, question: Origin) -> Value:
        """How what one origin gives depends on the batch."""
        self.cause = None
        return self._compute(question.node, question.path)

    def _unsure(self, node: cst.CSTNode, found: Value) -> Unknown:
        """Why it is not known of a value of each example whether that is all that it is."""
        made = next((o.node for o in self._origins.of(node)), node)
        if isinstance(made, cst.Call) and (outside := cause(self._origins, made)) is not None and found.guessed:
            return outside
        return Unknown(made, "may be one value for each example, a mean of them, or several values")

    def _compute(self, node: cst.CSTNode, path: tuple[int, ...]) -> Value:
        if path:
            return self._part(node, path)
        if self._sizes.defines(node):
            return batch.COUNT
        if isinstance(node, cst.Integer | cst.Float | cst.SimpleString):
            return batch.NUMBER
        if (api := self._origins.names.api(node)) is not None:
            return _named(api)
        if isinstance(node, cst.UnaryOperation):
            inner = self.value(node.expression)
            return inner if isinstance(node.operator, cst.Minus | cst.Plus) else batch.elementwise([inner])
        if isinstance(node, cst.BinaryOperation):
            return self._binary(node)
        if isinstance(node, cst.AugAssign):
            operator = type(node.operator).__name__.removesuffix("Assign")
            return binary(operator, self.value(node.target), self.value(node.value))
        if isinstance(node, cst.Comparison):
            return batch.elementwise(self.value(n) for n in (node.left, *(c.comparator for c in node.comparisons)))
        if isinstance(node, cst.Call):
            found = self._calls.of(node)
            return self.totals.value(node, found) if self._calls.is_total(node) else found
        if isinstance(node, cst.Attribute):
            return self._attribute(node)
        if isinstance(node, cst.Subscript):
            return self._subscript(node)
        if isinstance(node, cst.List | cst.Tuple | cst.ListComp | cst.GeneratorExp):
            found = self._calls.together(node)
            return batch.UNKNOWN if found.reduction is Reduction.PER_EXAMPLE else found
        return _OPAQUE if isinstance(node, cst.Param) else batch.UNKNOWN

    def _binary(self, node: cst.BinaryOperation) -> Value:
        repeated = node.left if isinstance(node.operator, cst.Multiply) and isinstance(node.left, cst.List) else None
        if repeated is not None and self.value(node.right) == batch.COUNT:  # one element for each example
            found = batch.elementwise(self.value(e.value) for e in repeated.elements)
            return batch.GIVEN_ROWS if found.reduction is Reduction.CONSTANT else batch.UNKNOWN
        left, right = self.value(node.left), self.value(node.right)
        if isinstance(node.operator, cst.Divide):
            found = self.quotient(left, right, node.right)
            return self.totals.value(node, found) if left.reduction is Reduction.SUM else found
        return binary(type(node.operator).__name__, left, right)

    def quotient(self, left: Value, right: Value, divisor: cst.BaseExpression) -> Value:
        """`left / right`: a sum over the batch becomes a mean where the divisor is the batch's size."""
        counted = right == batch.NUMBER and number(divisor) in self._sizes.literals
        if left.whole and counted:
            return batch.UNKNOWN  # the sum is over all ranks, the number is the local batch's
        if left.reduction is Reduction.SUM and not left.guessed:
            if right.reduction is Reduction.SUM and right.given and not right.guessed:
                self.shares.add(divisor)
                return batch.MEAN
            if counted:
                self.divisors.add(divisor)
                return batch.divided(left, batch.COUNT)
        return batch.divided(left, right)

    # --- parts --------------------------------------------------------------------------------------------------------

    def _part(self, node: cst.CSTNode, path: tuple[int, ...]) -> Value:
        """An element of a tuple, or of what a loop goes over: a dataset's batches, but not a batch's examples."""
        if path.count(ITER) > 1:
            return batch.UNKNOWN
        if isinstance(node, cst.Param):
            return _OPAQUE
        if len(path) == 1 and path[0] >= 0 and (of := shaped(self._origins, node)) is not None:
            return dimension(self.value(of), path[0])
        if path[0] == ITER:
            return self._element(node, path[1:])
        own = self._calls.of_own_object(node, path) if isinstance(node, cst.Call) and ITER not in path else None
        if own is not None:
            return own
        whole = self._at(Origin(node))
        if ITER in path:
            return batch.UNKNOWN if whole.deep else _DATA
        return whole if whole.opaque else batch.UNKNOWN

    def _element(self, node: cst.CSTNode, rest: tuple[int, ...]) -> Value:
        if isinstance(node, cst.List | cst.Tuple):
            members = self._calls.members(node)
            return batch.join(self.part(m, rest) for m in members) if members else batch.UNKNOWN
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            return batch.join(self.part(side, (ITER, *rest)) for side in (node.left, node.right))
        if not isinstance(node, cst.Call | cst.Attribute | cst.Subscript | cst.Name | cst.ImportFrom | cst.Import):
            return batch.UNKNOWN
        if isinstance(node, cst.Call):
            if (inner := self._iterated(node, rest)) is not None:
                return inner
            if self._calls.is_tensor(node):
                return batch.UNKNOWN
            if method(node) in STAGES:
                return _DATA
        whole = self._at(Origin(node))
        if whole.reduction is Reduction.CONSTANT:
            return whole
        return batch.UNKNOWN if whole.deep or batch.flat(whole) else _DATA

    def _iterated(self, call: cst.Call, rest: tuple[int, ...]) -> Value | None:
        """An element of zip(…), enumerate(…), range(…) and the like."""
        api = self._origins.called(call)
        if api == "builtins.range" or (api == "builtins.enumerate" and rest[:1] == (0,)):
            return batch.NUMBER
        if api in {"builtins.zip", "builtins.enumerate"}:
            place = rest[0] if api == "builtins.zip" and rest else 0
            if not rest or place >= len(call.args) or any(a.star for a in call.args):
                return batch.UNKNOWN
            return self.part(call.args[place].value, (ITER, *rest[1:]))
        if (api in SAME_ELEMENTS or self._origins.kind(call.func) is Kind.PROGRESS) and call.args:
            return self.part(call.args[0].value, (ITER, *rest))
        return None

    # --- attributes and subscripts ------------------------------------------------------------------------------------

    def _attribute(self, node: cst.Attribute) -> Value:
        name = node.attr.value
        if name in VARIABLE_COLLECTIONS:
            return batch.CONSTANT
        if name == "losses" and Kind.MODEL in self._origins.kinds(node.value):
            return self.objects.of_a_model
        if name not in NOT_WEIGHTS and holds_weights(self._origins, node.value):
            return batch.CONSTANT
        if all(_reads_arguments(o) for o in self._origins.of(node.value)):
            return batch.NUMBER
        base = self.value(node.value)
        return base if base.opaque and name not in NOT_BATCHES else batch.UNKNOWN

    def _subscript(self, node: cst.Subscript) -> Value:
        named = [o.node for o in self._origins.of(node.value) if isinstance(o.node, cst.Dict) and not o.path]
        if len(named) == 1:
            return self._entry(node, named[0])
        if (of := shaped(self._origins, node.value)) is not None:
            return dimension(self.value(of), axis_of(node))
        base = self.value(node.value)
        if base.reduction in batch.FIXED:
            return base
        if base.reduction is not Reduction.PER_EXAMPLE:
            return batch.UNKNOWN
        indices = [e.slice for e in node.slice]
        first = indices[0]
        if len(indices) == 1 and isinstance(first, cst.Index):
            if isinstance(first.value, cst.SimpleString):
                return base if base.opaque else batch.UNKNOWN
            if isinstance(first.value, cst.Integer):
                component = all(self._is_component_of(o) for o in self._origins.of(node.value))
                return replace(_OPAQUE, given=base.given) if component else batch.UNKNOWN
        ellipsis = isinstance(first, cst.Index) and isinstance(first.value, cst.Ellipsis) and base.deep
        spread = not ellipsis and not self._reduced_again(node)
        return self._within_examples(base, indices[1:], spread) if _is_whole(first) or ellipsis else batch.UNKNOWN

    def _reduced_again(self, node: cst.Subscript) -> bool:
        """`y[:, :, None]` where a loss function is given two such values: it takes the mean over the new axis."""
        parents = self._origins.index.parents
        call = parents.get(parents[node])
        if not isinstance(call, cst.Call) or self._origins.kind(call.func) is not Kind.LOSS_FUNCTION:
            return False
        beside = [a.value for a in call.args]
        alike = [b.slice for b in beside if isinstance(b, cst.Subscript) and len(b.slice) == len(node.slice)]
        plain = all(_is_whole(element.slice) for each in alike for element in each[:-1])
        new = all(self._is_new_axis(each[-1].slice) for each in alike)
        return len(beside) == len(alike) == 2 < len(node.slice) and plain and new

    def _is_new_axis(self, index: cst.BaseSlice) -> bool:
        return isinstance(index, cst.Index) and self._origins.names.api(index.value) in NEW_AXIS

    def _entry(self, node: cst.Subscript, made: cst.Dict) -> Value:
        """An entry of a dict that is written out and not stored into."""
        held = reaching(self._origins.index, node.value) if isinstance(node.value, cst.Name) else []
        values = [e.value for e in made.elements if isinstance(e, cst.DictElement)]
        if len(held) != 1 or len(values) < len(made.elements) or not values:
            return batch.UNKNOWN
        later = additions(self._origins, held)
        return (
            batch.UNKNOWN
            if any(isinstance(a.place, cst.Subscript) for a in later)
            else batch.join(self.value(v) for v in values)
        )

    def _is_component_of(self, origin: Origin) -> bool:
        """Whether `value[0]` is a member of a tuple: of a dataset's element, of gradients for a list."""
        if origin.path == (ITER,):
            return True
        node = origin.node
        function = self._origins.index.parents.get(self._origins.index.parents.get(node, node))
        if isinstance(node, cst.Param) and isinstance(function, cst.FunctionDef):
            return function.name.value == "train_step" and not origin.path  # what Keras' fit gives to it
        if origin.path or not isinstance(node, cst.Call):
            return False
        return self._origins.names.api(node.func) == "builtins.next" or self._calls.gives_list_of_gradients(node)

    def _within_examples(self, base: Value, indices: list[cst.BaseSlice], spread: bool) -> Value:
        """`value[:, …]`: the other indices choose within each example; a new axis may spread it over others."""
        deep = base.deep
        for index in indices:
            if not isinstance(index, cst.Index):
                continue
            if self._is_new_axis(index):
                if base.deep and spread:
                    return batch.UNKNOWN  # spread over other examples
                deep = True
            else:
                if self.value(index.value).reduction is not Reduction.CONSTANT:
                    return batch.UNKNOWN
                deep = False
        return replace(base, deep=deep, opaque=False)


def _named(api: str) -> Value:
    """A name that is imported or built in: a constant of a module."""
    if api.startswith("builtins."):
        return batch.NUMBER if api.partition(".")[2] in {"True", "False", "None"} else batch.UNKNOWN
    return batch.CONSTANT


def _is_whole(index: cst.BaseSlice) -> bool:
    """`:`."""
    return isinstance(index, cst.Slice) and index.lower is index.upper is index.step is None


def _reads_arguments(origin: Origin) -> bool:
    """`parser.parse_args()`."""
    return not origin.path and method(origin.node) == "parse_args"
