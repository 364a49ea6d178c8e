"""Whether a value is the same on all workers, and if not, why: the domain of every question about decisions."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterable, Iterator

import libcst as cst

from ...catalogue import SAVES, Kind
from ..apis import (
    ASSIGNS,
    CHANCE,
    COUNTS,
    DRAWN,
    HASHES,
    MAKES_SET,
    OF_KIND,
    OWN,
    PROCESS,
    PURE,
    SETTLES_ORDER,
    TAKES_FUNCTION,
    UNASKED,
)
from ..data import Chain, Datasets, NextBatches
from ..program import (
    Addition,
    Definition,
    Evaluator,
    Frames,
    Origins,
    argument,
    is_none,
    leading,
    method,
    nodes,
    parses_arguments,
    receiver,
    tests_around,
)
from ..training import TrainingLoop
from .exceptions import Exceptions
from .lengths import Lengths
from .lookups import of_classes, runs
from .marks import BY_CHANCE, BY_PROCESS, SAME, Mark, Marks
from .orders import alike, elements_alike

_DP = "tfdp.runtime."
_DESCRIBES = frozenset({"ndim", "dtype", "name"})
_UNKNOWN: Marks = frozenset({Mark.UNKNOWN})
_LOCAL: Marks = frozenset({Mark.LOCAL})
_ORDER: Marks = frozenset({Mark.ORDER})


class Sameness(Evaluator[Marks]):
    """Follows values to the examples that they are made from."""

    nothing = SAME
    unknown = _UNKNOWN

    def __init__(
        self,
        origins: Origins,
        datasets: Datasets,
        loops: tuple[TrainingLoop, ...],
        sharded: Collection[cst.CSTNode],
        *,
        metric: Callable[[cst.Call], Marks | None],
        shared: Collection[cst.Param] = frozenset(),
        own: Collection[cst.Param] = frozenset(),
    ) -> None:
        """`sharded` are the places of training data that are sharded; `metric` the marks of `metric.result()`, None for
        any other call; `shared` parameters that Keras gives the same value on all workers, `own` those that it gives
        what a worker's own examples make."""
        super().__init__(origins)
        self._datasets, self._sharded, self._metric, self._shared = datasets, sharded, metric, shared
        self._own = own
        self._loops = {loop.loop for loop in loops}
        self._averaged = {loop.gradient.call for loop in loops if not loop.gradient.fed}
        self._stepping = {call for loop in loops for call in loop.calls} - self._averaged
        self._taken = {t.call: t.chains for t in NextBatches(origins, datasets.read).all}
        targets = [loop.gradient.target for loop in loops if loop.gradient.target is not None]
        self._losses = {o.node for t in targets for o in origins.of(t) if not is_none(origins, o.node)}
        self._lengths = Lengths(origins, self._is_data, self.of, self.reached)
        self._exceptions = Exceptions(origins, self.of)
        self.equal: set[cst.CSTNode] = set()  # expressions that the migration makes equal

    def forget(self) -> None:
        """Start again, after `equal` has grown."""
        super().forget()
        self._lengths.forget()

    def join(self, values: Iterable[Marks]) -> Marks:
        """Every reason that one of them has."""
        return SAME.union(*values)

    def after(self, made_equal: Collection[cst.CSTNode]) -> Sameness:
        """The same questions once more has been made equal."""
        later = copy.copy(self)
        later.equal = self.equal.union(made_equal)
        later.fresh()
        later._lengths = Lengths(self._origins, self._is_data, later.of, later.reached)
        later._exceptions = Exceptions(self._origins, later.of)
        return later

    def beneath(self, made_equal: Collection[cst.CSTNode]) -> Sameness:
        """The same after more has been made equal; of batches and losses, what else they are made of is told, too."""
        deeper = self.after(made_equal)
        deeper._loops, deeper._losses = set(), set()
        return deeper

    def differing(self, place: cst.CSTNode) -> cst.CSTNode | None:
        """The first test around a place, in its own function, that is not the same on all workers."""
        return next((test for test in tests_around(place, self._origins) if self.of(test)), None)

    def length(self, node: cst.CSTNode, frames: Frames = ()) -> Marks:
        """Why the number of elements may differ; batches have as many rows on each worker."""
        return self._lengths.of(node, frames) - _ORDER

    def _is_data(self, node: cst.CSTNode) -> bool:
        return bool(self._datasets.chains(node))

    # --- what is known ------------------------------------------------------------------------------------------------

    def exempt(self, value: cst.CSTNode) -> bool:
        """What the migration makes equal is equal wherever it is bound."""
        return value in self.equal

    def known(self, node: cst.CSTNode, frames: Frames) -> Marks | None:
        """Losses and what training steps give are the worker's own, averaged gradients are not."""
        if node in self.equal or node in self._averaged:
            return SAME
        if self._steps_unseen(node) or node in self._losses or self._slices(node):
            return _LOCAL
        if isinstance(node, cst.Call):
            of_metric = self._metric(node)
            return self._batch(self._taken[node]) if of_metric is None and node in self._taken else of_metric
        if isinstance(node, cst.Attribute) and node.attr.value in _DESCRIBES:
            return SAME
        if isinstance(node, cst.Attribute) and node.attr.value in {"shape", "size"}:
            return SAME if self._origins.names.api(node) is not None else self.length(node.value, frames)
        return None

    def _steps_unseen(self, node: cst.CSTNode) -> bool:
        """Whether this takes a training step and gives something of which nothing is known."""
        return node in self._stepping and not (isinstance(node, cst.Call) and self._origins.function(node.func))

    def _slices(self, node: cst.CSTNode) -> bool:
        """`x[i : i + batch]` in a training loop over numbers: its rows are sharded there."""
        if not isinstance(node, cst.Subscript) or not any(isinstance(e.slice, cst.Slice) for e in node.slice):
            return False
        return any(loop in self._loops for loop in self._index.loops_around(node))

    def parameter(self, definition: Definition, frames: Frames) -> Marks | None:  # noqa: ARG002
        """The epoch, its averaged logs, the present learning rate; the logs of a batch, and examples, where Keras gives
        them."""
        if definition.value in self._shared:
            return SAME
        function = definition.scope
        called = isinstance(function, cst.FunctionDef) and self._origins.calls_of(function)
        return _LOCAL if definition.value in self._own and not called else None

    # --- what operations do -------------------------------------------------------------------------------------------

    def compound(self, node: cst.CSTNode, frames: Frames) -> Marks:
        """What is made of values differs as they do; whether one is None, or has a key, as what decides that it is."""
        if isinstance(node, cst.Comparison) and _asks_what_there_is(node):
            sides = (node.left, *(c.comparator for c in node.comparisons))
            return SAME.union(*(self.length(side, frames) for side in sides))
        found = self.all(node.children, frames)
        if isinstance(node, cst.Comparison):
            return found - _ORDER
        sets = isinstance(node, cst.Set | cst.SetComp) and not elements_alike(self._origins, node)
        return found | _ORDER if sets else found

    def iterated(self, iterable: cst.BaseExpression, path: tuple[int, ...], frames: Frames) -> Marks:
        """What iterating gives: of a dataset that is sharded, this worker's examples."""
        if isinstance(iterable, cst.Call) and self._origins.names.api(iterable.func) == "builtins.range":
            # All workers take as many steps: in a training loop only where counting starts, and by what, can differ.
            steps = self._index.parents.get(iterable) in self._loops
            told = [iterable.args[i] for i in (0, 2) if len(iterable.args) > max(i, 1)] if steps else iterable.args
            return self.all((a.value for a in told), frames)
        chains = self._datasets.chains(self._datasets.unwrap(iterable))
        if path[:1] == (0,) and self._numbered(iterable):
            return SAME
        return self._batch(chains) if chains else self.of(iterable, frames)

    def element(self, iterable: cst.CSTNode, path: tuple[int, ...], frames: Frames) -> Marks:
        """In a training loop, what is not its counter is the worker's own."""
        trained = self._index.parents.get(iterable) in self._loops
        return super().element(iterable, path, frames) if not trained or self._counts(iterable, path) else _LOCAL

    def _counts(self, iterable: cst.CSTNode, path: tuple[int, ...]) -> bool:
        """Whether elements of what a training loop goes over are told apart: numbers, or several iterables."""
        api = self._origins.names.api(iterable.func) if isinstance(iterable, cst.Call) else None
        numbered = path[:1] == (0,) and (api == "builtins.enumerate" or self._numbered(iterable))
        return numbered or api == "builtins.range" or (api == "builtins.zip" and bool(path))

    def _numbered(self, iterable: cst.CSTNode) -> bool:
        assert isinstance(iterable, cst.BaseExpression)
        chains = self._datasets.chains(self._datasets.unwrap(iterable))
        return bool(chains) and all(c.numbered for c in chains)

    def _batch(self, chains: tuple[Chain, ...]) -> Marks:
        nodes_of = {n for c in chains for n in c.nodes}
        sharded = any(c.sharded is not None for c in chains) or any(n in self._sharded for n in nodes_of)
        return frozenset({Mark.LOCAL if sharded else Mark.CHANCE})

    def reached(self, place: cst.CSTNode, frames: Frames) -> Marks:
        """What decides whether a statement runs; chance alone is settled by asking rank 0 there."""
        child, found = place, SAME
        for parent in self._index.ancestors(place):
            if isinstance(parent, cst.FunctionDef | cst.Lambda | cst.ClassDef):
                break
            if isinstance(parent, cst.If | cst.While) and child is not parent.test:
                found |= self.of(parent.test, frames) - BY_CHANCE
            elif isinstance(parent, cst.Match) and child is not parent.subject:
                found |= self.of(parent.subject, frames) - BY_CHANCE
            elif isinstance(parent, cst.For) and child is parent.body and parent not in self._loops:
                found |= self.length(parent.iter, frames)
            elif isinstance(parent, cst.ExceptHandler) and not self._exceptions.ends(parent):
                tried = cst.ensure_type(self._index.parents[parent], cst.Try).body
                found |= self.all([n for n in nodes(tried) if isinstance(n, cst.Call | cst.Assert)], frames)
            child = parent
        return found | _LOCAL if any(map(self._repeats, self.raising(place, frames))) else found

    def _repeats(self, call: cst.CSTNode) -> bool:
        """Whether a place is in a loop, also one around a call of its function."""
        return any(self._index.loops_around(each) for each in leading(self._origins, [call]))

    def raising(self, place: cst.CSTNode, frames: Frames = ()) -> Iterator[cst.CSTNode]:
        """What, before a place in its own function or at it, may raise by this worker's examples, where the function
        goes on after that."""
        return self._exceptions.before(place, frames)

    def added(self, addition: Addition, frames: Frames) -> Marks:
        """What is put into a container, or the order that `values.sort(key=…)` gives it."""
        by = self._by_functions(addition.place, frames) if isinstance(addition.place, cst.Call) else SAME
        return super().added(addition, frames) | by

    # --- attributes and calls -----------------------------------------------------------------------------------------

    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> Marks:
        """Of an optimizer the same; of a model equal but for chance; else as its object, and all that is stored."""
        kinds = self._origins.kinds(node.value)
        if Kind.OPTIMIZER in kinds:
            return SAME
        if Kind.CHECKPOINT in kinds:
            made = [o.node for o in self._origins.of(node.value)]
            kept = [argument(m, node.attr.value) for m in made if isinstance(m, cst.Call)]
            return self.all([k.value for k in kept if k is not None], frames)
        if Kind.MODEL in kinds:
            return frozenset({Mark.CHANCE})
        others = self._index.attribute_stores.get(node.attr.value, ())
        found = self.of(node.value, frames) | self.stores(node, [(v, p) for _, v, p in others], frames)
        in_class = self.join(map(self.definition, of_classes(self._origins, node)))
        return found | (in_class & BY_PROCESS)

    def object_call(self, call: cst.Call, frames: Frames) -> Marks:
        """A method as its object and its arguments, an object that is called as its arguments."""
        if parses_arguments(call, self._origins):
            return SAME
        arguments = [a.value for a in call.args]
        made_of = self._origins.constructed(call)
        if made_of is not None:  # what `__init__` keeps is asked attribute by attribute
            kept = self._origins.method(made_of, "__init__") is not None
            return self.state(made_of) if kept else self.state(made_of) | self.all(arguments, frames)
        found = self._callee(call.func, frames) | self.all(arguments, frames)
        if method(call) == "__hash__" and not alike(self._origins, receiver(call)):
            return found | {Mark.PROCESS}
        return found | (self._run(call.func, frames) & BY_PROCESS)

    def _run(self, func: cst.BaseExpression, frames: Frames) -> Marks:
        """What is given by functions of the file that a call names in another way than by their names."""
        return self.join(self.all(self._index.given_back(f), frames) for f in runs(self._origins, func))

    def _callee(self, func: cst.BaseExpression, frames: Frames) -> Marks:
        """What an object adds whose method is called, or that is called itself: a model, a loss."""
        made = self._origins.of(func)
        if isinstance(func, cst.Attribute) and all(o.node is func for o in made):
            return self._receiver(func, frames)
        opaque = not made or any(not isinstance(o.node, cst.Call) for o in made)
        return _UNKNOWN if opaque else self.of(func, frames)

    def _receiver(self, func: cst.Attribute, frames: Frames) -> Marks:
        kinds = self._origins.kinds(func.value)
        if Kind.CHECKPOINT in kinds and func.attr.value in SAVES[Kind.CHECKPOINT]:
            return SAME  # the path, which rank 0 gives to all
        if kinds & {Kind.MODEL, Kind.OPTIMIZER, Kind.CHECKPOINT}:
            return frozenset({Mark.CHANCE})
        return self.of(func.value, frames)

    def named_call(self, call: cst.Call, api: str, frames: Frames) -> Marks:
        """What a function of a library gives, by the tables above."""
        arguments = [a.value for a in call.args]
        if api.startswith(_DP):
            return _LOCAL if api in OWN else SAME
        if api in OF_KIND:
            return SAME
        if api in COUNTS and arguments:
            return self.length(arguments[0], frames)
        if api == "tensorflow.Variable":
            return self._variable(call, arguments, frames)
        found = self.all(arguments, frames)
        if api in UNASKED:
            return found | _UNKNOWN
        if api == "builtins.exec":  # the names that it binds may be given anything
            return _LOCAL | _UNKNOWN
        found |= self._by_functions(call, frames) if TAKES_FUNCTION.match(api) else SAME
        if api == HASHES:
            return found if all(alike(self._origins, a) for a in arguments) else found | {Mark.PROCESS}
        if api in MAKES_SET:
            return found if all(elements_alike(self._origins, a) for a in arguments) else found | _ORDER
        if api in SETTLES_ORDER and not any(a.keyword is not None and a.keyword.value == "key" for a in call.args):
            return found - _ORDER
        if PROCESS.match(api):
            return found | {Mark.PROCESS, *([Mark.DRAWN] if DRAWN.match(api) else [])}
        if DRAWN.match(api):
            return found | {Mark.DRAWN}
        if CHANCE.match(api):
            return found | {Mark.CHANCE}
        return found if PURE.match(api) else found | {Mark.UNKNOWN}

    def _by_functions(self, call: cst.Call, frames: Frames) -> Marks:
        """What the functions that a call is given make for each process: `sorted(x, key=lambda each: uuid4().int)`."""
        found = SAME
        for value in (a.value for a in call.args):
            named = self._origins.names.api(value) or ""
            if named == HASHES or PROCESS.match(named):
                return frozenset({Mark.PROCESS})
            function = value if isinstance(value, cst.Lambda) else self._origins.function(value)
            found |= self.all(self._index.given_back(function), frames) if function is not None else SAME
        return found & BY_PROCESS

    def _variable(self, made: cst.Call, arguments: list[cst.BaseExpression], frames: Frames) -> Marks:
        """A variable of integers is trained by nothing, and is what is assigned to it; else what changes it may be out
        of sight, but it starts as rank 0's."""
        if not arguments or not isinstance(arguments[0], cst.Integer):
            return (self.all(arguments, frames) - BY_CHANCE) | {Mark.CHANCE}
        changes = self._index.methods(*ASSIGNS)
        own = [c for c in changes if any(o.node is made for o in self._origins.of(receiver(c)))]
        return self.join(self.all((a.value for a in c.args), frames) | self.reached(c, frames) for c in own)


def _asks_what_there_is(test: cst.Comparison) -> bool:
    """`mask is not None`, `"labels" in batch`."""
    kinds = {type(c.operator) for c in test.comparisons}
    named = kinds <= {cst.In, cst.NotIn} and isinstance(test.left, cst.SimpleString)
    return named or kinds <= {cst.Is, cst.IsNot}
