"""Classes of optimizers written by hand: their families, what their attributes hold, and which variables are slots."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from ..apis import CHANGES_VARIABLE, FILLS_LISTS
from ..program import Origin, Origins, bound_once, closure, is_none, receiver, within


@dataclass(frozen=True)
class Optimizer:
    """A class and those of this file that it descends from or that descend from it."""

    owner: cst.ClassDef
    family: tuple[cst.ClassDef, ...]


class OwnClasses:
    """Answers about the classes themselves."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    # --- the class ----------------------------------------------------------------------------------------------------

    def optimizer(self, owner: cst.ClassDef) -> Optimizer:
        """The class with its family."""
        above = {c: self._origins.own_bases(c) for c in self._origins.index.classes}
        related = {c: [*bases, *(d for d in above if c in above[d])] for c, bases in above.items()}
        return Optimizer(owner, tuple(closure([owner], related.__getitem__)))

    def is_self(self, node: cst.Attribute, optimizer: Optimizer) -> bool:
        """Whether an attribute is one of the optimizer itself."""
        return self._origins.class_of(node.value) in optimizer.family

    def assigns(self, optimizer: Optimizer) -> list[cst.Call]:
        """Every assignment to a variable in the classes' own code."""
        index = self._origins.index
        calls = index.methods(*CHANGES_VARIABLE)
        return [c for c in calls if any(within(index, c, owner) for owner in optimizer.family)]

    def stores(self, attribute: str, optimizer: Optimizer) -> list[tuple[cst.CSTNode, tuple[int, ...]]]:
        """What the attribute may be set to, also from outside and on an object that is not known."""
        stores = self._origins.index.attribute_stores.get(attribute, ())
        classes = [(self._origins.class_of(target.value), value, path) for target, value, path in stores]
        return [(value, path) for owner, value, path in classes if owner is None or owner in optimizer.family]

    # --- slots --------------------------------------------------------------------------------------------------------

    def is_slot(self, call: cst.Call, optimizer: Optimizer) -> bool:
        """Whether the assigned variable is certainly one that the optimizer made for itself."""
        return self.is_own_variable(receiver(call), optimizer)

    def is_own_variable(self, node: cst.CSTNode, optimizer: Optimizer) -> bool:
        while isinstance(node, cst.Subscript):
            node = node.value
        if isinstance(node, cst.Name):
            return self.is_iterated_slot(node, optimizer)
        return isinstance(node, cst.Attribute) and self.is_self(node, optimizer) and self._holds_new(node, optimizer)

    def is_iterated_slot(self, node: cst.Name, optimizer: Optimizer) -> bool:
        """`m` in `for v, m in zip(variables, self.m):`, with or without `enumerate`."""
        definition = bound_once(self._origins.index, node)
        if definition is None or definition.kind not in {"for", "comp"} or definition.value is None:
            return False
        value, path = definition.value, definition.path[1:]
        while isinstance(value, cst.Call) and path:
            api = self._origins.names.api(value.func)
            place = 0 if api == "builtins.enumerate" and path[0] == 1 else path[0] if api == "builtins.zip" else -1
            if not 0 <= place < len(value.args) or any(a.star for a in value.args):
                return False
            value, path = value.args[place].value, path[1:]
        return not path and isinstance(value, cst.Attribute) and self.is_own_variable(value, optimizer)

    def _holds_new(self, node: cst.Attribute, optimizer: Optimizer) -> bool:
        """Whether nothing but new variables, or lists of them, is ever put into an attribute."""
        name, index = node.attr.value, self._origins.index
        uses = index.attributes[name]
        stored = self.stores(name, optimizer)
        later: list[cst.CSTNode] = [c.args[-1].value for c in index.methods(*FILLS_LISTS) if receiver(c) in uses]
        later += [value for target, value in index.subscript_stores.items() if target.value in uses]
        made = [o for value, path in (*stored, *((v, ()) for v in later)) for o in self._origins.of(value, path)]
        return bool(stored) and all(map(self._makes_variables, made))

    def _makes_variables(self, origin: Origin) -> bool:
        """`tf.Variable(…)`, a list of such, or an empty container that is to be filled."""
        node = origin.node
        if origin.path:
            return False
        if isinstance(node, cst.Call):
            api = self._origins.called(node)
            return api == "tensorflow.Variable" or (api in {"builtins.list", "builtins.dict"} and not node.args)
        if isinstance(node, cst.List | cst.Tuple):
            return all(self._makes_variables(o) for e in node.elements for o in self._origins.of(e.value))
        if isinstance(node, cst.ListComp | cst.DictComp):
            element = node.elt if isinstance(node, cst.ListComp) else node.value
            return all(map(self._makes_variables, self._origins.of(element)))
        empty = isinstance(node, cst.Dict) and not node.elements
        return empty or is_none(self._origins, node)
