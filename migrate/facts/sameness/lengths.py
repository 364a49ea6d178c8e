"""How many elements there are: as many on every worker, unless values that differ choose them."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import libcst as cst

from ..apis import AS_LONG, AS_SAID, CHOOSES, CHOOSING_METHODS, NEW_KEYS, OUTSIDE
from ..program import Addition, Definition, Evaluator, Frames, Origins
from .marks import SAME, Marks


class Lengths(Evaluator[Marks]):
    """The domain of lengths; what the elements are is asked of `values` alone where they choose how many there are."""

    nothing = SAME
    unknown = SAME

    def __init__(
        self,
        origins: Origins,
        is_data: Callable[[cst.CSTNode], bool],
        value: Callable[[cst.CSTNode, Frames], Marks],
        reached: Callable[[cst.CSTNode, Frames], Marks],
    ) -> None:
        """`is_data`: whether an expression is a dataset, of which each worker has equally many batches. `value` and
        `reached`: the marks of a value, and of whether a place is reached."""
        super().__init__(origins)
        self._is_data, self._value, self._reached = is_data, value, reached

    def join(self, values: Iterable[Marks]) -> Marks:
        """Every reason that one of them has."""
        return SAME.union(*values)

    def known(self, node: cst.CSTNode, frames: Frames) -> Marks | None:  # noqa: ARG002 - the evaluator's signature
        """Datasets have as many elements on each worker."""
        return SAME if self._is_data(node) else None

    def compound(self, node: cst.CSTNode, frames: Frames) -> Marks:
        """What chooses elements decides by its value; other containers are as long as they are written."""
        if isinstance(node, cst.Subscript):
            return self._subscript(node, frames)
        if isinstance(node, cst.SetComp | cst.DictComp) or (isinstance(node, cst.BaseComp) and node.for_in.ifs):
            return self._value(node, frames)
        if isinstance(node, cst.BaseComp):
            return self.of(node.for_in.iter, frames)
        if isinstance(node, cst.IfExp):
            return self._value(node.test, frames) | self.all((node.body, node.orelse), frames)
        return self.all((node.left, node.right), frames) if isinstance(node, cst.BinaryOperation) else SAME

    def _subscript(self, node: cst.Subscript, frames: Frames) -> Marks:
        found = self.of(node.value, frames)
        for element in node.slice:
            if isinstance(element.slice, cst.Slice):
                bounds = (element.slice.lower, element.slice.upper, element.slice.step)
                found = found.union(*(self._value(bound, frames) for bound in bounds if bound is not None))
            elif isinstance(element.slice, cst.Index) and self._is_mask(element.slice.value):
                found |= self._value(element.slice.value, frames)
        return found

    def _is_mask(self, node: cst.CSTNode) -> bool:
        """Whether this chooses rows: a comparison, or indices that a comparison gives."""
        made = [o.node for o in self._origins.of(node)]
        calls = {self._origins.names.api(m.func) for m in (*made, node) if isinstance(m, cst.Call)}
        return any(isinstance(m, cst.Comparison) for m in (*made, node)) or bool(calls & CHOOSES)

    def named_call(self, call: cst.Call, api: str, frames: Frames) -> Marks:
        """What chooses by values, or asks outside the program, decides by its value; what only wraps, by what it is
        given."""
        if api in CHOOSES or OUTSIDE.match(api):
            return self._value(call, frames)
        if AS_SAID.match(api):
            return SAME.union(*(self._value(a.value, frames) for a in call.args))
        return self.all((a.value for a in call.args), frames) if api in AS_LONG else SAME

    def object_call(self, call: cst.Call, frames: Frames) -> Marks:
        """A method gives as many as its object has."""
        if not isinstance(call.func, cst.Attribute):
            return SAME
        receiver = call.func.value
        return self._value(receiver, frames) if call.func.attr.value in CHOOSING_METHODS else self.of(receiver, frames)

    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> Marks:
        """As many as the object has."""
        return self.of(node.value, frames)

    def iterated(self, iterable: cst.BaseExpression, path: tuple[int, ...], frames: Frames) -> Marks:  # noqa: ARG002
        """Elements are of one shape."""
        return SAME

    def component(self, value: cst.CSTNode, path: tuple[int, ...], frames: Frames) -> Marks:
        """What is unpacked is of one shape, too."""
        return SAME if path else self.of(value, frames)

    def parameter(self, definition: Definition, frames: Frames) -> Marks | None:
        """What something outside the file gives is of one shape."""
        function = definition.scope
        entered = any(f is function for f, _ in frames)
        called = isinstance(function, cst.FunctionDef) and (entered or self._origins.calls_of(function))
        return None if called else SAME

    def reached(self, place: cst.CSTNode, frames: Frames) -> Marks:
        """A place counts as often as it is reached."""
        return self._reached(place, frames)

    def added(self, addition: Addition, frames: Frames) -> Marks:
        """One element more where it is reached, or as many as a container has."""
        found = self.reached(addition.place, frames)
        place = addition.place
        if isinstance(place, cst.Subscript):  # `table[key] = value` adds an element where the key is a new one
            return (
                found
                if self._is_array(place.value)
                else found.union(*(self._value(v, frames) for v in addition.values[1:]))
            )
        method = place.func.attr.value if isinstance(place, cst.Call) and isinstance(place.func, cst.Attribute) else ""
        if method in NEW_KEYS:
            return found.union(*(self._value(v, frames) for v in addition.values))
        return found | self.all(addition.values, frames) if method == "extend" else found

    def _is_array(self, node: cst.CSTNode) -> bool:
        """Whether a container keeps its length whatever is written into it."""
        made = [o.node for o in self._origins.of(node)]
        apis = [self._origins.names.api(m.func) or "" for m in made if isinstance(m, cst.Call)]
        written = all(isinstance(m, cst.List | cst.ListComp | cst.Call) for m in made)
        return bool(made) and written and all(a.startswith(("numpy.", "tensorflow.")) for a in apis)
