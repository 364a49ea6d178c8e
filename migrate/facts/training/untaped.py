"""Training without a gradient tape: variables that change step by step, by data or draws and by what they are.

Contrastive divergence, competitive learning, multiplicative updates, hill climbing. What is only counted, summed up or
averaged over time does not hang on its own value but for that sum.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import libcst as cst

from ..apis import (
    CALLED,
    CHANGES_VARIABLE,
    CHOOSES_ONE,
    LEAVES_STATE,
    READS_NUMBER,
    READS_RECORDS,
    SAME_NUMBER,
    SETS,
)
from ..program import (
    Definition,
    Origin,
    Origins,
    Variables,
    assigned,
    backward,
    holds_weights,
    last_name,
    leading,
    method,
    nodes,
    reaching,
    receiver,
    within_itself,
)

_SPINE = cst.Add | cst.Subtract | cst.Multiply
_PARTS = {**dict.fromkeys(CHOOSES_ONE, slice(None)), **dict.fromkeys(SAME_NUMBER, slice(1))}
_PARTS |= {"tensorflow.clip_by_value": slice(1), "tensorflow.where": slice(1, None)}
_DRAWS = ("numpy.random.", "tensorflow.random.")
_OF_KERAS = ("keras.metrics.", "keras.optimizers.", "keras.callbacks.")


@dataclass(frozen=True)
class UntapedUpdate:
    """A place that changes a variable by data or draws and by what the variable is."""

    place: cst.Call
    variable: cst.BaseExpression


class Untaped:
    """Finds such updates; `gradients` are the calls that take gradients, which others follow."""

    def __init__(self, origins: Origins, gradients: Iterable[cst.Call]) -> None:
        self._origins, self._index, self._gradients = origins, origins.index, frozenset(gradients)
        self._variables = Variables(origins)

    def updates(self, others_train: bool) -> list[UntapedUpdate]:
        """others_train: whether the program trains by gradients, too, so that what its layers keep is asked apart."""
        changes = [(call, variable, values) for call, variable, values in self._changes() if values]
        changes = [c for c in changes if self._repeats(*c[:2]) and not self._of_keras(c[0], others_train)]
        found = [c for c in changes if self._trains(*c[1:]) or not (others_train or not self._climbs(*c))]
        return [UntapedUpdate(call, variable) for call, variable, _ in found]

    def _changes(self) -> Iterator[tuple[cst.Call, cst.BaseExpression, list[cst.BaseExpression]]]:
        for call in self._index.calls:
            given = [
                a.value for a in call.args if a.keyword is None or a.keyword.value in {"value", "delta", "weights"}
            ]
            if SETS.match(self._origins.called(call)) and given:
                yield call, given[0], given[1:]
            elif method(call) in CHANGES_VARIABLE | {"set_weights"}:
                yield call, receiver(call), given and [*given, *_chosen_by(receiver(call))]

    def _repeats(self, place: cst.CSTNode, variable: cst.BaseExpression | None = None) -> bool:
        """Whether a place may be come to again and again: in a loop, or by what is not in the file.

        A loop that goes over the variables comes to each of them once.
        """
        while isinstance(variable, cst.Attribute | cst.Subscript):
            variable = variable.value
        own = {d.statement for d in reaching(self._index, variable)} if isinstance(variable, cst.Name) else set()
        ways = list(leading(self._origins, [place]))
        return any(not own.issuperset(self._index.loops_around(way)) or self._by_others(way) for way in ways)

    def _by_others(self, place: cst.CSTNode) -> bool:
        function = self._index.enclosing_function(place)
        return function is not None and not self._origins.calls_of(function)

    def _of_keras(self, place: cst.CSTNode, others_train: bool) -> bool:
        """Whether it is what a metric, an optimizer or a callback keeps, or a layer where others train it."""
        owner, function = self._index.class_around(place), self._index.enclosing_function(place)
        called = function is not None and function.name.value in CALLED
        return self._origins.below(owner, _OF_KERAS) or (others_train and called)

    def _trains(self, variable: cst.BaseExpression, values: list[cst.BaseExpression]) -> bool:
        rest = [leaf for value in values for leaf in self._beside(variable, value)]
        if not any(self._reads(variable, self._made_of([leaf])) for leaf in rest):
            return False
        made_of = self._made_of(rest)
        shared = any(self._origins.called(n).startswith("tfdp.runtime.") for n in made_of)
        return not shared and self._gradients.isdisjoint(made_of) and any(map(self._is_data, made_of))

    def _climbs(self, call: cst.Call, variable: cst.BaseExpression, values: list[cst.BaseExpression]) -> bool:
        """Whether random numbers are added to a variable again and again, which is done to try where they lead."""
        added = method(call) != "assign" or any(
            self._is(variable, node) for value in values for node in backward(self._origins, [value])
        )
        rest = [leaf for value in values for leaf in self._beside(variable, value)]
        return added and any(self._origins.called(n).startswith(_DRAWS) and self._repeats(n) for n in rest)

    def _made_of(self, roots: Iterable[cst.CSTNode]) -> frozenset[cst.CSTNode]:
        """All nodes from which the roots are computed, also by way of the lists that loops go over."""
        found, new = frozenset[cst.CSTNode](), frozenset(roots)
        while new := backward(self._origins, new) - found:
            found |= new
            names = (n for n in new if isinstance(n, cst.Name))
            new = frozenset(o for n in names for d in reaching(self._index, n) if (o := self._gone_over(d)) is not None)
        return found

    def _gone_over(self, definition: Definition) -> cst.BaseExpression | None:
        """What a loop takes a name's values out of: of several that are zipped, the one."""
        over, path = definition.value, definition.path[1:]
        while isinstance(over, cst.Call) and path:
            position = {"builtins.zip": path[0], "builtins.enumerate": path[0] - 1}.get(self._origins.called(over), -1)
            if not 0 <= position < len(over.args):
                break
            over, path = over.args[position].value, path[1:]
        return over if definition.kind in {"for", "comp"} and isinstance(over, cst.BaseExpression) else None

    # --- what is added ------------------------------------------------------------------------------------------------

    def _beside(self, variable: cst.BaseExpression, value: cst.BaseExpression) -> Iterator[cst.BaseExpression]:
        """The parts of a sum, product or choice, without the variable itself: `0.9 * mean + 0.1 * x` has no other."""
        if self._is(variable, value):
            return
        for part in (parts := self._parts(value)):
            yield from self._beside(variable, part)
        if not parts:
            yield value

    def _parts(self, value: cst.BaseExpression) -> list[cst.BaseExpression]:
        if isinstance(value, cst.BinaryOperation) and isinstance(value.operator, _SPINE | cst.Divide):
            return [value.left, value.right]
        if isinstance(value, cst.UnaryOperation):
            return [value.expression]
        if isinstance(value, cst.List | cst.Tuple):
            return [e.value for e in value.elements]
        if isinstance(value, cst.IfExp):
            return [value.body, value.orelse]
        if isinstance(value, cst.Call):
            api = self._origins.called(value)
            if not api and method(value) in READS_NUMBER:
                return [receiver(value)]
            return [a.value for a in value.args[_PARTS[api]]] if api in _PARTS else []
        held = assigned(self._index, value) if isinstance(value, cst.Name) else None
        return [held] if isinstance(held, cst.BinaryOperation | cst.Call) else []

    def _is(self, variable: cst.BaseExpression, node: cst.CSTNode) -> bool:
        """Whether an expression is the variable."""
        if not isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
            return False
        made, found = self._made(variable), self._made(node)
        same = isinstance(node, cst.Attribute) and last_name(node) == last_name(variable)
        return same or not found.isdisjoint(made)

    def _made(self, node: cst.BaseExpression) -> set[Origin | cst.Call]:
        """What makes a variable, or the variables that it is one of."""
        return {*self._origins.of(node), *self._variables.made(node).calls}

    def _reads(self, variable: cst.BaseExpression, made_of: Iterable[cst.CSTNode]) -> bool:
        networks = {o.node for held in self._networks(variable) for o in self._origins.of(held)}
        return any(self._is(variable, node) or self._is_one(node, networks) for node in made_of)

    def _is_one(self, node: cst.CSTNode, networks: set[cst.CSTNode]) -> bool:
        return isinstance(node, cst.Name) and any(o.node in networks for o in self._origins.of(node))

    def _networks(self, variable: cst.BaseExpression) -> list[cst.BaseExpression]:
        """The layers or models of which a variable is a weight: what is computed by them reads it."""
        found = [variable, *(o.node for o in self._origins.of(variable))]
        for definition in reaching(self._index, variable) if isinstance(variable, cst.Name) else ():
            found += nodes(over) if (over := self._gone_over(definition)) is not None else ()
        held = [n.value for n in found if isinstance(n, cst.Attribute)]
        return [n for n in held if isinstance(self._origins.made(n), cst.Call) and holds_weights(self._origins, n)]

    # --- data ---------------------------------------------------------------------------------------------------------

    def _is_data(self, node: cst.CSTNode) -> bool:
        """Whether a node gives examples: elements of a loop that does not only count, a batch, what is read."""
        if isinstance(node, cst.Name):
            return any(map(self._holds_data, reaching(self._index, node)))
        if isinstance(node, cst.Subscript):
            return any(self._index.loops_around(node) and not isinstance(e.slice, cst.Index) for e in node.slice)
        api = self._origins.called(node)
        if api.startswith(_DRAWS):  # drawn once, as examples are in a small script
            return not self._repeats(node)
        foreign = bool(api) and not LEAVES_STATE.match(api)
        return foreign or api == "builtins.next" or method(node) == "get_next" or READS_RECORDS.match(api) is not None

    def _holds_data(self, definition: Definition) -> bool:
        if definition.kind == "param":
            function = definition.scope
            own = isinstance(function, cst.FunctionDef) and not self._origins.calls_of(function)
            return own and not self._origins.is_self(definition) and definition.name != "training"
        if definition.kind not in {"for", "comp"} or definition.value is None:
            return False
        made = self._origins.made(definition.value)
        counted = self._origins.called(made) == "builtins.enumerate" and definition.path[1:2] == (0,)
        return not counted and self._from_data(definition.value)

    @within_itself(False)
    def _from_data(self, value: cst.CSTNode) -> bool:
        return any(map(self._is_data, backward(self._origins, [value])))


def _chosen_by(variable: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What says which row of a variable is changed: `k` of `prototypes[k].assign(…)`."""
    if not isinstance(variable, cst.Subscript):
        return []
    return [e.slice.value for e in variable.slice if isinstance(e.slice, cst.Index)]
