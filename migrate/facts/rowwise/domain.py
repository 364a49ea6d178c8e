"""Whether every row of a value is made of the same row of the batch alone: one answer for all code around a model."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import replace
from typing import cast

import libcst as cst

from ...catalogue import Kind
from ..apis import ASSIGNS, CALLED, EXCHANGES, LAMBDA, LAYER_MODULES, MERGES, OF_CALLS, PERMUTES, SAME_ROWS
from ..data import Chain, Datasets
from ..program import (
    ITER,
    LAYERS,
    Addition,
    Definition,
    Evaluator,
    Frames,
    Origins,
    frame_of,
    holds_weights,
    is_network,
    method,
    receiver,
    tests_around,
)
from . import batches, layers
from . import values as rows
from .callees import callees, starred, wrappers
from .calls import TensorCalls
from .subscripts import subscript
from .values import Of, Value

_Function = cst.FunctionDef | cst.Lambda
_STARTS = ("__init__", "build", "get_config", "from_config")


class Rowwise(Evaluator[Value]):
    """Follows the batch's rows through code that is not Keras' or TensorFlow's.

    `given` are parameters that are known to be batches, `batches` expressions that are, and `trained` says how many
    axes the examples have that a model is first given.
    """

    nothing = rows.NOTHING
    unknown = rows.UNKNOWN
    settles = True

    def __init__(
        self,
        origins: Origins,
        datasets: Datasets,
        given: Mapping[cst.CSTNode, Value],
        batches: Collection[cst.CSTNode] = frozenset(),
    ) -> None:
        super().__init__(origins)
        self._datasets, self._given, self._batches = datasets, given, batches
        self._calls = TensorCalls(origins, self.of)

    def join(self, values: Iterable[Value]) -> Value:
        """A value that may be any of these."""
        return rows.join(values)

    # --- what is known ------------------------------------------------------------------------------------------------

    def known(self, node: cst.CSTNode, frames: Frames) -> Value | None:
        """Batches that are taken of arrays, and what Keras' models are given."""
        if node in self._batches:
            return batches.of_array(lambda n: self.of(n, frames), node)
        if node in self._given and not isinstance(node, cst.Param):
            return self._given[node]
        if isinstance(node, cst.Call) and self._origins.called(node) in {"keras.Input", "keras.layers.Input"}:
            return batches.of_input(self._origins, node)
        return None

    def reached(self, place: cst.CSTNode, frames: Frames) -> Value:
        """A value that is chosen by all examples of the batch."""
        for test in tests_around(place, self._origins):
            found = self.of(test, frames)
            if found.of is Of.WHOLE:
                return rows.mixed(test, "decides by all examples of the batch what becomes of each", found.why)
        return rows.NOTHING

    def definition(self, definition: Definition, frames: Frames = ()) -> Value:
        """What one binding gives a name."""
        if definition.kind == "param":
            return self._param(definition, frames)
        return super().definition(definition, frames)

    def _param(self, definition: Definition, frames: Frames) -> Value:
        function, node = definition.scope, definition.value
        inner = frame_of(frames, function)
        if inner is not None and isinstance(function, _Function):
            if node is not None and self._origins.is_self(definition):
                return rows.NOTHING
            bound = self._origins.bind(frames[inner][1], function).get(definition.name)
            if bound is not None:
                return self.of(bound, frames[:inner])
            return self._unbound(definition)
        told = self._given.get(node) if node is not None else None
        if isinstance(function, cst.Lambda):
            return told or self._unbound(definition)
        found = super().definition(definition, frames)
        if told is not None:
            if not rows.has_rows(found):
                return told
            return replace(told, axis=found.axis, rank=found.rank, base=found.base, several=found.several)
        if found.of is Of.UNKNOWN and found.why is None:
            return self._starred(definition) or self._unbound(definition)
        return found

    def _starred(self, definition: Definition) -> Value | None:
        """What calls that pass one value by a star give a parameter: `step(*next(batches))`."""
        given = starred(self._origins, definition)
        return self.join(self.component(value, (place,), ()) for value, place in given) if given else None

    def _returned(self, call: cst.Call, function: cst.FunctionDef, path: tuple[int, ...], frames: Frames) -> Value:
        """Of a function with a decorator of this file, what that makes of it, where that can be followed."""
        found = super()._returned(call, function, path, frames)
        around = wrappers(self._origins, function)
        if not around or any(entered in around for entered, _ in frames):
            return found
        outer = self.join(super(Rowwise, self)._returned(call, each, path, frames) for each in around)
        return found if outer.of is Of.UNKNOWN else outer

    def applied(self, handed: cst.BaseExpression) -> Value:
        """What a library's function makes of a batch that stands for itself, also with some of its arguments given."""
        return self._calls.applied(handed)

    def _unbound(self, definition: Definition) -> Value:
        """A parameter that no call of the file gives a value."""
        function = definition.scope
        settled = isinstance(function, cst.FunctionDef) and function.name.value in _STARTS
        if settled or definition.name in OF_CALLS or definition.value is None:
            return rows.FREE
        return rows.unknown(definition.value, "is given by no call that is followed")

    # --- operators ----------------------------------------------------------------------------------------------------

    def compound(self, node: cst.CSTNode, frames: Frames) -> Value:
        """What operators make of rows."""
        if isinstance(node, cst.BaseNumber | cst.BaseString):
            return rows.NUMBER
        if isinstance(node, cst.BinaryOperation):
            sides = (self.of(node.left, frames), self.of(node.right, frames))
            return (
                rows.product(node, *sides) if isinstance(node.operator, cst.MatrixMultiply) else self._both(node, sides)
            )
        if isinstance(node, cst.UnaryOperation):
            return self.of(node.expression, frames)
        if isinstance(node, cst.Comparison):
            if any(isinstance(c.operator, cst.Is | cst.IsNot | cst.In | cst.NotIn) for c in node.comparisons):
                return rows.FREE
            return rows.elementwise(
                node, [self.of(n, frames) for n in (node.left, *(c.comparator for c in node.comparisons))]
            )
        if isinstance(node, cst.IfExp):
            test, found = self.of(node.test, frames), self.all((node.body, node.orelse), frames)
            if test.of is Of.WHOLE and not rows.is_free(found):
                return rows.mixed(node.test, "decides by all examples of the batch what becomes of each", test.why)
            return found
        if isinstance(node, cst.NamedExpr):
            return self.of(node.value, frames)
        if isinstance(node, cst.Subscript):
            found = subscript(self._origins, node, self.of(node.value, frames), lambda n: self.of(n, frames))
            return self.join((found, *(self.of(value, frames) for value in self._entries(node))))
        if isinstance(node, cst.Tuple | cst.List | cst.Set | cst.Dict):
            return replace(self.all((e.value for e in node.elements), frames), several=True)
        if isinstance(node, cst.ListComp | cst.GeneratorExp | cst.SetComp):
            return replace(self.of(node.elt, frames), several=True)
        if isinstance(node, cst.DictComp):
            return replace(self.of(node.value, frames), several=True)
        return self.all((c for c in node.children if isinstance(c, cst.BaseExpression)), frames)

    def _of(self, node: cst.CSTNode, frames: Frames) -> Value:
        """A row of a call's tensor is no part of several values."""
        if isinstance(node, cst.Subscript) and isinstance(node.value, cst.Call):
            whole = self.of(node.value, frames)
            if rows.has_rows(whole) and not whole.several:
                return self.compound(node, frames)
        return super()._of(node, frames)

    def _entries(self, node: cst.Subscript) -> list[cst.CSTNode]:
        """What is put under a name into what a function is given: `batch["x"] = …`."""
        key = node.slice[0].slice
        if not isinstance(key, cst.Index) or not isinstance(key.value, cst.SimpleString):
            return []
        function, stores = self._index.enclosing_function(node), self._index.subscript_stores.items()
        own = [(t, v) for t, v in stores if t is not node and self._index.enclosing_function(t) is function]
        same = (v for target, v in own if target.deep_equals(node))
        return [value for value in same if isinstance(value, cst.BaseExpression)]

    def _both(self, node: cst.BinaryOperation, sides: tuple[Value, Value]) -> Value:
        lists = [v for v in sides if v.several or v.of is Of.SHAPE]
        if isinstance(node.operator, cst.Add) and len(lists) > 1:
            return replace(rows.join(sides), several=True)  # lists put together
        return rows.elementwise(node, sides)

    def changed(self, statement: cst.AugAssign, earlier: cst.Name, frames: Frames) -> Value:
        """What `name -= value` makes."""
        sides = (self.of(earlier, frames), self.of(statement.value, frames))
        if isinstance(statement.operator, cst.MatrixMultiplyAssign):
            return rows.product(statement, *sides)
        return rows.elementwise(statement, sides)

    def added(self, addition: Addition, frames: Frames) -> Value:
        """What is put in: as the rest, where it is understood."""
        if method(addition.place) in ASSIGNS:  # what changes variables is asked elsewhere
            return rows.NOTHING
        if method(addition.place) == "shuffle":
            return rows.moved(addition.place, rows.made(0, 1, rows.UNRANKED), addition.place, "shuffles its rows")
        values = (v for v in addition.values if isinstance(v, cst.BaseExpression))
        return self.join((self.all(values, frames), self.reached(addition.place, frames)))

    def component(self, value: cst.CSTNode, path: tuple[int, ...], frames: Frames) -> Value:
        """What unpacking gives: one of several values, a number of a shape, or a row."""
        found = super().component(value, path, frames)
        if not path or path[0] == ITER:
            return found
        if found.of is Of.SHAPE:
            return self.dimension(found, path[0])
        if found.of is Of.MOVED and found.several and found.why is not None and found.why.node is value:
            return replace(found, several=False, order=found.order | {path})  # a part of a batch
        if found.several or not rows.has_rows(found) or isinstance(value, cst.Tuple | cst.List):
            return replace(found, several=found.several and len(path) > 1) if rows.has_rows(found) else found
        if not isinstance(value, cst.Call):
            return found  # of a parameter: a list of inputs, as a batch of any size cannot be unpacked
        if self._origins.names.api(value.func) is None:
            return found  # of what is returned, that place was asked about
        return rows.moved(value, found, path)

    def dimension(self, shape: Value, place: int) -> Value:
        """A number of a shape."""
        return replace(rows.SIZE, why=shape.why) if rows.is_batch(shape, place) else Value(Of.FREE)

    def iterated(self, iterable: cst.BaseExpression, path: tuple[int, ...], frames: Frames) -> Value:
        """An element of what a loop goes over: a batch, one of several values, or a single example."""
        made = self._origins.made(iterable)
        wraps = isinstance(made, cst.Call) and self._origins.kind(made.func) is Kind.PROGRESS
        if isinstance(made, cst.Call) and made.args and (wraps or made is not iterable) and self._counts(made, wraps):
            return self.element(made.args[0].value if wraps else made, path, frames)
        chains = self._datasets.read(self._datasets.unwrap(iterable)) if self._may_hold_data(iterable) else ()
        if chains:
            numbered = path[:1] == (0,) and all(c.numbered for c in chains)
            return rows.NUMBER if numbered else self.join(self.batch(chain, path) for chain in chains)
        found = self.of(iterable, frames)
        if found.of is Of.SIZE:
            return rows.FREE
        if not rows.has_rows(found) or found.several:
            return found
        if rows.is_batch(found, 0):
            return rows.unknown(iterable, "is gone over example by example", found.why)
        return replace(found, axis=found.axis - 1, rank=found.rank - 1)

    def _counts(self, made: cst.Call, wraps: bool) -> bool:
        """Whether a call gives batches with their numbers, or with others."""
        inner = self._origins.made(made.args[0].value) if wraps else made
        return self._origins.called(inner) in {"builtins.enumerate", "builtins.zip"}

    def batch(self, chain: Chain, path: tuple[int, ...]) -> Value:
        """A batch that a dataset gives, or a part of it."""
        return batches.of_chain(self._origins, self.of, chain, path)

    def _may_hold_data(self, iterable: cst.BaseExpression) -> bool:
        """Whether what a loop goes over may be a dataset: not what is written out, or counts."""
        return not isinstance(iterable, cst.List | cst.Tuple) and self._origins.called(iterable) != "builtins.range"

    # --- attributes and calls -----------------------------------------------------------------------------------------

    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> Value:
        """Of a tensor its shape, or itself in another form; of anything else what it is made of."""
        found = self.of(node.value, frames)
        name = node.attr.value
        if name == "shape":
            return self._calls.counted(node, ".shape", found)
        if name in {"dtype", "ndim", "name", "device"} or rows.is_free(found):
            return rows.FREE
        if name == "T":
            return rows.transposed(node, found, ())
        return found

    def named_call(self, call: cst.Call, api: str, frames: Frames) -> Value:
        """What a function of a library makes of rows, by the tables."""
        if api == "builtins.next" and call.args:
            inside = self._datasets.unwrap(call.args[0].value)
            return rows.BATCH if self._datasets.read(inside) else self.iterated(call.args[0].value, (), frames)
        if api == "builtins.enumerate" and call.args:
            return self.of(call.args[0].value, frames)
        if api.startswith("keras.layers.") and api.rpartition(".")[2] in MERGES:
            return layers.joined(call, self._given_values(call, frames), None)
        if api.startswith(LAYERS) or self._origins.kind(call.func) is Kind.MODEL:
            return rows.FREE  # the layer itself
        if api == "builtins.super":
            return rows.NOTHING
        if api in EXCHANGES and call.args:
            found = self.of(call.args[0].value, frames)
            return rows.FREE if found.of is Of.WHOLE or rows.has_rows(found) else found  # the same on all workers
        return self._calls.of(call, api, frames)

    def _given_values(self, call: cst.Call, frames: Frames) -> list[Value]:
        """The values of arguments, each of several that are written out by itself."""
        found: list[Value] = []
        for arg in call.args:
            made = self._origins.made(arg.value)
            if arg.keyword is not None and arg.keyword.value in OF_CALLS:
                continue
            if isinstance(made, cst.List | cst.Tuple):
                found += [self.of(e.value, frames) for e in made.elements]
            else:
                found.append(self.of(arg.value, frames))
        return found

    def object_call(self, call: cst.Call, frames: Frames) -> Value:
        """A method of a tensor, or an object that is called: a layer, a model, a function of the file."""
        func = call.func
        if isinstance(func, cst.Attribute) and self._is_plain(func):
            if self._origins.is_super(func.value):
                return layers.of_model(call, self._given_values(call, frames))
            if method(call) == "gradient" and Kind.TAPE in self._origins.kinds(func.value) and len(call.args) > 1:
                return rows.gradient(call, self.of(call.args[0].value, frames), self.of(call.args[1].value, frames))
            value = self.of(func.value, frames)
            if not rows.is_free(value) or method(call) in SAME_ROWS | {"reshape"}:
                return self._calls.method(call, method(call), value, frames)
            if method(call) == "write" and len(call.args) == 2:  # of a TensorArray
                return self.of(call.args[1].value, frames)
            drawn = self._calls.drawn(call, method(call), frames)
            if drawn is not None:
                return drawn
            given = self._given_values(call, frames)
            if method(call) in PERMUTES and given and given[0].of in {Of.SIZE, Of.PLACES}:
                return replace(given[0], of=Of.PLACES)
        owner = self._origins.class_of(func)
        if owner is not None and self._origins.constructed(call) is None:
            return self._own(call, owner, frames)
        found = [self._called(call, made, frames) for made in callees(self._origins, func)]
        return self.join(found) if found else self._other(call, frames)

    def lambda_call(self, call: cst.Call, function: cst.Lambda, frames: Frames) -> Value:  # noqa: ARG002
        """As of other functions, by the arguments of this call."""
        return self.object_call(call, frames)

    def _is_plain(self, func: cst.Attribute) -> bool:
        """Whether nothing of the file is known that the attribute stands for."""
        return all(o.node is func for o in self._origins.of(func))

    def _called(self, call: cst.Call, made: cst.CSTNode, frames: Frames) -> Value:
        if isinstance(made, cst.Lambda):
            return self.of(made.body, (*frames, (cast("cst.FunctionDef", made), call)))
        if isinstance(made, cst.FunctionDef):
            return self._returned(call, made, (), frames)
        if not isinstance(made, cst.Call):
            return self._other(call, frames)
        owner = self._origins.constructed(made)
        if owner is not None:
            return self._own(call, owner, frames)
        if self._origins.called(made) == LAMBDA and made.args:
            return self._called(call, self._origins.made(made.args[0].value), frames)
        if self._origins.called(made).startswith(LAYER_MODULES):
            found = layers.stock(self._origins, call, made, self._given_values(call, frames))
            functions = [f for a in made.args if isinstance(f := self._origins.made(a.value), _Function)]
            inside = self.join(self._called(call, function, frames) for function in functions)
            told = self.all(r for f in functions for r in self._index.returned(f))  # asked by itself, too
            return inside if inside.of is Of.MIXED and told.of is not Of.MIXED else found
        if self._origins.kind(made.func) is Kind.LOSS_CLASS:
            return layers.of_loss(call, made, self._given_values(call, frames))
        if self._origins.kind(made.func) is Kind.MODEL or self._origins.called(made).startswith(LAYERS):
            return layers.of_model(call, self._given_values(call, frames))
        if self._origins.called(made) == "keras.activations.get":
            return rows.elementwise(call, self._given_values(call, frames))
        return self._other(call, frames)

    def _own(self, call: cst.Call, owner: cst.ClassDef, frames: Frames) -> Value:
        """An object of a class of the file that is called."""
        run = next((m for name in CALLED if (m := self._origins.method(owner, name)) is not None), None)
        if run is not None and not any(function is run for function, _ in frames):
            return self._returned(call, run, (), frames)
        given = self._given_values(call, frames)
        return layers.of_model(call, given) if is_network(self._origins, owner) else self._other(call, frames)

    def _other(self, call: cst.Call, frames: Frames) -> Value:
        """Something of which nothing is known: what it is not given, it cannot mix."""
        held = [self.of(receiver(call), frames)] if isinstance(call.func, cst.Attribute) else []
        found = self.join([*held, *self._given_values(call, frames)])
        if rows.is_free(found):
            return rows.FREE
        if found.of in {Of.MIXED, Of.UNKNOWN}:
            return replace(found, several=True)
        if found.of is Of.WHOLE:
            return replace(found, several=True)
        if (
            found.of is Of.SIZE
            and isinstance(call.func, cst.Attribute)
            and holds_weights(self._origins, receiver(call))
        ):
            return replace(rows.made(0, 2, rows.UNRANKED), several=True)  # states for the batch
        return rows.unknown(call, "is not known to keep the examples of the batch apart", found.why)
