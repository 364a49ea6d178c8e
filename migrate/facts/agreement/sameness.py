"""How a value differs between ranks: not at all, by chance, or because each rank has other examples.

SEMANTICS.md 6: what decides something must be equal on every rank. A value that is equal but for its last bits, or but
for the moment at which it was read (a validation loss over whole data, a clock, a file), becomes equal by taking rank
0's; one that comes from a rank's own examples has to be averaged first.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from enum import Enum

import libcst as cst

from ...catalogue import SAVES, Kind
from ..data import Chain, Datasets, Takings
from ..program import (
    ITER,
    Addition,
    Definition,
    Lengths,
    Origins,
    additions,
    alike,
    argument,
    attribute_additions,
    nodes,
    parses_arguments,
    reaching,
)
from ..training import TrainingLoop

_DP = "tfdp.runtime."
_CHANCE = (
    *("time.", "datetime.", "random.", "numpy.random.", "os.", "glob.", "pathlib.", "tensorflow.train."),
    *("tensorflow.io.", "tensorflow.timestamp", "builtins.id", "builtins.open"),
    *("uuid.", "secrets.", "socket.", "tempfile.", "threading."),
)
_DRAWN = re.compile(r"(tensorflow\.random\.(?!stateless_)|keras\.random\.|keras\.backend\.random)")
_PURE = ("builtins.", "numpy.", "tensorflow.", "keras.", "math.", "statistics.", "collections.", "itertools.", "copy.")
_KINDS = frozenset({"builtins.isinstance", "builtins.hasattr", "builtins.type", "builtins.callable"})
_COUNTS = frozenset({"builtins.len", "numpy.shape", "numpy.size", "tensorflow.shape", "tensorflow.size"})
_DESCRIBES = frozenset({"ndim", "dtype", "name"})
_ENDINGS = ("KeyboardInterrupt", "StopIteration", "OutOfRangeError", "ImportError", "ModuleNotFoundError")
_STEPS = 4000
_Calls = tuple[tuple[cst.FunctionDef, cst.Call], ...]


class Mark(Enum):
    """Why a value may not be the same on all ranks."""

    CHANCE = "equal on all workers but for chance: rank 0's is as good as any"
    DRAWN = "drawn by each worker for itself: rank 0's is as good as any"
    LOCAL = "made from this worker's examples"
    UNKNOWN = "not understood"


Marks = frozenset[Mark]
BY_CHANCE: Marks = frozenset({Mark.CHANCE, Mark.DRAWN})  # settled by asking rank 0
_NONE: Marks = frozenset()


class Sameness:
    """Follows values to the examples that they are made from."""

    def __init__(
        self,
        origins: Origins,
        datasets: Datasets,
        loops: tuple[TrainingLoop, ...],
        dealt: Collection[cst.CSTNode],
        metric: Callable[[cst.Call], Marks | None],
    ) -> None:
        """`dealt` are the places of training data that are dealt; `metric` the marks of `metric.result()`, None for
        any other call."""
        self._origins, self._datasets, self._dealt, self._metric = origins, datasets, dealt, metric
        self._loops = {loop.loop for loop in loops}
        self._averaged = {loop.gradient.call for loop in loops if not loop.gradient.fed}
        self._stepping = {call for loop in loops for call in loop.calls} - self._averaged
        self._taken = {t.call: t.chains for t in Takings(origins, datasets.read).all}
        targets = [loop.gradient.target for loop in loops if loop.gradient.target is not None]
        self._lengths = Lengths(origins, lambda node: bool(datasets.chains(node)))
        self._losses = {o.node for target in targets for o in origins.of(target)}
        self._known: dict[tuple[cst.CSTNode, _Calls], Marks] = {}
        self._busy: set[tuple[cst.CSTNode, _Calls]] = set()
        self._steps = 0
        self.equal: set[cst.CSTNode] = set()  # expressions that the migration makes equal

    def of(self, node: cst.CSTNode, calls: _Calls = ()) -> Marks:
        """Why the value of an expression may differ; empty where it is equal on all ranks."""
        if node in self.equal:
            return _NONE
        if not self._busy:
            self._steps = 0
        key = (node, calls)
        if key in self._known:
            return self._known[key]
        self._steps += 1
        if key in self._busy:
            return _NONE  # a value defined by itself adds nothing
        if self._steps > _STEPS or len(self._busy) > 60 or len(calls) > 8:
            return frozenset({Mark.UNKNOWN})
        self._busy.add(key)
        try:
            found = self._of(node, calls)
        finally:
            self._busy.discard(key)
        if not self._busy:
            self._known[key] = found
        return found

    def forget(self) -> None:
        """Start again, after `equal` has grown."""
        self._known.clear()

    # --- expressions --------------------------------------------------------------------------------------------------

    def _of(self, node: cst.CSTNode, calls: _Calls) -> Marks:
        if node in self._averaged:
            return _NONE
        if self._steps_unseen(node) or node in self._losses or self._slices(node):
            return frozenset({Mark.LOCAL})
        if isinstance(node, cst.Call):
            return self._call(node, calls)
        if isinstance(node, cst.Name):
            return self._name(node, calls)
        if isinstance(node, cst.Attribute):
            return self._attribute(node, calls)
        if isinstance(node, cst.Lambda | cst.FunctionDef | cst.ClassDef | cst.Import | cst.ImportFrom):
            return _NONE
        if isinstance(node, cst.Await | cst.Yield):
            return frozenset({Mark.UNKNOWN})
        return self._all(node.children, calls)

    def _steps_unseen(self, node: cst.CSTNode) -> bool:
        """Whether this takes a training step and gives something of which nothing is known."""
        return node in self._stepping and not (isinstance(node, cst.Call) and self._origins.function(node.func))

    def _slices(self, node: cst.CSTNode) -> bool:
        """`x[i : i + batch]` in a training loop over numbers: its rows are dealt there."""
        if not isinstance(node, cst.Subscript) or not any(isinstance(e.slice, cst.Slice) for e in node.slice):
            return False
        return any(loop in self._loops for loop in self._origins.index.loops_around(node))

    def _all(self, parts: Collection[cst.CSTNode], calls: _Calls) -> Marks:
        return _NONE.union(*(self.of(part, calls) for part in parts))

    def _name(self, node: cst.Name, calls: _Calls) -> Marks:
        if self._origins.names.api(node) is not None or alike(node, self._origins):
            return _NONE
        definitions = reaching(self._origins.index, node)
        found = _NONE.union(*(self._definition(d, calls) for d in definitions))
        return found | self._grown(additions(self._origins, node, definitions), calls)

    def _definition(self, definition: Definition, calls: _Calls) -> Marks:
        if definition.kind in {"import", "def", "class"} or definition.value in self.equal:
            return _NONE
        if definition.kind == "param":
            return self._parameter(definition, calls)
        value = definition.value
        if isinstance(value, cst.AugAssign):
            earlier = self._origins.index.probe(definition.name, value)
            found = self.of(value.value, calls) | self.of(earlier, calls)
        elif value is None:
            return frozenset({Mark.UNKNOWN})
        elif definition.kind in {"for", "comp"}:
            found = self._element(value, definition.path[1:], calls)
        else:
            found = self._component(value, definition.path, calls)
        return found | self.control(definition.statement, calls)

    def _component(self, value: cst.CSTNode, path: tuple[int, ...], calls: _Calls) -> Marks:
        if path and isinstance(value, cst.Tuple | cst.List) and 0 <= path[0] < len(value.elements):
            return self._component(value.elements[path[0]].value, path[1:], calls)
        function = self._origins.function(value.func) if path and isinstance(value, cst.Call) else None
        if function is not None and isinstance(value, cst.Call) and value not in self._averaged and len(calls) < 8:
            if any(f is function for f, _ in calls):
                return self._called_again(value, calls)
            inside = (*calls, (function, value))
            given = self._given(function)
            found = _NONE.union(*(self._component(each, path, inside) for each in given))
            return found.union(*(self.control(each, inside) for each in given))
        return self.of(value, calls)

    def _element(self, iterable: cst.CSTNode, path: tuple[int, ...], calls: _Calls) -> Marks:
        """What iterating gives: of a dataset that is dealt, this rank's examples."""
        trained = frozenset({Mark.LOCAL}) if self._origins.index.parents.get(iterable) in self._loops else _NONE
        if isinstance(iterable, cst.Call):
            api = self._origins.names.api(iterable.func)
            if api == "builtins.enumerate" and path and iterable.args:
                return _NONE if path[0] == 0 else trained | self._element(iterable.args[0].value, path[1:], calls)
            if api == "builtins.zip" and path and 0 <= path[0] < len(iterable.args):
                return self._element(iterable.args[path[0]].value, path[1:], calls)
            if api == "builtins.range":
                return self.of(iterable, calls)
        assert isinstance(iterable, cst.BaseExpression)
        chains = self._datasets.chains(self._datasets.unwrap(iterable))
        if path[:1] == (0,) and chains and all(c.numbered for c in chains):
            return _NONE
        if trained:
            return trained
        return self._batch(chains) if chains else self.of(iterable, calls)

    def _batch(self, chains: tuple[Chain, ...]) -> Marks:
        nodes = {n for c in chains for n in c.nodes}
        dealt = any(c.dealt is not None for c in chains) or any(n in self._dealt for n in nodes)
        return frozenset({Mark.LOCAL if dealt else Mark.CHANCE})

    def _parameter(self, definition: Definition, calls: _Calls) -> Marks:
        function = definition.scope
        if not isinstance(function, cst.FunctionDef):
            return frozenset({Mark.UNKNOWN})
        params = (*function.params.posonly_params, *function.params.params)
        if self._origins.index.enclosing_class(function) is not None and params[:1] == (definition.value,):
            return _NONE  # self: its attributes are asked one by one
        own = next((i for i in range(len(calls) - 1, -1, -1) if calls[i][0] is function), None)
        if own is not None:
            bound = self._origins.bind(calls[own][1], function).get(definition.name)
            return self.of(bound, calls[:own]) if bound is not None else frozenset({Mark.UNKNOWN})
        found = [self._origins.bind(c, function).get(definition.name) for c in self._origins.calls_of(function)]
        if not found or None in found:
            return frozenset({Mark.UNKNOWN})
        return _NONE.union(*(self.of(value) for value in found if value is not None))

    def control(self, statement: cst.CSTNode, calls: _Calls) -> Marks:
        """What decides whether a statement runs; chance alone is settled by asking rank 0 there."""
        child, found = statement, _NONE
        for parent in self._origins.index.ancestors(statement):
            if isinstance(parent, cst.FunctionDef | cst.Lambda | cst.ClassDef):
                break
            if isinstance(parent, cst.If | cst.While) and child is not parent.test:
                found |= self.of(parent.test, calls) - BY_CHANCE
            elif isinstance(parent, cst.For) and child is parent.body and parent not in self._loops:
                found |= self.length(parent.iter, calls) & {Mark.LOCAL}
            elif isinstance(parent, cst.ExceptHandler) and not self._ends(parent):
                tried = cst.ensure_type(self._origins.index.parents[parent], cst.Try).body
                found |= self._all([n for n in nodes(tried) if isinstance(n, cst.Call | cst.Assert)], calls)
            child = parent
        return found

    def _ends(self, handler: cst.ExceptHandler) -> bool:
        """Whether the exception says that there is no more, or that somebody stopped the script."""
        named = list(nodes(handler.type)) if handler.type is not None else []
        return any(isinstance(n, cst.Name) and n.value in _ENDINGS for n in named)

    def length(self, node: cst.CSTNode, calls: _Calls = ()) -> Marks:
        """How many elements there are; batches have as many rows on each rank."""
        found = _NONE
        for each in self._lengths.of(node):
            found |= self.control(each.node, calls) if each.reached else self.of(each.node, calls)
        return found

    def _grown(self, added: Iterator[Addition], calls: _Calls) -> Marks:
        """What is put into a list or dictionary after it was made."""
        found = _NONE
        for each in added:
            found |= self._all(each.values, calls) if each.values is not None else {Mark.UNKNOWN}
            found |= self.control(each.place, calls)
        return found

    def _attribute(self, node: cst.Attribute, calls: _Calls) -> Marks:
        if self._origins.names.api(node) is not None or node.attr.value in _DESCRIBES:
            return _NONE
        if node.attr.value in {"shape", "size"}:
            return self.length(node.value, calls)
        if stored := self._origins.stored(node):
            return self._stores(node, stored, calls)
        kinds = self._origins.kinds(node.value)
        if Kind.OPTIMIZER in kinds:
            return _NONE
        if Kind.CHECKPOINT in kinds:
            made = [o.node for o in self._origins.of(node.value)]
            kept = [argument(m, node.attr.value) for m in made if isinstance(m, cst.Call)]
            return self._all([k.value for k in kept if k is not None], calls)
        if Kind.MODEL in kinds:
            return frozenset({Mark.CHANCE})
        others = self._origins.index.attribute_stores.get(node.attr.value, ())
        return self.of(node.value, calls) | self._stores(node, [(v, p) for _, v, p in others], calls)

    def _stores(self, node: cst.Attribute, stored: list[tuple[cst.CSTNode, tuple[int, ...]]], calls: _Calls) -> Marks:
        index, found = self._origins.index, _NONE
        for value, path in stored:
            if value in self.equal:
                continue
            if isinstance(value, cst.AugAssign):
                found |= self.of(value.value, calls)
            elif ITER not in path:
                found |= self._component(value, path, calls)
            found |= self.control(index.statement_of(value), calls)
        return found | self._grown(attribute_additions(self._origins, node.attr.value), calls)

    # --- calls --------------------------------------------------------------------------------------------------------

    def _call(self, node: cst.Call, calls: _Calls) -> Marks:
        of_metric = self._metric(node)
        if of_metric is not None:
            return of_metric
        if node in self._taken:
            return self._batch(self._taken[node])
        api = self._origins.names.api(node.func)
        arguments = [a.value for a in node.args]
        if api is not None:
            return self._named(api, arguments, calls)
        function = self._origins.function(node.func)
        if function is not None and any(f is function for f, _ in calls):
            return self._called_again(node, calls)
        if function is not None:
            inside = (*calls, (function, node))
            given = self._given(function)
            return self._all(given, inside).union(*(self.control(value, inside) for value in given))
        if parses_arguments(node, self._origins):
            return _NONE
        made_of = self._origins.constructed(node)
        if made_of is not None:  # what `__init__` keeps is asked attribute by attribute
            kept = self._origins.method(made_of, "__init__") is not None
            return _NONE if kept else self._all(arguments, calls)
        made = self._origins.of(node.func)
        if isinstance(node.func, cst.Attribute):
            receiver = self._attribute_receiver(node.func, calls)
        else:  # an object that is called: a model, a loss
            opaque = not made or any(not isinstance(o.node, cst.Call) for o in made)
            receiver = frozenset({Mark.UNKNOWN}) if opaque else _NONE
        return receiver | self._all(arguments, calls)

    def _called_again(self, call: cst.Call, calls: _Calls) -> Marks:
        """What a call adds to the function that it is in: whatever is made of its arguments, however deep it goes."""
        return self._all([a.value for a in call.args], calls)

    def _given(self, function: cst.FunctionDef) -> list[cst.BaseExpression]:
        """What a function returns, or yields."""
        index = self._origins.index
        yields = [n for n in nodes(function.body) if isinstance(n, cst.Yield)] if function in index.generators else []
        own = [n.value for n in yields if index.enclosing_function(n) is function]
        values = [*(r.value for r in index.returns[function]), *own]
        return [v.item if isinstance(v, cst.From) else v for v in values if v is not None]

    def _attribute_receiver(self, func: cst.Attribute, calls: _Calls) -> Marks:
        kinds = self._origins.kinds(func.value)
        if Kind.CHECKPOINT in kinds and func.attr.value in SAVES[Kind.CHECKPOINT]:
            return _NONE  # the path, which rank 0 gives to all
        if kinds & {Kind.MODEL, Kind.OPTIMIZER, Kind.CHECKPOINT}:
            return frozenset({Mark.CHANCE})
        return self.of(func.value, calls)

    def _named(self, api: str, arguments: list[cst.BaseExpression], calls: _Calls) -> Marks:
        if api.startswith(_DP):
            return frozenset({Mark.LOCAL}) if api in {f"{_DP}rank", f"{_DP}local_rank", f"{_DP}rank_seed"} else _NONE
        if api in _KINDS:
            return _NONE
        if api in _COUNTS and arguments:
            return self.length(arguments[0], calls)
        if api == "tensorflow.Variable":  # whatever changes it may be out of sight
            return (self._all(arguments, calls) - BY_CHANCE) | {Mark.CHANCE}  # it starts as rank 0's
        if api in {"builtins.input", "builtins.next", "builtins.iter"}:
            return frozenset({Mark.UNKNOWN})
        found = self._all(arguments, calls)
        if _DRAWN.match(api):
            return found | {Mark.DRAWN}
        if api.startswith(_CHANCE):
            return found | {Mark.CHANCE}
        return found if api.startswith(_PURE) else found | {Mark.UNKNOWN}
