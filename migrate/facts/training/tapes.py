"""Gradient calls, and whether what they return reaches an update."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from ...catalogue import UPDATES, VARIABLE_COLLECTIONS, Kind
from ..apis import CHANGES_VARIABLE, FILLS_LISTS, UPDATES_NOTHING
from ..program import (
    Definition,
    Origins,
    Variables,
    argument,
    closure,
    method,
    nodes,
    reaching,
    receiver,
    uses,
    within,
    within_itself,
)


@dataclass(frozen=True)
class Update:
    """A call that changes variables by a gradient: `optimizer.apply_gradients(…)`, or `variable.assign*(…)` by hand."""

    call: cst.Call
    receiver: cst.BaseExpression
    kind: str  # keras, assign, unknown


@dataclass(frozen=True)
class Gradient:
    """`tape.gradient(target, sources)`; without updates it is a gradient taken for another reason and stays local.

    `escapes` are calls of functions that are not in this file, and returns that nothing here calls. `fed` is what
    `model.train_on_batch(…)` is given, which takes the gradient of a compiled loss and updates by itself: then `tape`
    is the model.
    """

    call: cst.Call
    tape: cst.BaseExpression
    target: cst.BaseExpression | None
    sources: cst.BaseExpression | None
    wrapped: bool
    updates: tuple[Update, ...]
    escapes: tuple[cst.CSTNode, ...]
    minimized: bool = False  # by `optimizer.minimize(…)`: `tape` is the optimizer, which is averaged itself
    fed: tuple[cst.BaseExpression, ...] = ()

    @property
    def made_of(self) -> tuple[cst.BaseExpression, ...]:
        """What leads back to the data: the loss, or what Keras computes one of."""
        return self.fed or ((self.target,) if self.target is not None else ())


def gradients(origins: Origins) -> tuple[Gradient, ...]:
    """Every gradient call on a tape, in the order of the text."""
    calls, variables = _on_tapes(origins), Variables(origins)
    found = []
    for call in calls:
        target, sources = _value(call, "target", 0), _value(call, "sources", 1)
        wrapped, flow = _is_wrapped(origins, call), _Flow(origins, frozenset(calls), variables=variables)
        flow.follow(call)
        found.append(Gradient(call, receiver(call), target, sources, wrapped, tuple(flow.updates), tuple(flow.escapes)))
    minimizes = [c for c in origins.index.methods("minimize") if Kind.OPTIMIZER in origins.kinds(receiver(c))]
    found += [_minimized(origins, c) for c in minimizes]
    return tuple(sorted(found, key=lambda g: origins.index.order[g.call]))


def _value(call: cst.Call, keyword: str, position: int) -> cst.BaseExpression | None:
    given = argument(call, keyword, position)
    return given.value if given is not None else None


def _minimized(origins: Origins, call: cst.Call) -> Gradient:
    """`optimizer.minimize(loss, variables)`, of a function that gives the loss or of a loss with its tape."""
    target = _value(call, "loss", 0)
    origin = origins.one(target) if target is not None else None
    made = origin.node if origin is not None and not origin.path else None
    if isinstance(made, cst.Lambda):
        target = made.body
    elif isinstance(made, cst.FunctionDef):
        returned = origins.index.given_back(made)
        target = returned[0] if len(returned) == 1 else None
    optimizer, sources = receiver(call), _value(call, "var_list", 1)
    update = Update(call, optimizer, "keras" if origins.kinds(optimizer) == {Kind.OPTIMIZER} else "unknown")
    wrapped = is_averaged(origins, optimizer)
    return Gradient(call, optimizer, target, sources, wrapped, (update,), (), minimized=True)


@within_itself(False)
def is_averaged(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether an expression is `dp.DistributedOptimizer(…)`, by whatever name."""
    if origins.called(node) == "tfdp.runtime.DistributedOptimizer":
        return True
    values: list[cst.CSTNode | None] = []
    if isinstance(node, cst.Name):
        values = [d.value if not d.path else None for d in reaching(origins.index, node)]
    elif isinstance(node, cst.Attribute):
        values = [value if not path else None for value, path in origins.stored(node)]
    elif isinstance(node, cst.IfExp):
        values = [node.body, node.orelse]
    return bool(values) and all(v is not None and is_averaged(origins, v) for v in values)


