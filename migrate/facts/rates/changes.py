"""Where a script reads or assigns learning rates while it trains: there it goes by the script's own."""

from __future__ import annotations

import libcst as cst

from ...catalogue import Kind
from ..apis import ASSIGNS, RATES, SETS
from ..keras import Hooks
from ..program import Origins, method, receiver
from .objects import plain_object, reads_a_rate, sets_by_name

_CONTAINS = (cst.BaseElement, cst.BaseDictElement, cst.Tuple, cst.List, cst.Dict)


class RateChanges:
    """Answers for the places that may assign the learning rate of a Keras optimizer."""

    def __init__(self, origins: Origins) -> None:
        self._origins, self._hooks = origins, Hooks(origins)

    def places(self) -> tuple[cst.CSTNode, ...]:
        """Assignments and calls, what functions of the epoch return, and callbacks that lower rates."""
        origins = self._origins
        stores = [s for name in sorted(RATES) for s in origins.index.attribute_stores.get(name, ())]
        found: list[cst.CSTNode] = [target for target, *_ in stores if not plain_object(target.value, origins)]
        found += [c for c in sets_by_name(origins, RATES) if not plain_object(c.args[0].value, origins)]
        found += [c for c in origins.index.calls if self._assigns(c)]
        found += [a for name in sorted(RATES) for a in origins.index.attributes.get(name, ()) if self._kept(a)]
        found += [value for f in self._hooks.schedules() for value in origins.index.returned(f)]
        found += [*self._hooks.schedulers(), *origins.calls_to("keras.callbacks.ReduceLROnPlateau")]
        return tuple(dict.fromkeys(found))

    def _assigns(self, call: cst.Call) -> bool:
        if method(call) in ASSIGNS:
            return self._may_be_a_rate(receiver(call))
        if method(call) == "_set_hyper":
            held = receiver(call)
            return Kind.OPTIMIZER in self._origins.kinds(held) or self._origins.class_of(held) is None
        sets = SETS.match(self._origins.called(call)) is not None
        return sets and (not call.args or self._may_be_a_rate(call.args[0].value, unknown=True))

    def _kept(self, rate: cst.Attribute) -> bool:
        """Whether an optimizer's rate is put into a container, out of which it may be assigned unseen."""
        if Kind.OPTIMIZER not in self._origins.kinds(rate.value):
            return False
        parents = self._origins.index.parents
        node: cst.CSTNode = rate
        while isinstance(parents[node], _CONTAINS):
            node = parents[node]
        return node is not rate and isinstance(parents[node], cst.Assign | cst.AnnAssign | cst.Return)

    def _may_be_a_rate(self, node: cst.BaseExpression, unknown: bool = False) -> bool:
        """Whether a variable may be a rate.

        With `unknown`, one that comes from anywhere but this file's expressions is taken for it.
        """
        made = [o.node for o in self._origins.of(node) if not isinstance(o.node, cst.FunctionDef | cst.ClassDef)]
        given = unknown and any(isinstance(m, cst.Param) for m in made)
        return given or any(reads_a_rate(m, self._origins) for m in (node, *made))
