"""Gradient calls, and whether what they return reaches an update."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import libcst as cst

from ...catalogue import UPDATES, Kind
from ..program import Definition, Origins, Variables, argument, reaching, within

_ASSIGNS = frozenset({"assign", "assign_sub", "assign_add", "scatter_sub", "scatter_add"})
_FILLS_LISTS, _FILLS_DICTS = frozenset({"append", "extend", "insert"}), frozenset({"update", "setdefault"})
_KNOWN = ("tensorflow.", "keras.", "numpy.", "builtins.", "matplotlib.")
_WRAPPER = "tfdp.runtime.DistributedGradientTape"
AVERAGED = "tfdp.runtime.DistributedOptimizer"
_DEPTH = 10  # names followed one after another


@dataclass(frozen=True)
class Update:
    """A call that changes variables by a gradient: `optimizer.apply_gradients(…)`, or `variable.assign*(…)` by hand."""

    call: cst.Call
    receiver: cst.BaseExpression
    kind: str  # keras, assign, unknown


@dataclass(frozen=True)
class Gradient:
    """`tape.gradient(target, sources)`; without updates it is a gradient taken for another reason and stays local.

    `fed` is what `model.train_on_batch(…)` is given, which takes the gradient of a compiled loss and updates by itself:
    then `tape` is the model.
    """

    call: cst.Call
    tape: cst.BaseExpression
    target: cst.BaseExpression | None
    sources: cst.BaseExpression | None
    wrapped: bool
    updates: tuple[Update, ...]
    escapes: tuple[
        cst.CSTNode, ...
    ]  # calls of functions that are not in this file, and returns that nothing here calls
    minimized: bool = False  # by `optimizer.minimize(…)`: `tape` is the optimizer, which is averaged itself
    fed: tuple[cst.BaseExpression, ...] = ()

    @property
    def made_of(self) -> tuple[cst.BaseExpression, ...]:
        """What leads back to the data: the loss, or what Keras computes one of."""
        return self.fed or ((self.target,) if self.target is not None else ())


def gradients(origins: Origins) -> tuple[Gradient, ...]:
    """Every gradient call on a tape, in the order of the text."""
    calls = {c: wrapped for c in origins.index.calls if (wrapped := _on_tape(origins, c)) is not None}
    found, variables = [], Variables(origins)
    for call, wrapped in calls.items():
        target, sources = argument(call, "target", 0), argument(call, "sources", 1)
        assert isinstance(call.func, cst.Attribute)
        flow = _Flow(origins, frozenset(calls), variables=variables)
        flow.follow(call)
        given = [a.value if a is not None else None for a in (target, sources)]
        found.append(
            Gradient(call, call.func.value, given[0], given[1], wrapped, tuple(flow.updates), tuple(flow.escapes))
        )
    found += [_minimized(origins, c) for c in origins.index.calls if _minimizes(origins, c)]
    place = {call: i for i, call in enumerate(origins.index.calls)}
    return tuple(sorted(found, key=lambda g: place[g.call]))


def _minimizes(origins: Origins, call: cst.Call) -> bool:
    named = isinstance(call.func, cst.Attribute) and call.func.attr.value == "minimize"
    return named and isinstance(call.func, cst.Attribute) and Kind.OPTIMIZER in origins.kinds(call.func.value)


def _minimized(origins: Origins, call: cst.Call) -> Gradient:
    """`optimizer.minimize(loss, variables)`, of a function that gives the loss or of a loss with its tape."""
    assert isinstance(call.func, cst.Attribute)
    loss, sources = argument(call, "loss", 0), argument(call, "var_list", 1)
    target = loss.value if loss is not None else None
    origin = origins.one(target) if target is not None else None
    made = origin.node if origin is not None and not origin.path else None
    if isinstance(made, cst.Lambda):
        target = made.body
    elif isinstance(made, cst.FunctionDef):
        returned = [r.value for r in origins.index.returns[made] if r.value is not None]
        target = returned[0] if len(returned) == 1 else None
    receiver = call.func.value
    known = origins.kinds(receiver) == {Kind.OPTIMIZER}
    update = Update(call, receiver, "keras" if known else "unknown")
    variables = sources.value if sources is not None else None
    wrapped = is_averaged(origins, receiver)
    return Gradient(call, receiver, target, variables, wrapped, (update,), (), minimized=True)


def is_averaged(origins: Origins, node: cst.CSTNode, depth: int = 0) -> bool:
    """Whether an expression is `dp.DistributedOptimizer(…)`, by whatever name."""
    if isinstance(node, cst.Call) and origins.names.api(node.func) == AVERAGED:
        return True
    values: list[cst.CSTNode | None] = []
    if isinstance(node, cst.Name):
        values = [d.value if not d.path else None for d in reaching(origins.index, node)]
    elif isinstance(node, cst.Attribute):
        values = [value if not path else None for value, path in origins.stored(node)]
    elif isinstance(node, cst.IfExp):
        values = [node.body, node.orelse]
    return bool(values) and depth < _DEPTH and all(v is not None and is_averaged(origins, v, depth + 1) for v in values)


def _on_tape(origins: Origins, call: cst.Call) -> bool | None:
    """Whether a `.gradient()` call's tape is wrapped already; None where it is no tape's."""
    if not isinstance(call.func, cst.Attribute) or call.func.attr.value != "gradient":
        return None
    receiver = call.func.value
    made = [o.node for o in origins.of(receiver) if isinstance(o.node, cst.Call)]
    if any(origins.names.api(m.func) == _WRAPPER for m in made):
        return True
    return False if Kind.TAPE in origins.kinds(receiver) else None


def reaches_update(origins: Origins, node: cst.Call, inside: cst.FunctionDef | None = None) -> bool:
    """Whether a call's value reaches an update.

    With `inside`, whether it does so without being returned from that function.
    """
    calls = frozenset(c for c in origins.index.calls if c is not node and _on_tape(origins, c) is not None)
    flow = _Flow(origins, calls, inside=inside)
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
    loops = [loop for d in again for loop in origins.index.loops_around(d.statement)]
    outermost = [loop for loop in loops if isinstance(loop, cst.For) and not _counts(origins, loop)]
    return any(not within(origins.index, d.statement, loop) for loop in outermost for d in bound if d.kind != "param")


def _counts(origins: Origins, loop: cst.For) -> bool:
    return isinstance(loop.iter, cst.Call) and origins.names.api(loop.iter.func) == "builtins.range"


def _bindings(origins: Origins, node: cst.CSTNode | None) -> list[Definition]:
    """The bindings of all names in an expression, and of those that are passed for its parameters."""
    found: dict[Definition, None] = {}
    todo = [node] if node is not None else []
    while todo:
        each = todo.pop()
        if not isinstance(each, cst.Name):
            todo += each.children
            continue
        for definition in reaching(origins.index, each):
            if definition in found:
                continue
            found[definition] = None
            function = definition.scope
            if definition.kind == "param" and isinstance(function, cst.FunctionDef):
                given = [origins.bind(call, function).get(definition.name) for call in origins.calls_of(function)]
                todo += [value for value in given if value is not None]
            elif isinstance(definition.value, cst.List | cst.Tuple):
                todo.append(definition.value)
    return list(found)


@dataclass
class _Flow:
    """Forward flow of one value through expressions, names, parameters, returns and containers (flow-insensitive)."""

    origins: Origins
    gradient_calls: frozenset[cst.Call]
    updates: list[Update] = field(default_factory=list)
    escapes: list[cst.CSTNode] = field(default_factory=list)
    inside: cst.FunctionDef | None = None  # follow no return of this function
    variables: Variables | None = None
    _seen: set[cst.CSTNode | Definition] = field(default_factory=set)

    def holds(self, definition: Definition) -> bool:
        """Whether the value is bound by it."""
        return definition in self._seen

    def follow(self, node: cst.CSTNode) -> None:
        """Climb from an expression that holds the value to the statement that keeps it."""
        index = self.origins.index
        child = node
        for parent in index.ancestors(node):
            if parent in self._seen:
                return
            if isinstance(parent, cst.Call) and child is not parent.func:
                if parent in self.gradient_calls or not self._enter(parent, child):
                    return
                self._seen.add(parent)
            elif (
                isinstance(parent, cst.Attribute)
                and isinstance(index.parents[parent], cst.Call)
                and child is parent.value
            ):
                pass  # a method of the value: its result is taken to hold it
            elif isinstance(parent, cst.CompFor):
                self._element(parent)
            elif isinstance(parent, cst.Lambda):
                return
            elif isinstance(parent, cst.BaseSmallStatement | cst.BaseCompoundStatement):
                self._keep(parent)
                return
            child = parent

    def _enter(self, call: cst.Call, child: cst.CSTNode) -> bool:
        """The value is an argument of `call`. False where the call's result does not hold it."""
        func = call.func
        if isinstance(func, cst.Attribute):
            if func.attr.value in UPDATES | _ASSIGNS and self._update(call, func):
                return False
            if self._fills(func):
                self._container_uses(func.value)
                return False
        function = self.origins.function(func) or self._called_method(func)
        if function is None:
            if not (self.origins.names.api(func) or "").startswith(_KNOWN):
                self.escapes.append(call)
            return True
        for name, value in self.origins.bind(call, function).items():
            if isinstance(child, cst.Arg) and child.value is value:
                self._parameter(function, name)
        return False

    def _fills(self, method: cst.Attribute) -> bool:
        """Whether a method puts its arguments into a list, or into what is certainly a dict."""
        if method.attr.value in _FILLS_LISTS:
            return self.origins.function(method) is None
        made = [o.node for o in self.origins.of(method.value)] if method.attr.value in _FILLS_DICTS else []
        dicts = [isinstance(m, cst.Dict) or (isinstance(m, cst.Call) and self._makes_dict(m)) for m in made]
        return bool(dicts) and all(dicts)

    def _makes_dict(self, call: cst.Call) -> bool:
        return self.origins.names.api(call.func) in {"builtins.dict", "collections.defaultdict"}

    def _called_method(self, func: cst.BaseExpression) -> cst.FunctionDef | None:
        owner = self.origins.class_of(func)
        return self.origins.method(owner, "__call__") if owner is not None else None

    def _update(self, call: cst.Call, func: cst.Attribute) -> bool:
        if any(u.call is call for u in self.updates):
            return True
        if func.attr.value in _ASSIGNS:
            self.variables = self.variables or Variables(self.origins)
            kept = self.variables.is_accumulator(func.value)
            if kept:
                for made in kept - self._seen:
                    self._seen.add(made)
                    self.follow(made)
                return True
            self.updates.append(Update(call, func.value, "assign"))
            return True
        kinds = self.origins.kinds(func.value)
        if self.origins.class_of(func.value) is not None and Kind.OPTIMIZER not in kinds:
            return False  # the file's own class: its body says what it does with the value
        self.updates.append(Update(call, func.value, "keras" if kinds == {Kind.OPTIMIZER} else "unknown"))
        return True

    def _keep(self, statement: cst.CSTNode) -> None:
        index = self.origins.index
        if isinstance(statement, cst.Assign | cst.AnnAssign | cst.AugAssign | cst.For | cst.With):
            self._bound(lambda d: d.statement is statement and d.kind in {"assign", "for", "with", "other"})
            if isinstance(statement, cst.Assign):
                for target in statement.targets:
                    self._attribute_uses(target.target)
            elif isinstance(statement, cst.AnnAssign | cst.AugAssign):
                self._attribute_uses(statement.target)
        elif isinstance(statement, cst.Return):
            function = index.enclosing_function(statement)
            if function is not None and function is self.inside:
                return
            calls = self.origins.calls_of(function) if function is not None else []
            if not calls:
                self.escapes.append(statement)
            for call in calls:
                if call not in self._seen:
                    self._seen.add(call)
                    self.follow(call)

    def _attribute_uses(self, target: cst.CSTNode) -> None:
        if isinstance(target, cst.Tuple | cst.List):
            for element in target.elements:
                self._attribute_uses(element.value)
        while isinstance(target, cst.Subscript):
            target = target.value
            if isinstance(target, cst.Name):
                self._container_uses(target)
        if not isinstance(target, cst.Attribute):
            return
        for use in self.origins.index.attributes.get(target.attr.value, ()):
            if use is not target and use not in self._seen:
                self._seen.add(use)
                self.follow(use)

    def _container_uses(self, container: cst.CSTNode) -> None:
        """What reads a list or dict into which the value is put."""
        while isinstance(container, cst.Subscript):
            container = container.value
        if isinstance(container, cst.Name):
            for definition in reaching(self.origins.index, container):
                self._uses(definition)
        else:
            self._attribute_uses(container)

    def _element(self, comprehension: cst.CompFor) -> None:
        self._bound(lambda d: d.kind == "comp" and d.value is comprehension.iter)

    def _parameter(self, function: cst.FunctionDef, name: str) -> None:
        self._bound(lambda d: d.scope is function and d.kind == "param" and d.name == name)

    def _bound(self, which: Callable[[Definition], bool]) -> None:
        for scoped in list(self.origins.index.definitions.values()):
            for definitions in scoped.values():
                for definition in definitions:
                    if which(definition):
                        self._uses(definition)

    def _uses(self, definition: Definition) -> None:
        if definition in self._seen:
            return
        self._seen.add(definition)
        for name in self.origins.index.names[definition.name]:
            if name not in self._seen and definition in reaching(self.origins.index, name):
                self._seen.add(name)
                self.follow(name)