def _on_tapes(origins: Origins) -> list[cst.Call]:
    """The calls of `.gradient()` of tapes."""
    calls = origins.index.methods("gradient")
    return [c for c in calls if _is_wrapped(origins, c) or Kind.TAPE in origins.kinds(receiver(c))]


def _is_wrapped(origins: Origins, call: cst.Call) -> bool:
    made = origins.of(receiver(call))
    return any(origins.called(o.node) == "tfdp.runtime.DistributedGradientTape" for o in made)


def reaches_update(origins: Origins, node: cst.Call, inside: cst.FunctionDef | None = None) -> bool:
    """Whether a call's value reaches an update.

    With `inside`, whether it does so without being returned from that function.
    """
    flow = _Flow(origins, frozenset(_on_tapes(origins)) - {node}, inside=inside)
    flow.follow(node)
    return bool(flow.updates)


def changes_its_sources(origins: Origins, gradient: Gradient) -> bool:
    """Whether a gradient, taken in a loop over data, is used to bind the names again that it was taken for.

    The names must be bound before the loop too: what is made anew for each batch, as an adversarial example is, belongs
    to that batch.
    """
    flow = _Flow(origins, frozenset())
    flow.follow(gradient.call)
    bound = _bindings(origins, gradient.sources)
    again = [d for d in bound if flow.holds(d)]
    loops = [loop for d in again for loop in origins.index.loops_around(d.statement) if isinstance(loop, cst.For)]
    over_data = [loop for loop in loops if origins.called(loop.iter) != "builtins.range"]
    return any(not within(origins.index, d.statement, loop) for loop in over_data for d in bound if d.kind != "param")


def _bindings(origins: Origins, node: cst.CSTNode | None) -> Iterable[Definition]:
    """The bindings of all names in an expression, and of those that are passed for its parameters."""

    def named(*values: cst.CSTNode | None) -> list[Definition]:
        names = [n for v in values if v is not None for n in nodes(v) if isinstance(n, cst.Name)]
        return [d for name in names for d in reaching(origins.index, name)]

    def further(definition: Definition) -> list[Definition]:
        function = definition.scope
        if definition.kind == "param" and isinstance(function, cst.FunctionDef):
            return named(*(origins.bind(call, function).get(definition.name) for call in origins.calls_of(function)))
        return named(definition.value) if isinstance(definition.value, cst.List | cst.Tuple) else []

    return closure(named(node), further)


