"""Where variables are made: which calls of `tf.Variable` an expression, or a container's elements, can stand for."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ...catalogue import VARIABLE_COLLECTIONS, Kind
from ..apis import PUTS_IN, SAME_ELEMENTS
from .asking import closure
from .index import ITER, Origin
from .origins import Origins
from .spelling import argument, last_name, method, receiver

_STEPS = 300


@dataclass(frozen=True)
class Made:
    """calls: the `tf.Variable(…)` calls found. collected: whether there are variables that a model collects. others:
    whether there are any that come from elsewhere."""

    calls: frozenset[cst.Call]
    collected: bool
    others: bool


class Variables:
    """Follows expressions back to where their variables are made."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._trained: Made | None = None

    def made(self, node: cst.CSTNode) -> Made:
        """The variables that an expression is, or that are in it."""
        found = closure(self._origins.of(node), lambda o: self._inside(o) or (), _STEPS)
        ends = {o: o.node for o in found if self._inside(o) is None}
        calls = frozenset(
            n for n in ends.values() if isinstance(n, cst.Call) and self._origins.called(n) == "tensorflow.Variable"
        )
        collected = {n for n in ends.values() if isinstance(n, cst.Attribute) and last_name(n) in VARIABLE_COLLECTIONS}
        return Made(
            calls, bool(collected), len(found) > _STEPS or any(n not in calls | collected for n in ends.values())
        )

    def is_accumulator(self, node: cst.CSTNode) -> frozenset[cst.Call]:
        """The calls that make the variables, where none of them is certainly trained; else nothing.

        Such a variable keeps what is assigned to it for later: a sum of gradients, a moving average.
        """
        found = self.made(node)
        trained = self._of_gradients()
        if found.others or found.collected or found.calls & trained.calls:
            return frozenset()
        if trained.others and not all(self._is_untrainable(call) for call in found.calls):
            return frozenset()
        if trained.collected and not all(self._stands_alone(call) for call in found.calls):
            return frozenset()
        return found.calls

    def _of_gradients(self) -> Made:
        """The variables for which any gradient is taken."""
        if self._trained is None:
            sources = [argument(c, "sources", 1) for c in self._origins.index.methods("gradient")]
            found = [self.made(s.value) for s in sources if s is not None]
            calls = frozenset[cst.Call]().union(*(m.calls for m in found))
            self._trained = Made(calls, any(m.collected for m in found), any(m.others for m in found))
        return self._trained

    def _is_untrainable(self, call: cst.Call) -> bool:
        trainable = argument(call, "trainable", 1)
        return trainable is not None and self._origins.names.api(trainable.value) == "builtins.False"

    def _stands_alone(self, call: cst.Call) -> bool:
        """Whether a variable is no trainable one of a model."""
        if self._is_untrainable(call):
            return True
        index = self._origins.index
        owner = index.class_around(call)
        statement = index.statement_of(call)
        targets = [t.target for t in statement.targets] if isinstance(statement, cst.Assign) else []
        kept = [t for t in targets if isinstance(t, cst.Attribute)]
        if any(self._origins.class_of(t.value) is not owner or owner is None for t in kept):
            return False  # an attribute of another object, which may be a model
        return owner is None or not (owner.bases and self._is_tracked(owner))

    def _is_tracked(self, owner: cst.ClassDef) -> bool:
        """Whether objects of the class may collect their attributes as trainable variables."""
        known = self._origins.base_kinds(owner)
        return Kind.MODEL in known or any(self._origins.one(b.value) is None or self._foreign(b) for b in owner.bases)

    def _foreign(self, base: cst.Arg) -> bool:
        origin = self._origins.one(base.value)
        plain = self._origins.names.api(base.value) == "builtins.object"
        return not plain and not (origin is not None and isinstance(origin.node, cst.ClassDef))

    # --- containers ---------------------------------------------------------------------------------------------------

    def _inside(self, origin: Origin) -> list[Origin] | None:
        """One step further: into the elements of a container. None where it is not understood."""
        node, path = origin.node, origin.path
        of = self._origins.of
        rest = path[1:] if path else ()
        if isinstance(node, cst.ListComp | cst.GeneratorExp | cst.SetComp):
            return list(of(node.elt, rest))
        if isinstance(node, cst.List | cst.Tuple):
            values = [*(e.value for e in node.elements), *self._appended(node)]
            return [o for value in values for o in of(value, rest)]
        if isinstance(node, cst.Dict):
            entries = [e.value for e in node.elements if isinstance(e, cst.DictElement)]
            complete = len(entries) == len(node.elements)
            return [o for v in (*entries, *self._appended(node)) for o in of(v, rest)] if complete else None
        if isinstance(node, cst.DictComp):
            return list(of(node.value, rest))
        if isinstance(node, cst.Subscript):
            return list(of(node.value, (ITER, *path)))
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Add):
            return [*of(node.left, path), *of(node.right, path)]
        return self._called(node, path) if isinstance(node, cst.Call) else None

    def _called(self, call: cst.Call, path: tuple[int, ...]) -> list[Origin] | None:
        api = self._origins.called(call)
        first = call.args[0].value if call.args and not call.args[0].star else None
        of = self._origins.of
        if api == "builtins.zip" and len(path) > 1 and path[0] == ITER and 0 <= path[1] < len(call.args):
            return list(of(call.args[path[1]].value, (ITER, *path[2:])))
        if api == "builtins.enumerate" and first is not None and path[:2] == (ITER, 1):
            return list(of(first, (ITER, *path[2:])))
        if api in SAME_ELEMENTS and first is not None:
            return list(of(first, path))
        if api in {"builtins.list", "builtins.dict"} and first is None:
            return [o for v in self._appended(call) for o in of(v, path[1:])]
        if method(call) == "values" and not api:
            return list(of(receiver(call), path))
        if method(call) == "items" and not api and path[:2] == (ITER, 1):
            return list(of(receiver(call), (ITER, *path[2:])))
        return None

    def _appended(self, made: cst.CSTNode) -> Iterator[cst.BaseExpression]:
        """What is put into a list or dict after it was made."""
        for call in self._origins.index.methods(*PUTS_IN):
            if call.args and self._is(receiver(call), made):
                yield call.args[-1].value
        for target, value in self._origins.index.subscript_stores.items():
            if self._is(target.value, made) and isinstance(value, cst.BaseExpression):
                yield value

    def _is(self, node: cst.CSTNode, made: cst.CSTNode) -> bool:
        return any(o.node is made and not o.path for o in self._origins.of(node))
