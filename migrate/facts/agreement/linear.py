"""Values that are linear in means over a batch: their average over the workers is the value over all examples."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ..apis import LINEAR, SAME_NUMBER
from ..losses import Losses, Reduction
from ..program import Addition, Definition, Evaluator, Frames, Origins, method, receiver
from ..sameness import Mark, Sameness

_ADDS_UP = frozenset({Reduction.PER_EXAMPLE, Reduction.MEAN, Reduction.SUM, Reduction.CONSTANT})


class Linear(Evaluator[bool]):
    """The domain of sums of batch means, each times a number that is equal on all workers.

    A binding that is asked for again is assumed to be linear: where it is not, the whole answer is no.
    """

    nothing = True
    unknown = False

    def __init__(self, origins: Origins, sameness: Sameness) -> None:
        super().__init__(origins)
        self._sameness, self._losses = sameness, Losses(origins)

    def is_mean(self, node: cst.CSTNode) -> bool:
        """Whether the value comes straight from a loss, a training step: where it is made is no place to average it."""
        return isinstance(node, cst.Call) and self._mean(node, ())

    def adds_up(self, node: cst.BaseExpression) -> bool:
        """Whether a value is one for each example, a mean or sum of such, or equal on all workers."""
        return self._losses.reduction(node) in _ADDS_UP or self.of(node)

    def join(self, values: Iterable[bool]) -> bool:
        """Whether all possible values are linear."""
        return all(values)

    def known(self, node: cst.CSTNode, frames: Frames) -> bool | None:  # noqa: ARG002 - the evaluator's signature
        """What is the same on all workers is linear, and so are losses and what training steps give."""
        if self._same_but_for_chance(node):
            return True
        if not isinstance(node, cst.Call):
            return None
        if self._mean(node, ()):
            return True
        return False if self._origins.function(node.func) in self._index.generators else None

    def _same_but_for_chance(self, node: cst.CSTNode) -> bool:
        return not self._sameness.of(node) & {Mark.LOCAL, Mark.UNKNOWN}

    def compound(self, node: cst.CSTNode, frames: Frames) -> bool:
        """Sums, and products with numbers that are the same; containers and elements of what is linear."""
        if isinstance(node, cst.BinaryOperation):
            return self._operation(node, frames)
        if isinstance(node, cst.UnaryOperation):
            return isinstance(node.operator, cst.Minus) and self.of(node.expression, frames)
        if isinstance(node, cst.List | cst.Tuple):
            return self.all((e.value for e in node.elements), frames)
        if isinstance(node, cst.ListComp | cst.GeneratorExp):
            own = Mark.LOCAL in self._sameness.of(node.for_in.iter)  # rows, of which there are as many as it has
            return (
                node.for_in.ifs == () and self.of(node.elt, frames) and (not own or self.of(node.for_in.iter, frames))
            )
        if isinstance(node, cst.Subscript):
            return self._element(node, frames)
        return False

    def _element(self, node: cst.Subscript, frames: Frames) -> bool:
        """A part of the worker's own numbers; rows that it takes of data are no means of anything."""
        own = Mark.LOCAL in self._sameness.of(node.value)
        return own and self.of(node.value, frames) and not any(self._sameness.of(s) for s in node.slice)

    def _operation(self, node: cst.BinaryOperation, frames: Frames) -> bool:
        left, right = self.of(node.left, frames), self.of(node.right, frames)
        if isinstance(node.operator, cst.Add | cst.Subtract):
            return left and right
        if isinstance(node.operator, cst.Multiply):
            factors = [not self._sameness.of(n) for n in (node.left, node.right)]
            return left and right and any(factors)
        return isinstance(node.operator, cst.Divide) and left and not self._sameness.of(node.right)

    def changed(self, statement: cst.AugAssign, earlier: cst.Name, frames: Frames) -> bool:
        """`total += loss` and `total /= number`."""
        if isinstance(statement.operator, cst.AddAssign | cst.SubtractAssign):
            return self.of(statement.value, frames) and self.of(earlier, frames)
        scales = isinstance(statement.operator, cst.DivideAssign | cst.MultiplyAssign)
        return scales and not self._sameness.of(statement.value) and self.of(earlier, frames)

    def component(self, value: cst.CSTNode, path: tuple[int, ...], frames: Frames) -> bool:
        """Of several values that a training step gives each by itself."""
        if path and not isinstance(value, cst.Tuple | cst.List):
            if self._mean(value, path):
                return True
            if not isinstance(value, cst.Call) or self._origins.function(value.func) is None:
                return False
        return super().component(value, path, frames)

    def iterated(self, iterable: cst.BaseExpression, path: tuple[int, ...], frames: Frames) -> bool:  # noqa: ARG002
        """Elements of a list of the worker's own numbers; batches of data are none."""
        return Mark.LOCAL in self._sameness.of(iterable) and self.of(iterable, frames)

    def parameter(self, definition: Definition, frames: Frames) -> bool | None:
        """Only what this very call is given: a value of several calls is averaged where each gives it."""
        return None if any(f is definition.scope for f, _ in frames) else False

    def stores(self, node: cst.Attribute, stored: object, frames: Frames) -> bool:  # noqa: ARG002
        """What becomes of a number that an object keeps is not followed."""
        return False

    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> bool:  # noqa: ARG002
        """Nor that of other objects."""
        return False

    def reached(self, place: cst.CSTNode, frames: Frames) -> bool:
        """What one worker may have chosen by itself, a flag that an exception sets, has no average."""
        return not any(self._sameness.raising(place, frames))

    def added(self, addition: Addition, frames: Frames) -> bool:
        """What is appended to a list has to be linear, too."""
        appended = method(addition.place) in {"append", "appendleft"}
        return appended and self.all(addition.values, frames)

    def named_call(self, call: cst.Call, api: str, frames: Frames) -> bool:
        """Sums and means; not weighted ones: a product of two values of the batch is not linear."""
        same = bool(call.args) and not any(a.star or self._sameness.of(a.value) for a in call.args[1:])
        return (api in SAME_NUMBER or api in LINEAR) and same and self.of(call.args[0].value, frames)

    def object_call(self, call: cst.Call, frames: Frames) -> bool:
        """`values.mean()`, `loss.numpy()`."""
        linear = method(call) in {"numpy", "item", "mean", "sum", "copy"} and not call.args
        return linear and self.of(receiver(call), frames)

    def _mean(self, value: cst.CSTNode, path: tuple[int, ...]) -> bool:
        """Whether what a training step gives back is a mean over its batch."""
        found = self._origins.of(value, path)
        return bool(found) and all(
            not o.path and self._losses.reduction(self._plain(o.node)) is Reduction.MEAN for o in found
        )

    def _plain(self, node: cst.CSTNode) -> cst.CSTNode:
        """The tensor in `float(loss)` and `loss.numpy()`."""
        if isinstance(node, cst.Call) and self._origins.called(node) == "builtins.float" and node.args:
            return self._plain(node.args[0].value)
        reads = isinstance(node, cst.Call) and method(node) in {"numpy", "item"}
        return self._plain(receiver(node)) if reads and isinstance(node, cst.Call) else node