class _Flow:
    """Forward flow of one value through expressions, names, parameters, returns and containers (flow-insensitive)."""

    def __init__(
        self,
        origins: Origins,
        gradient_calls: frozenset[cst.Call],
        inside: cst.FunctionDef | None = None,
        variables: Variables | None = None,
    ) -> None:
        """inside: follow no return of this function."""
        self.updates: list[Update] = []
        self.escapes: list[cst.CSTNode] = []
        self._origins, self._index = origins, origins.index
        self._gradient_calls, self._inside = gradient_calls, inside
        self._variables = variables or Variables(origins)
        self._seen: set[cst.CSTNode | Definition] = set()

    def holds(self, definition: Definition) -> bool:
        """Whether the value is bound by it."""
        return definition in self._seen

    def follow(self, node: cst.CSTNode) -> None:
        """Climb from an expression that holds the value to the statement that keeps it."""
        child = node
        for parent in self._index.ancestors(node):
            if parent in self._seen or isinstance(parent, cst.Lambda):
                return
            if isinstance(parent, cst.Call) and child is not parent.func:
                if parent in self._gradient_calls or not self._enter(parent, child):
                    return
                self._seen.add(parent)
            elif isinstance(parent, cst.CompFor):
                self._bind(d for d in self._index.bound[self._index.statement_of(parent)] if d.value is parent.iter)
            elif isinstance(parent, cst.BaseSmallStatement | cst.BaseCompoundStatement):
                self._keep(parent)
                return
            child = parent

    def _follow_new(self, places: Iterable[cst.CSTNode]) -> None:
        for place in places:
            if place not in self._seen:
                self._seen.add(place)
                self.follow(place)

    def _enter(self, call: cst.Call, child: cst.CSTNode) -> bool:
        """The value is an argument of `call`. False where the call's result does not hold it."""
        if method(call) in UPDATES | CHANGES_VARIABLE and self._update(call):
            return False
        if self._fills(call):
            self._put_into(receiver(call))
            return False
        owner = self._origins.class_of(call.func)
        called = self._origins.method(owner, "__call__") if owner is not None else None
        function = self._origins.function(call.func) or called
        if function is None:
            if not UPDATES_NOTHING.match(self._origins.called(call)):
                self.escapes.append(call)
            return True
        bound, params = self._origins.bind(call, function), self._index.definitions[function]
        names = [name for name, value in bound.items() if isinstance(child, cst.Arg) and child.value is value]
        self._bind(d for name in names for d in params.get(name, ()) if d.kind == "param")
        return False

    def _fills(self, call: cst.Call) -> bool:
        """Whether a method puts its arguments into a list, or into what is certainly a dict."""
        if method(call) in FILLS_LISTS:
            return self._origins.function(call.func) is None
        made = [o.node for o in self._origins.of(receiver(call))] if method(call) in {"update", "setdefault"} else []
        makers = {"builtins.dict", "collections.defaultdict"}
        return bool(made) and all(isinstance(m, cst.Dict) or self._origins.called(m) in makers for m in made)

    def _update(self, call: cst.Call) -> bool:
        changed = receiver(call)
        if any(u.call is call for u in self.updates):
            return True
        if method(call) in CHANGES_VARIABLE:
            kept = self._variables.is_accumulator(changed)
            self._follow_new(kept)
            self.updates += [] if kept else [Update(call, changed, "assign")]
            return True
        kinds = self._origins.kinds(changed)
        if self._origins.class_of(changed) is not None and Kind.OPTIMIZER not in kinds:
            return False  # the file's own class: its body says what it does with the value
        self.updates.append(Update(call, changed, "keras" if kinds == {Kind.OPTIMIZER} else "unknown"))
        return True

    def _keep(self, statement: cst.CSTNode) -> None:
        if isinstance(statement, cst.Assign | cst.AnnAssign | cst.AugAssign | cst.For | cst.With):
            bound = self._index.bound[statement]
            self._bind(d for d in bound if d.kind in {"assign", "for", "with", "other"})
            if isinstance(statement, cst.Assign):
                self._store([t.target for t in statement.targets])
            elif isinstance(statement, cst.AnnAssign | cst.AugAssign):
                self._store([statement.target])
        function = self._index.enclosing_function(statement)
        if isinstance(statement, cst.Return) and (function is None or function is not self._inside):
            calls = self._origins.calls_of(function) if function is not None else []
            self.escapes += [] if calls else [statement]
            self._follow_new(calls)

    def _store(self, targets: Iterable[cst.CSTNode]) -> None:
        """What reads the attributes and containers that a statement sets or fills."""
        for target in targets:
            if isinstance(target, cst.Tuple | cst.List):
                self._store(e.value for e in target.elements)
            elif isinstance(target, cst.Attribute | cst.Subscript):
                self._put_into(target)

    def _put_into(self, holder: cst.CSTNode) -> None:
        """What reads a list, dict or attribute into which the value is put."""
        while isinstance(holder, cst.Subscript):
            holder = holder.value
        if isinstance(holder, cst.Name):
            self._bind(reaching(self._index, holder))
        elif isinstance(holder, cst.Attribute):
            self._follow_new(a for a in self._index.attributes.get(holder.attr.value, ()) if a is not holder)

    def _bind(self, definitions: Iterable[Definition]) -> None:
        """What reads a name that holds the value."""
        for definition in definitions:
            if definition not in self._seen:
                self._seen.add(definition)
                self._follow_new(uses(self._index, definition))


def roots(sources: cst.BaseExpression | None) -> list[cst.BaseExpression]:
    """`model` in `model.trainable_variables`; of sums and lists of such, each; an empty list for anything else."""
    if isinstance(sources, cst.Attribute) and sources.attr.value in VARIABLE_COLLECTIONS:
        return [sources.value]
    if isinstance(sources, cst.BinaryOperation) and isinstance(sources.operator, cst.Add):
        left, right = roots(sources.left), roots(sources.right)
        return [*left, *right] if left and right else []
    return []
