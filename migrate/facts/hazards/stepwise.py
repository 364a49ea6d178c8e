"""Losses and gradients that change with the number of the step: weights that grow, temperatures, factors that fall.

With the batch of all workers a pass over the data has fewer steps, so that they would change more slowly.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import libcst as cst

from ...catalogue import Kind
from ..keras import KerasStepping, is_fitted_model
from ..program import ITER, Definition, Origins, Pace, Problem, backward, last_name, nodes, reaching
from ..rates import RATES
from ..training import Gradient

_ASSIGNS = ("assign", "assign_add", "assign_sub")
_UPDATES = ("update", "update_add", "update_sub")
_SETS = {f"keras.backend.{name}": not name.startswith("update_") for name in ("set_value", *_UPDATES)}
_SETS_WEIGHTS = frozenset({"set_weights", "load_weights"})
_MAKES = frozenset({"Variable", "variable", "add_weight", "add_variable"})
_READS = frozenset({"numpy", "value", "read_value", "item"})
_NUMBERED = {"builtins.enumerate": (ITER, 0), "builtins.range": (ITER,), "itertools.count": (ITER,)}
_NUMBERED |= {f"tqdm.{module}trange": (ITER,) for module in ("", "auto.", "notebook.")}
_ARITHMETIC = frozenset(f"builtins.{name}" for name in ("abs", "float", "int", "max", "min", "pow", "round"))
_LIBRARIES = ("math.", "numpy.", "tensorflow.", "keras.backend.", "keras.ops.")
_ORDER = (cst.LessThan, cst.LessThanEqual, cst.GreaterThan, cst.GreaterThanEqual, cst.Equal, cst.NotEqual)
# Calls that lead to an update are followed so far.
_CALLS = 4
_CONSUMED = frozenset({"apply_gradients", "apply"})


def _nothing(node: cst.CSTNode) -> bool:  # noqa: ARG001
    return False


@dataclass(frozen=True)
class Assignment:
    """What changes a variable: anew, or by adding a value or taking it away."""

    receiver: cst.BaseExpression
    value: cst.BaseExpression
    anew: bool


class Stepwise:
    """Finds what changes from step to step in what is computed from the examples.

    loops: those of which each turn is a step; left: those of which the number says which examples a batch has; keras:
    what Keras runs at each step.
    """

    def __init__(
        self,
        origins: Origins,
        loops: Iterable[cst.For | cst.While],
        left: Collection[cst.CSTNode],
        keras: KerasStepping,
    ) -> None:
        self._origins, self._loops, self._left, self._keras = origins, frozenset(loops), left, keras
        self._pace = Pace(origins, self._loops, keras.functions)
        self._open: set[Assignment] = set()

    def problems(self, gradients: Iterable[Gradient], losses: Collection[cst.CSTNode]) -> list[Problem]:
        """Counters among the nodes that trained losses are computed from, and in what is applied."""
        applied = [a.value for g in gradients for u in g.updates if _applies(u.call) for a in u.call.args[:1]]
        given = backward(self._origins, applied)
        calls = [u.call for g in gradients for u in g.updates]
        turns = self._turning([*losses, *given], calls)
        deeds = self._deeds(set(losses), calls)
        found = dict.fromkeys([*self._counters(losses), *self._counters(given), *turns, *deeds])
        reason = "what is trained here depends on the number of the step, and steps are fewer here"
        next_step = "let it depend on the epoch, or use --batch global"
        return [Problem("TFDP011", node, reason, next_step) for node in found]

    def _counters(self, computed: Collection[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        for node in computed:
            if not self._is_exempt(node) and self._counts(node):
                yield node

    def _is_exempt(self, node: cst.CSTNode) -> bool:
        """A seed, and what only says where examples are."""
        for above in self._origins.index.ancestors(node):
            if isinstance(above, cst.Arg) and above.keyword is not None and above.keyword.value == "seed":
                return True
            if isinstance(above, cst.SubscriptElement | cst.FunctionDef | cst.BaseStatement):
                return isinstance(above, cst.SubscriptElement)
        return False

    # --- conditions ---------------------------------------------------------------------------------------------------

    def _turning(self, computed: Collection[cst.CSTNode], applied: Iterable[cst.Call]) -> Iterator[cst.CSTNode]:
        """Steps from which on something else is computed: `if step > 1000: weight = 0.1`; or applied, or no more."""
        names = [node for node in computed if isinstance(node, cst.Name)]
        places = [d.statement for name in names for d in reaching(self._origins.index, name)]
        places += [place for call in applied for place in self._ways_to(call)]
        for condition in dict.fromkeys(c for place in dict.fromkeys(places) for c in self._conditions(place)):
            if self._pace.in_step(condition) and not _begins_anew(condition):
                yield from self._thresholds(condition.test)

    def _ways_to(self, call: cst.Call, depth: int = 0) -> Iterator[cst.CSTNode]:
        """A call, and the calls that lead to it."""
        yield call
        function = self._origins.index.enclosing_function(call)
        for caller in self._origins.calls_of(function) if function is not None and depth < _CALLS else ():
            yield from self._ways_to(caller, depth + 1)

    def _conditions(self, place: cst.CSTNode) -> Iterator[cst.If]:
        """What is asked before a place is reached."""
        below = place
        for above in self._origins.index.ancestors(place):
            if isinstance(above, cst.FunctionDef):
                return
            if isinstance(above, cst.If) and below is not above.test:
                yield above
            below = above

    def _thresholds(self, test: cst.BaseExpression) -> Iterator[cst.Comparison]:
        """Comparisons of a counter, saying how many steps there were; not whose turn it is, or which is the first."""
        if any(isinstance(n, cst.Modulo) for n in nodes(test)):
            return
        for comparison in (n for n in nodes(test) if isinstance(n, cst.Comparison)):
            sides = [comparison.left, *(c.comparator for c in comparison.comparisons)]
            ordered = all(isinstance(c.operator, _ORDER) for c in comparison.comparisons)
            first = any(isinstance(s, cst.Integer) and s.evaluated_value <= 1 for s in sides)
            if ordered and not first and any(self._counts(n) for n in backward(self._origins, sides)):
                yield comparison

    def _deeds(self, computed: Collection[cst.CSTNode], applied: Iterable[cst.Call]) -> Iterator[cst.CSTNode]:
        """Steps at which weights are set, or after which training ends: `if step % 10 == 0: target.set_weights(…)`.

        Not where the update itself is made: what is gathered until then begins anew with it.
        """
        ways = dict.fromkeys(c for call in applied for p in self._ways_to(call) for c in self._conditions(p))
        for place in self._setting(computed):
            for condition in self._conditions(place):
                if self._pace.in_step(condition) and condition not in ways:
                    yield from (n for n in self._asked(condition.test) if self._counts(n))

    def _setting(self, computed: Collection[cst.CSTNode]) -> Iterator[cst.CSTNode]:
        """Places that set weights, or end what Keras' fit runs."""
        for call in self._origins.index.calls:
            method = call.func if isinstance(call.func, cst.Attribute) else None
            name = method.attr.value if method is not None else ""
            assigns = method is not None and name in _ASSIGNS and self._weighs(method.value, computed)
            if assigns or name in _SETS_WEIGHTS:
                yield call
        yield from (target for target, _, _ in self._origins.index.attribute_stores.get("stop_training", ()))

    def _weighs(self, receiver: cst.BaseExpression, computed: Collection[cst.CSTNode]) -> bool:
        """Whether a variable that is assigned may be a weight: no rate, nor a number kept for a report."""
        if isinstance(receiver, cst.Attribute) and receiver.attr.value in RATES:
            return False
        makers = [m for m in self._makers(receiver) if isinstance(m, cst.Call) and m.args]
        plain = bool(makers) and all(isinstance(m.args[0].value, cst.BaseNumber) for m in makers)
        return not plain or any(m in computed for m in makers)

    def _asked(self, test: cst.BaseExpression) -> Iterator[cst.CSTNode]:
        """What a condition asks about, unless it is whether a step is the first."""
        turn = any(isinstance(n, cst.Modulo) for n in nodes(test))
        first = any(isinstance(n, cst.Integer) and n.evaluated_value <= 1 for n in nodes(test))
        yield from nodes(test) if turn or not first else ()

    # --- counters -----------------------------------------------------------------------------------------------------

    def _is_counter(self, read: cst.Name | cst.Attribute) -> bool:
        if self._is_in_own_change(read):
            return False
        if self._is_assigned(read):
            return True
        if isinstance(read, cst.Attribute):
            return self._is_stored_counter(read)
        found = reaching(self._origins.index, read)
        numbered = any(self._numbers_turns(d) or d.value in self._keras.numbers for d in found)
        return numbered or self._moves(read, found)

    def _is_in_own_change(self, read: cst.BaseExpression) -> bool:
        """What `step += 1`, `step = step + 1` and `step.assign(step + 1)` read is of no interest by itself."""
        for above in self._origins.index.ancestors(read):
            if isinstance(above, cst.AugAssign):
                return above.target is read
            if isinstance(above, cst.Assign):
                return any(t.target.deep_equals(read) for t in above.targets)
            if isinstance(above, cst.Call) and isinstance(above.func, cst.Attribute):
                if above.func.attr.value in _ASSIGNS and above.func.value.deep_equals(read):
                    return True
            elif isinstance(above, cst.BaseStatement):
                break
        return False

    def _numbers_turns(self, definition: Definition) -> bool:
        """`for step, batch in enumerate(data)` and `for step in range(n)`, where each turn is a step."""
        loop, value, path = definition.statement, definition.value, definition.path
        if definition.kind != "for" or loop not in self._loops or loop in self._left:
            return False
        while isinstance(value, cst.Call):
            api = self._origins.names.api(value.func)
            if path == _NUMBERED.get(api or ""):
                return True
            place = path[1] if api == "builtins.zip" and len(path) > 1 else 0
            if api == "builtins.zip":
                path = (ITER, *path[2:])
            elif self._origins.kind(value.func) is not Kind.PROGRESS:
                return False
            value = value.args[place].value if 0 <= place < len(value.args) else None
        return False

    def _moves(self, read: cst.Name, found: list[Definition]) -> bool:
        """`step += 1`, `weight = weight * 0.99` at each step, where the step does not begin it anew."""
        for change in (d for d in found if self._is_change(d, read)):
            earlier = self._earlier(change, read)
            carried = any(d is change for d in earlier)  # not so in `for x in data: x /= 255`
            if carried and not any(self._begins(d) and not self._is_change(d, read) for d in (*found, *earlier)):
                return True
        return False

    def _is_change(self, definition: Definition, read: cst.BaseExpression) -> bool:
        return not definition.path and definition.value is not None and self._changes(definition.value, read)

    def _earlier(self, change: Definition, read: cst.BaseExpression) -> list[Definition]:
        """What gives the value that a change changes, and that of the changes before it."""
        index, found, todo = self._origins.index, list[Definition](), [change]
        while todo:
            for each in reaching(index, index.probe(change.name, todo.pop().statement)):
                if not any(each is known for known in found):
                    found.append(each)
                    todo += [each] if self._is_change(each, read) else []
        return found

    def _begins(self, definition: Definition) -> bool:
        """Whether a binding is made at every step, not only at some of them."""
        if isinstance(definition.value, cst.AugAssign) or not self._pace.in_step(definition.statement):
            return False
        above = self._origins.index.ancestors(definition.statement)
        kinds = (cst.If, cst.For, cst.While, cst.FunctionDef)
        return not isinstance(next((n for n in above if isinstance(n, kinds)), None), cst.If)

    def _changes(self, value: cst.CSTNode, read: cst.BaseExpression) -> bool:
        """Whether what is assigned at each step is made of what was there before, and of nothing that a batch has."""
        if isinstance(value, cst.AugAssign):
            made = value.target.deep_equals(read) and self._is_fixed(value.value)
        else:
            made = isinstance(value, cst.BinaryOperation | cst.Call) and self._is_made_of(value, read)
        return made and self._pace.in_step(value)

    # --- variables ----------------------------------------------------------------------------------------------------

    @cached_property
    def _assignments(self) -> list[Assignment]:
        """What is assigned to variables at each step."""
        index, found = self._origins.index, list[Assignment]()
        for call in index.calls:
            given, func = [a.value for a in call.args if a.keyword is None and not a.star], call.func
            api = self._origins.names.api(func)
            if api in _SETS and len(given) > 1:
                found.append(Assignment(given[0], given[1], _SETS[api]))
            elif isinstance(func, cst.Attribute) and func.attr.value in _ASSIGNS and given:
                found.append(Assignment(func.value, given[0], func.attr.value == "assign"))
        return [each for each in found if self._pace.in_step(each.value)]

    def _is_assigned(self, read: cst.BaseExpression) -> bool:
        """A variable that is changed by a number, or follows another counter: `step.assign_add(1)` at each step."""
        return any(self._is_same(e.receiver, read) and self._advances(e) for e in self._assignments)

    def _advances(self, change: Assignment) -> bool:
        if change in self._open:
            return False  # of two that follow each other
        self._open.add(change)
        try:
            made = self._is_made_of(change.value, change.receiver) if change.anew else self._is_fixed(change.value)
            return made or self._is_counted(change.value)
        finally:
            self._open.discard(change)

    def _is_same(self, receiver: cst.BaseExpression, read: cst.BaseExpression) -> bool:
        """Whether what is assigned may be the variable that is read."""
        assigned, made = self._makers(receiver), self._makers(read)
        if not made or (assigned and not assigned & made):
            return False
        if assigned or receiver.deep_equals(read):
            return True
        if not isinstance(receiver, cst.Attribute) or not isinstance(read, cst.Attribute):
            return False
        return receiver.attr.value == read.attr.value and is_fitted_model(self._origins, receiver.value)

    def _makers(self, node: cst.BaseExpression) -> set[cst.CSTNode]:
        """The calls that make a variable."""
        calls = [o.node for o in self._origins.of(node) if isinstance(o.node, cst.Call) and not o.path]
        return {c for c in calls if self._origins.kind(c.func) is Kind.VARIABLE or last_name(c.func) in _MAKES}

    def _is_stored_counter(self, node: cst.Attribute) -> bool:
        if node.attr.value == "iterations":
            return Kind.OPTIMIZER in self._origins.kinds(node.value)
        stores = self._origins.index.attribute_stores.get(node.attr.value, ())
        return any(not path and self._changes(value, node) for _, value, path in stores)

    # --- values that are alike at each step ---------------------------------------------------------------------------

    def _is_made_of(self, value: cst.BaseExpression, read: cst.BaseExpression) -> bool:
        return any(n.deep_equals(read) for n in nodes(value)) and self._is_fixed(value, read.deep_equals)

    def _is_counted(self, value: cst.BaseExpression) -> bool:
        """Whether a value is made of a counter, and of nothing that a batch has."""
        return any(self._counts(n) for n in nodes(value)) and self._is_fixed(value, self._counts)

    def _counts(self, node: cst.CSTNode) -> bool:
        return isinstance(node, cst.Name | cst.Attribute) and self._is_counter(node)

    def _is_fixed(self, value: cst.BaseExpression, read: Callable[[cst.CSTNode], bool] = _nothing) -> bool:
        """Whether a value is made of numbers, of what is set before the steps, and of what is `read`."""
        if read(value):
            return True
        if isinstance(value, cst.BinaryOperation):
            return self._is_fixed(value.left, read) and self._is_fixed(value.right, read)
        if isinstance(value, cst.UnaryOperation):
            return self._is_fixed(value.expression, read)
        if isinstance(value, cst.Call):
            api = self._origins.names.api(value.func) or ""
            if isinstance(value.func, cst.Attribute) and value.func.attr.value in _READS and not value.args:
                return self._is_fixed(value.func.value, read)
            plain = api in _ARITHMETIC or (api.startswith(_LIBRARIES) and "random" not in api)
            plain = plain or self._origins.function(value.func) is not None
            return plain and all(self._is_fixed(a.value, read) for a in value.args)
        if isinstance(value, cst.Name | cst.Attribute):
            return self._origins.names.api(value) is not None or self._is_set_before(value)
        return isinstance(value, cst.Integer | cst.Float)

    def _is_set_before(self, node: cst.Name | cst.Attribute) -> bool:
        """Whether a name or an attribute keeps its value through the steps, and is no model, variable or optimizer."""
        if any(kind is not None for kind in self._origins.kinds(node)):
            return False
        if isinstance(node, cst.Attribute):
            stores = self._origins.index.attribute_stores.get(node.attr.value, ())
            if stores:
                return not any(self._pace.in_step(value) for _, value, _ in stores)
            return isinstance(node.value, cst.Name | cst.Attribute) and self._is_set_before(node.value)
        found = reaching(self._origins.index, node)
        return bool(found) and all(self._is_before(d) for d in found)

    def _is_before(self, definition: Definition) -> bool:
        if definition.kind == "param" and isinstance(definition.scope, cst.FunctionDef):
            return not self._pace.in_step(definition.scope.body)
        return definition.kind == "assign" and not self._pace.in_step(definition.statement)


def _begins_anew(condition: cst.If) -> bool:
    """Whether what a condition asks about is set back where it holds: it says whose turn it is."""
    asked = [n for n in nodes(condition.test) if isinstance(n, cst.Name | cst.Attribute)]
    changed: list[cst.CSTNode] = [
        t.target for n in nodes(condition.body) if isinstance(n, cst.Assign) for t in n.targets
    ]
    changed += [
        n.func.value
        for n in nodes(condition.body)
        if isinstance(n, cst.Call) and isinstance(n.func, cst.Attribute) and n.func.attr.value == "assign"
    ]
    return any(one.deep_equals(other) for one in asked for other in changed)


def _applies(call: cst.Call) -> bool:
    return isinstance(call.func, cst.Attribute) and call.func.attr.value in _CONSUMED
