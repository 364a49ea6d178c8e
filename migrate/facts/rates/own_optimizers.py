"""Optimizers written by hand: which argument of their constructor is the learning rate."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from ..apis import POWERS
from ..program import ITER, Origin, Origins, Problem, bound_once, closure, method, number, receiver, within
from ..training import Optimizer, OwnClasses, PlainRate, PlainUpdates
from .objects import sets_by_name

_NEXT = "write the rate as a number, a constant or an argument where the optimizer is made"
_DEPTH = 20  # factors and names followed one after another; real updates stay below five


@dataclass(frozen=True)
class OwnRate:
    """The learning rate of an optimizer written by hand: an argument of a call that makes it."""

    call: cst.Call
    parameter: str
    position: int
    default: cst.BaseExpression | None


class OwnOptimizers:
    """Finds the one factor that scales every update of an optimizer's variables."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins
        self._classes = OwnClasses(origins)
        self._plain = PlainUpdates(origins, self._factors)

    def rates(self, assigns: list[cst.Call]) -> list[OwnRate | PlainRate | Problem]:
        """The rates of the optimizers whose updates a gradient reaches, one for each call that makes one.

        Of an update that is no optimizer's, but written out in a step, the factor in it.
        """
        found: list[OwnRate | PlainRate | Problem] = []
        done: set[cst.ClassDef] = set()
        for call in assigns:
            owner = self._origins.index.class_around(call)
            rates = self._of(self._classes.optimizer(owner), call) if owner is not None and owner not in done else []
            in_step = any(isinstance(r, Problem) for r in rates) and self._is_step(call)
            if owner is None or in_step:
                found.append(self._plain.rate(call, _amount(call)))
            elif owner not in done:
                done.update(self._classes.optimizer(owner).family)
                found += rates
        return found

    def _is_step(self, place: cst.Call) -> bool:
        """Whether a method takes its gradients itself: it is a training step, and its class no optimizer."""
        index = self._origins.index
        function = index.enclosing_function(place)
        return any(index.enclosing_function(c) is function for c in index.methods("gradient"))

    def _of(self, optimizer: Optimizer, place: cst.Call) -> list[OwnRate | Problem]:
        updates = [c for c in self._classes.assigns(optimizer) if not self._classes.is_slot(c, optimizer)]
        attributes: set[str] = set()
        for call in updates:
            amount = _amount(call)
            factors = [f for f in self._factors(amount) if isinstance(f, cst.Attribute)]
            own = [f for f in factors if self._classes.is_self(f, optimizer)]
            if amount is None or len(own) != 1:
                return [_not_found(call)]
            if (step := self._step_in(amount, own[0], optimizer)) is not None:
                reason = "this update depends on the step by more than a bias correction"
                return [Problem("TFDP020", step, reason, "give a Keras optimizer a schedule instead")]
            attributes.add(own[0].attr.value)
        if len(attributes) != 1:
            return [_not_found(place)]
        return self._made(optimizer, attributes.pop(), place)

    # --- the factor ---------------------------------------------------------------------------------------------------

    def _factors(self, node: cst.BaseExpression | None, depth: int = 0) -> list[cst.BaseExpression]:
        """The factors of a product, through names bound once, signs and numerators."""
        if node is None or depth > _DEPTH:
            return []
        if isinstance(node, cst.UnaryOperation):
            return self._factors(node.expression, depth + 1)
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply | cst.Divide):
            factors = [node.left, node.right] if isinstance(node.operator, cst.Multiply) else [node.left]
            return [f for factor in factors for f in self._factors(factor, depth + 1)]
        bound = bound_once(self._origins.index, node)
        value = bound.value if bound is not None and bound.kind == "assign" and not bound.path else None
        if isinstance(value, cst.BinaryOperation | cst.Attribute | cst.Name):
            return self._factors(value, depth + 1)
        return [node]

    def _step_in(self, amount: cst.BaseExpression, rate: cst.Attribute, optimizer: Optimizer) -> cst.CSTNode | None:
        """A number in the update that changes from step to step, and is no bias correction `1 - beta ** t`."""
        root: cst.CSTNode = amount
        for node in closure([root], lambda each: self._made_of(each, optimizer)):
            if isinstance(node, cst.Attribute) and self._classes.is_self(node, optimizer):
                changes = node.attr.value != rate.attr.value and self._changes(node, optimizer)
            else:
                changes = self._is_number(node, optimizer) and any(self._counts(o) for o in self._origins.of(node))
            if changes:
                return node if within(self._origins.index, node, optimizer.owner) else amount
        return None

    def _is_number(self, node: cst.CSTNode, optimizer: Optimizer) -> bool:
        """Whether it is a name that may stand for a number of the optimizer's."""
        named = isinstance(node, cst.Name) and self._origins.names.api(node) is None
        return named and isinstance(node, cst.Name) and not self._classes.is_iterated_slot(node, optimizer)

    def _made_of(self, node: cst.CSTNode, optimizer: Optimizer) -> Iterable[cst.CSTNode]:
        """What a value is computed from in the optimizer's own classes; elements of lists (`self.m[i]`) are left out,
        as they belong to one variable each."""
        if isinstance(node, cst.Lambda) or self._corrects(node):
            return ()
        if isinstance(node, cst.Subscript):
            listed = isinstance(node.value, cst.Attribute) and self._classes.is_own_variable(node.value, optimizer)
            return () if listed else (node.value,)
        if isinstance(node, cst.Attribute):
            return () if self._classes.is_self(node, optimizer) else (node.value,)
        if isinstance(node, cst.Name):
            made = self._origins.of(node) if self._is_number(node, optimizer) else ()
            own = [o.node for o in made if not o.path and not isinstance(o.node, cst.Param | cst.ClassDef)]
            return [n for n in own if any(within(self._origins.index, n, owner) for owner in optimizer.family)]
        if isinstance(node, cst.Arg):
            return (node.value,)
        if not isinstance(node, cst.Call):
            return node.children
        function = self._origins.function(node.func)
        if function is not None:
            return (*self._origins.index.returned(function), *node.args)
        return (receiver(node), *node.args) if method(node) else node.args

    def _corrects(self, node: cst.CSTNode) -> bool:
        """`1 - beta ** t`: it goes to 1, by the optimizer's own updates, whatever one of them covers."""
        if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Subtract):
            return False
        if number(node.left) != 1:
            return False
        origin = self._origins.one(node.right) if isinstance(node.right, cst.Name) else None
        return self._is_power(origin.node if origin is not None and not origin.path else node.right)

    def _is_power(self, node: cst.CSTNode) -> bool:
        power = isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Power)
        return power or self._origins.called(node) in POWERS

    def _changes(self, node: cst.Attribute, optimizer: Optimizer) -> bool:
        """Whether an attribute is a variable or is set again: neither is a constant of the optimizer."""
        stores = self._classes.stores(node.attr.value, optimizer)
        if not stores:
            in_body = any(node.attr.value in self._origins.index.definitions[c] for c in optimizer.family)
            return not in_body  # a constant or a method of the class, or something unknown
        made = [o.node for value, path in stores for o in self._origins.of(value, path)]
        return len(stores) > 1 or any(self._origins.called(m) == "tensorflow.Variable" for m in made)

    def _counts(self, origin: Origin) -> bool:
        """Whether a value is a variable, is counted up, or is the number of a turn."""
        api, path = self._origins.called(origin.node), origin.path
        turn = api == "builtins.range" or (api == "builtins.enumerate" and path[-2:] == (ITER, 0))
        counted = (turn and ITER in path) or (api == "tensorflow.Variable" and not path)
        return counted or isinstance(origin.node, cst.AugAssign)

    # --- the argument -------------------------------------------------------------------------------------------------

    def _made(self, optimizer: Optimizer, attribute: str, place: cst.Call) -> list[OwnRate | Problem]:
        name = optimizer.owner.name.value
        found = self._argument_behind(optimizer, attribute)
        if found is None:
            reason = f"self.{attribute} is the learning rate, but not an argument of {name}(…), or is set again"
            return [Problem("TFDP020", place, reason, _NEXT)]
        init, parameter = found
        makers = self._makers(init, optimizer)
        if not makers:
            return [Problem("TFDP020", place, f"cannot tell where {name} is made in this file", _NEXT)]
        position = list(_arguments(init)).index(parameter)
        return [OwnRate(call, parameter, position, _arguments(init)[parameter]) for call in makers]

    def _argument_behind(self, optimizer: Optimizer, attribute: str) -> tuple[cst.FunctionDef, str] | None:
        """The constructor and its parameter that is all that the attribute is ever set to."""
        stores = self._classes.stores(attribute, optimizer)
        if len(stores) != 1 or sets_by_name(self._origins, {attribute}):
            return None
        value, path = stores[0]
        for step in path:
            if not isinstance(value, cst.Tuple | cst.List) or not 0 <= step < len(value.elements):
                return None
            value = value.elements[step].value
        given = bound_once(self._origins.index, value)
        init = given.scope if given is not None and given.kind == "param" else None
        if given is None or not isinstance(init, cst.FunctionDef) or init.name.value != "__init__":
            return None
        return (init, given.name) if given.name in _arguments(init) and not init.params.posonly_params else None

    def _makers(self, init: cst.FunctionDef, optimizer: Optimizer) -> list[cst.Call]:
        """Calls that run the constructor: of the class, of classes that inherit it, and `super().__init__(…)`.

        None at all where another one runs it by its full name.
        """
        index = self._origins.index
        above = [c for c in index.methods("__init__") if self._is_super(c, init, optimizer)]
        if any(self._origins.function(c.func) is init for c in index.methods("__init__") if c not in above):
            return []
        return sorted({*self._origins.calls_of(init), *above}, key=lambda call: index.order[call])

    def _is_super(self, call: cst.Call, init: cst.FunctionDef, optimizer: Optimizer) -> bool:
        owner = self._origins.index.class_around(call)
        if method(call) != "__init__" or not self._origins.is_super(receiver(call)) or owner not in optimizer.family:
            return False
        bases = self._origins.own_bases(owner) if owner is not None else []
        return any(self._origins.method(base, "__init__") is init for base in bases)


def _arguments(init: cst.FunctionDef) -> dict[str, cst.BaseExpression | None]:
    """The arguments of a constructor, with their defaults."""
    return {p.name.value: p.default for p in (*init.params.params[1:], *init.params.kwonly_params)}


def _not_found(place: cst.Call) -> Problem:
    reason = "the learning rate of this update by hand is not found: no single factor scales it"
    return Problem("TFDP020", place, reason, _NEXT)


def _amount(call: cst.Call) -> cst.BaseExpression | None:
    """What the update subtracts or adds: the argument of assign_sub/assign_add, or d in `v.assign(v - d)`."""
    value = call.args[0].value if call.args else None
    if method(call) != "assign":
        return value
    if not isinstance(value, cst.BinaryOperation) or not isinstance(value.operator, cst.Subtract | cst.Add):
        return None
    return value.right if value.left.deep_equals(receiver(call)) else None
