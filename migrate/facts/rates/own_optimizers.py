"""Optimizers written by hand: which argument of their constructor is the learning rate."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ..program import ITER, Origin, Origins, Problem, reaching, within
from ..training import Optimizer, OwnClasses, PlainRate, PlainUpdates
from .objects import sets_by_name

_NEXT = "write the rate as a number, a constant or an argument where the optimizer is made"
_DEPTH = 20  # factors and names followed one after another; real updates stay below five
_POWERS = frozenset({"tensorflow.pow", "tensorflow.math.pow", "builtins.pow", "numpy.power", "math.pow"})


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
            function = self._origins.index.enclosing_function(call)
            owner = self._origins.index.enclosing_class(function) if function is not None else None
            if owner is None:
                found.append(self._plain.rate(call, _amount(call)))
            elif owner not in done:
                optimizer = self._classes.optimizer(owner)
                rates = self._of(optimizer, call)
                if any(isinstance(r, Problem) for r in rates) and self._is_step(function):
                    found.append(self._plain.rate(call, _amount(call)))
                else:
                    done.update(optimizer.family)
                    found += rates
        return found

    def _is_step(self, function: cst.FunctionDef | None) -> bool:
        """Whether a method takes its gradients itself: it is a training step, and its class no optimizer."""
        calls = [c for c in self._origins.index.calls if isinstance(c.func, cst.Attribute)]
        takes = [c for c in calls if cst.ensure_type(c.func, cst.Attribute).attr.value == "gradient"]
        return any(self._origins.index.enclosing_function(c) is function for c in takes)

    def _of(self, optimizer: Optimizer, place: cst.Call) -> list[OwnRate | Problem]:
        updates = [c for c in self._classes.assigns(optimizer) if not self._classes.is_slot(c, optimizer)]
        attributes: set[str] = set()
        for call in updates:
            amount = _amount(call)
            own = [
                f for f in self._factors(amount) if isinstance(f, cst.Attribute) and self._classes.is_self(f, optimizer)
            ]
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
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Multiply):
            return [*self._factors(node.left, depth + 1), *self._factors(node.right, depth + 1)]
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
            return self._factors(node.left, depth + 1)
        if isinstance(node, cst.Name):
            definitions = reaching(self._origins.index, node)
            value = definitions[0].value if len(definitions) == 1 and definitions[0].kind == "assign" else None
            if isinstance(value, cst.BinaryOperation | cst.Attribute | cst.Name) and not definitions[0].path:
                return self._factors(value, depth + 1)
        return [node]

    def _step_in(self, amount: cst.BaseExpression, rate: cst.Attribute, optimizer: Optimizer) -> cst.CSTNode | None:
        """A number in the update that changes from step to step, and is no bias correction `1 - beta ** t`."""
        for node in self._read(amount, optimizer, set()):
            if isinstance(node, cst.Attribute):
                changes = node.attr.value != rate.attr.value and self._changes(node, optimizer)
            else:
                changes = any(self._counts(o) for o in self._origins.of(node))
            if changes:
                return node if within(self._origins.index, node, optimizer.owner) else amount
        return None

    def _read(
        self, node: cst.CSTNode, optimizer: Optimizer, seen: set[cst.CSTNode]
    ) -> Iterator[cst.Name | cst.Attribute]:
        """Names and attributes of `self` that a value is computed from; elements of lists (`self.m[i]`) are left out,
        as they belong to one variable each."""
        if node in seen or isinstance(node, cst.Lambda) or self._corrects(node):
            return
        seen.add(node)
        if isinstance(node, cst.Subscript):
            listed = isinstance(node.value, cst.Attribute) and self._classes.is_own_variable(node.value, optimizer)
            yield from () if listed else self._read(node.value, optimizer, seen)
        elif isinstance(node, cst.Attribute):
            if self._classes.is_self(node, optimizer):
                yield node
            else:
                yield from self._read(node.value, optimizer, seen)
        elif isinstance(node, cst.Name):
            yield from self._read_name(node, optimizer, seen)
        elif isinstance(node, cst.Arg):
            yield from self._read(node.value, optimizer, seen)
        elif isinstance(node, cst.Call):
            yield from self._read_call(node, optimizer, seen)
        else:
            for child in node.children:
                yield from self._read(child, optimizer, seen)

    def _read_name(
        self, node: cst.Name, optimizer: Optimizer, seen: set[cst.CSTNode]
    ) -> Iterator[cst.Name | cst.Attribute]:
        if self._origins.names.api(node) is not None or self._classes.is_iterated_slot(node, optimizer):
            return
        yield node
        for origin in self._origins.of(node):
            inside = any(within(self._origins.index, origin.node, owner) for owner in optimizer.family)
            if inside and not origin.path and not isinstance(origin.node, cst.Param | cst.ClassDef):
                yield from self._read(origin.node, optimizer, seen)

    def _read_call(
        self, node: cst.Call, optimizer: Optimizer, seen: set[cst.CSTNode]
    ) -> Iterator[cst.Name | cst.Attribute]:
        function = self._origins.function(node.func)
        if function is None and isinstance(node.func, cst.Attribute):
            yield from self._read(node.func.value, optimizer, seen)
        if function is not None:
            for returned in self._origins.index.returns[function]:
                if returned.value is not None:
                    yield from self._read(returned.value, optimizer, seen)
        for arg in node.args:
            yield from self._read(arg, optimizer, seen)

    def _corrects(self, node: cst.CSTNode) -> bool:
        """`1 - beta ** t`: it goes to 1, by the optimizer's own updates, whatever one of them covers."""
        if not isinstance(node, cst.BinaryOperation) or not isinstance(node.operator, cst.Subtract):
            return False
        one = node.left
        if not isinstance(one, cst.Integer | cst.Float) or float(one.evaluated_value) != 1:
            return False
        power = node.right
        if isinstance(power, cst.Name) and (origin := self._origins.one(power)) is not None and not origin.path:
            return self._is_power(origin.node)
        return self._is_power(power)

    def _is_power(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call):
            return self._origins.names.api(node.func) in _POWERS
        return isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Power)

    def _changes(self, node: cst.Attribute, optimizer: Optimizer) -> bool:
        """Whether an attribute is a variable or is set again: neither is a constant of the optimizer."""
        stores = self._classes.stores(node.attr.value, optimizer)
        if not stores:
            in_body = any(node.attr.value in self._origins.index.definitions[c] for c in optimizer.family)
            return not in_body  # a constant or a method of the class, or something unknown
        made = [o.node for value, path in stores for o in self._origins.of(value, path)]
        apis = {self._origins.names.api(m.func) for m in made if isinstance(m, cst.Call)}
        return "tensorflow.Variable" in apis or len(stores) > 1

    def _counts(self, origin: Origin) -> bool:
        """Whether a value is a variable, is counted up, or is the number of a turn."""
        node = origin.node
        if isinstance(node, cst.AugAssign):
            return True
        api = self._origins.names.api(node.func) if isinstance(node, cst.Call) else None
        turn = ITER in origin.path and (
            api == "builtins.range" or (api == "builtins.enumerate" and origin.path[-2:] == (ITER, 0))
        )
        return turn or (api == "tensorflow.Variable" and not origin.path)

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
        params = [*init.params.params[1:], *init.params.kwonly_params]
        position = [p.name.value for p in params].index(parameter)
        return [OwnRate(call, parameter, position, params[position].default) for call in makers]

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
        if not isinstance(value, cst.Name):
            return None
        definitions = reaching(self._origins.index, value)
        init = definitions[0].scope if len(definitions) == 1 and definitions[0].kind == "param" else None
        if not isinstance(init, cst.FunctionDef) or init.name.value != "__init__":
            return None
        params = [p.name.value for p in (*init.params.params[1:], *init.params.kwonly_params)]
        return (init, value.value) if value.value in params and not init.params.posonly_params else None

    def _makers(self, init: cst.FunctionDef, optimizer: Optimizer) -> list[cst.Call]:
        """Calls that run the constructor: of the class, of classes that inherit it, and `super().__init__(…)`.

        None at all where another one runs it by its full name.
        """
        found: list[cst.Call] = []
        for call in self._origins.index.calls:
            made = self._origins.constructed(call)
            inherits = made is not None and self._origins.method(made, "__init__") is init
            if inherits or self._is_super(call, init, optimizer):
                found.append(call)
            elif self._origins.function(call.func) is init:
                return []
        return found

    def _is_super(self, call: cst.Call, init: cst.FunctionDef, optimizer: Optimizer) -> bool:
        if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "__init__":
            return False
        function = self._origins.index.enclosing_function(call)
        owner = self._origins.index.enclosing_class(function) if function is not None else None
        if not self._origins.is_super(call.func.value):
            return False
        bases = self._classes.bases(owner) if owner is not None and owner in optimizer.family else []
        return any(self._origins.method(base, "__init__") is init for base in bases)


def _not_found(place: cst.Call) -> Problem:
    reason = "the learning rate of this update by hand is not found: no single factor scales it"
    return Problem("TFDP020", place, reason, _NEXT)


def _amount(call: cst.Call) -> cst.BaseExpression | None:
    """What the update subtracts or adds: the argument of assign_sub/assign_add, or d in `v.assign(v - d)`."""
    assert isinstance(call.func, cst.Attribute)
    value = call.args[0].value if call.args else None
    if call.func.attr.value != "assign":
        return value
    if (
        isinstance(value, cst.BinaryOperation)
        and isinstance(value.operator, cst.Subtract | cst.Add)
        and value.left.deep_equals(call.func.value)
    ):
        return value.right
    return None
