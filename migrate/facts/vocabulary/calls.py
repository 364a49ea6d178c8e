"""The value of a call, where the function, its arguments and their names are in the vocabulary."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import reduce

import libcst as cst

from ..program import argument
from .expressions import Expressions
from .kinds import (
    BATCHED,
    DATA,
    DATASETS,
    LABELS,
    NETS,
    OF_BATCH,
    ONE_BY_ONE,
    PARTS,
    Bindings,
    Box,
    Data,
    Function,
    Kind,
    Value,
    computed,
    holds_list,
    is_kept,
    is_nested,
    is_of_batch,
    join,
    keep,
    kind,
    leaves,
    sources,
)
from .words import (
    AROUND,
    BESIDE,
    CALLED_BY,
    DRAWS,
    IN_PLACE,
    LOSSES,
    MEANS,
    METHODS,
    OF_IMAGES,
    OF_NUMBERS,
    OPTIMIZERS,
    RUNTIME,
    SAME,
    WRITES,
    Word,
    known,
)

_OF_LOSSES = frozenset({Kind.LOSS_OBJECT, Kind.LOSS_FUNCTION, Kind.NOTHING})
_PUTS = ("append", "extend")
_SHAPED, _SHAPES = ("keras.layers.Reshape", "keras.Input", "keras.layers.Input"), {"target_shape", "shape"}
_OTHER_AXES = frozenset({"-1", "1", "2", "3"})
_RECORDS = frozenset({Kind.ELEMENT})
_MANY = LABELS | {Kind.ELEMENTS}
_CHANGES = ((SAME, _RECORDS | _MANY | DATA | {Kind.OUTPUTS}), (OF_NUMBERS, _RECORDS | _MANY), (OF_IMAGES, _RECORDS))
_BEFORE_AXIS = 4  # of the arguments of `tf.one_hot`
_KEEPS = ".PiecewiseConstantDecay"  # the lists that it is given
_FOR_ARRAYS = frozenset({"y", "sample_weight", "batch_size", "validation_split"})
_SLICES = "tensorflow.data.Dataset.from_tensor_slices"
_GIVES_ONE, _LAZY = frozenset({"builtins.max", "builtins.min"}), frozenset({"builtins.reversed"})  # of lists
_COPIES = ("builtins.", "numpy.", "math.")  # keep nothing that they are given
_DRAWS = ("numpy.random", "random.", "time.", "datetime.")


class Calls(Expressions):
    """Reads calls of libraries, of methods, and of the file's own functions."""

    @abstractmethod
    def run(self, function: Function, args: Sequence[Value], named: Mapping[str, Value], at: cst.CSTNode) -> Value:
        """What a function of the file gives back."""

    def call(self, node: cst.Call, names: Bindings) -> Value:
        if any(a.star for a in node.args):
            self.outside(node)
        api = self.named(node.func, names)
        if api is not None:
            return self._library(node, api, names)
        if isinstance(node.func, cst.Attribute):
            return self._method(node, node.func, names)
        return self._object(node, self.value(node.func, names), names)

    def _args(
        self, node: cst.Call, names: Bindings, read: Callable[[cst.BaseExpression, Bindings], Value] | None = None
    ) -> tuple[list[Value], dict[str, Value]]:
        values = [(a.keyword, (read or self.value)(a.value, names)) for a in node.args]
        return [v for k, v in values if k is None], {k.value: v for k, v in values if k is not None}

    def _library(self, node: cst.Call, api: str, names: Bindings) -> Value:
        if api.startswith(RUNTIME):
            return self._migrated(node, api.removeprefix(RUNTIME), names)
        is_gone_through = self.gone_through is node
        args, named = self._args(node, names, self.many)
        kinds = [kind(a) for a in args]
        changes = next((kinds for words, kinds in _CHANGES if words.match(api)), None)
        if changes is not None and args:
            rest = {*kinds[1:], *map(kind, named.values())}
            is_along = "axis" in named or len(args) > _BEFORE_AXIS
            return kinds[0] if kinds[0] in changes and rest <= DATA and not is_along else self.outside(node)
        if api == "builtins.zip" and kinds == [Kind.GRADIENTS, Kind.VARIABLES] and not named:
            return Kind.UPDATES
        if api == "builtins.sum" and kinds == [Kind.PENALTIES] and not named:
            return Kind.LOSS
        if api in {"builtins.enumerate", "builtins.zip"}:
            if not is_gone_through:
                self.outside(node)  # a list may be another by the time that it is
            return self._paired(node, api, args, named)
        is_list = any(map(holds_list, args)) and (len(args) > 1 or api in _LAZY)
        if (self.in_graph and api.startswith(_DRAWS)) or (api in _GIVES_ONE | _LAZY and is_list):
            self.outside(node)
        word = known(api)
        if word is None:
            self.outside(node)
        if word.gives in {Kind.LAYER, Kind.SYMBOLIC}:
            self._axis(node)
        if word.gives is Kind.CALLBACK:
            self._monitored(node, api)
        if self.of_data and api.rpartition(".")[2] in IN_PLACE:
            self.outside(node)
        # Of an array it is not seen whether it is changed later; of one number a row, what goes along the last axis
        # would go along the batch.
        is_array = api.endswith(_KEEPS) and not all(isinstance(v, Box | tuple) for v in (*args, *named.values())[:2])
        if is_array or (api in _SHAPED and () in {*args[:1], *(named[each] for each in _SHAPES & named.keys())}):
            self.outside(node)
        self.single |= api == _SLICES and not isinstance(next(iter([*args, *named.values()]), None), tuple)
        given = self._given(node, word, args, named, api)
        return Data(given, frozenset({(*self.sites, node)})) if given is Kind.DATASET else given

    def _migrated(self, node: cst.Call, name: str, names: Bindings) -> Value:
        """What a function of the runtime gives, where it stands: what the original has there."""
        first = node.args[0].value if node.args and node.args[0].keyword is None else None
        if name in CALLED_BY and first is not None:
            before = len(self.writes)
            called = node.with_changes(func=first, args=node.args[1:])
            self.done = called if self.done is node else self.done
            given = self.call(called, names)
            del self.writes[before:]
            return given
        args, named = self._args(node, names)
        if name in AROUND:
            if set(map(kind, [*args[1:], *named.values()])) <= DATA:
                return args[0] if args else Kind.NOTHING
        elif name == "size" and not node.args:
            return Kind.WHOLE
        elif name == "metric_result" and list(map(kind, args)) == [Kind.METRIC]:
            return Kind.OWN
        elif name in BESIDE:
            return Kind.NOTHING
        return self.outside(node)

    def _paired(self, node: cst.Call, api: str, args: list[Value], named: Mapping[str, Value]) -> Value:
        """A list of pairs, by what one of them is."""
        found = [self.element(node, a) for a in args]
        several = len(args) > 1 and DATASETS & set(map(kind, args))  # what stands beside a batch belongs to other rows
        if several or named.keys() - {"start"}:
            self.outside(node)
        box = Box()
        turns = Kind.COUNT if is_of_batch(tuple(found)) else Kind.WHOLE
        box.put((turns, *found[:1]) if api == "builtins.enumerate" else tuple(found))
        return box

    def element(self, node: cst.CSTNode, value: Value) -> Value:
        """What a loop over a value gives at each turn: what it does, and how often, is alike on all workers."""
        if isinstance(value, Box | tuple) and not DATASETS.isdisjoint(map(kind, leaves(value))):
            self.outside(node)  # whether it is trained on is followed by names
        if isinstance(value, Box):
            return value.content if value.content is not None else Kind.WHOLE
        if isinstance(value, tuple) and value:
            return reduce(join, value)
        of = kind(value)
        if of in DATASETS:
            self.looped = sources(value)
            return Kind.BATCH
        return of if of in {Kind.WHOLE, Kind.LAYER} else self.outside(node)

    def _given(
        self, node: cst.Call, word: Word, args: Sequence[Value], named: Mapping[str, Value], api: str = ""
    ) -> Value:
        if len(args) > word.positions or named.keys() - word.keywords:
            self.outside(node)
        if word.gives is Kind.NOTHING and self.done is not node:
            self.outside(node)  # it may give something all the same: the number of the step, a path
        if word.gives is Kind.WHOLE and any(map(is_nested, (*args, *named.values()))):
            self.outside(node)  # the lists inside may be in what it gives, and be filled later
        kinds = {k for each in (*args, *named.values()) for k in map(kind, leaves(each))}
        if not kinds <= word.takes:
            self.outside(node)
        if not api.startswith(_COPIES):
            keep((*args, *named.values()))
        own = word.gives is Kind.WHOLE and not kinds <= DATA
        if own and Kind.WHOLE in map(kind, args):
            self.outside(node)  # an array of all workers may be what is filled: `np.add(x, loss, x)`
        if own:
            return Kind.OWN
        return computed(kinds) if word.gives is Kind.WHOLE else word.gives

    def _axis(self, node: cst.Call) -> None:
        """An axis that a layer is told is written out, and not the one of the batch: with two axes, -2 is that."""
        for arg in node.args:
            named = arg.keyword is not None and arg.keyword.value == "axis"
            if named and self._file.code(arg.value) not in _OTHER_AXES:
                self.outside(node)

    def _method(self, node: cst.Call, func: cst.Attribute, names: Bindings) -> Value:
        name, value = func.attr.value, self.value(func.value, names)
        if isinstance(value, Box) and name in _PUTS and len(node.args) == 1 and not self.in_graph:
            given = self._args(node, names)[0][0]
            if is_kept(value) or self.of_data or is_of_batch(given):
                self.outside(node)  # it counts steps, or batches of one loop are trained on in another
            self.filled(value, given if name == "append" else self.element(node, given), node)
            return Kind.NOTHING
        of = kind(value)
        if of in DATASETS and name == "map":
            self._mapped(node, Kind.ELEMENT if of in ONE_BY_ONE else Kind.ELEMENTS, names)
            return value
        word = METHODS.get((Kind.WHOLE if of in {Kind.NUMBER, Kind.COUNT} else of, name))
        draws = self.in_graph and of is Kind.WHOLE and name in DRAWS  # once a trace
        if word is None or draws or (self.of_data and name in IN_PLACE) or is_nested(value):
            self.outside(node)
        if of is Kind.MODEL and name == "compile":
            self._measured(node, names)
        if of is Kind.MODEL and name == "fit":
            self._held_out(node, names)
        writes = of in DATASETS and name == "cache" and node.args and not self._is_migrated(node.args[0].value, names)
        if writes or ((of, name) in WRITES and not self.guarded):
            self.writes.append(node)
        if of is Kind.METRIC and name in {"update_state", "result"}:
            self.measures.append(node)
        args, named = self._args(node, names)
        self._used(node, of, name, args, named)
        given = self._given(node, word, args, named)
        if of is Kind.COUNT and given is Kind.WHOLE:
            return Kind.COUNT
        return (
            Data(_of_stage(name, given, node), sources(value)) if isinstance(given, Kind) and of in DATASETS else given
        )

    def _used(self, node: cst.Call, of: Kind, name: str, args: Sequence[Value], named: Mapping[str, Value]) -> None:
        """Notes which data a model is trained on, and which it is measured on."""
        if (of, name) == (Kind.TAPE, "gradient"):
            self.trained |= self.looped
        if of is Kind.MODEL and name == "fit":
            trained = sources((*args, *(value for key, value in named.items() if key != "validation_data")))
            if trained and (len(args) > 1 or not _FOR_ARRAYS.isdisjoint(named)):
                self.outside(node)  # as for arrays, of which each worker takes its rows
            self.trained |= trained
        measured = (named.get("validation_data", ()),) if name == "fit" else (*args, *named.values())
        if of is Kind.MODEL:
            self.measured.update(dict.fromkeys(sources(measured), node))

    def _measured(self, node: cst.Call, names: Bindings) -> None:
        """What `compile` is given: losses and metrics as objects, or by names of those that are means over the rows;
        an optimizer as an object, or by its name, as settings in a table may count steps."""
        optimizer = argument(node, "optimizer", 0)
        if optimizer is not None and not self._is_optimizer(optimizer.value, names):
            self.outside(optimizer.value, f"`{self._file.code(optimizer.value)}` as an optimizer")
        loss = argument(node, "loss", 1)
        for each in _elements(loss.value) if loss is not None else ():
            name = each.evaluated_value if isinstance(each, cst.SimpleString) else None
            if name not in LOSSES and kind(self.value(each, names)) not in _OF_LOSSES:
                self.outside(each, f"`{self._file.code(each)}` as a loss")
        given = next((a.value for a in node.args if a.keyword is not None and a.keyword.value == "metrics"), None)
        for element in given.elements if isinstance(given, cst.List | cst.Tuple) else ():
            text = element.value.evaluated_value if isinstance(element.value, cst.SimpleString) else None
            if text not in MEANS and kind(self.value(element.value, names)) is not Kind.METRIC:
                self.outside(node, f"`{self._file.code(element.value)}` as a metric")
        if given is not None and not isinstance(given, cst.List | cst.Tuple):
            self.outside(given)

    def _monitored(self, node: cst.Call, api: str) -> None:
        """What a callback goes by is a mean over examples: the loss of one of several outputs is Keras' mean over
        batches, and validation has those of one worker."""
        place = {"EarlyStopping": 0, "ReduceLROnPlateau": 0, "ModelCheckpoint": 1}.get(api.rpartition(".")[2])
        given = argument(node, "monitor", place) if place is not None else None
        name = given.value.evaluated_value if given is not None and isinstance(given.value, cst.SimpleString) else None
        if given is not None and (not isinstance(name, str) or (name.endswith("_loss") and name != "val_loss")):
            self.outside(given.value, f"`{self._file.code(given.value)}` to be monitored")

    def _held_out(self, node: cst.Call, names: Bindings) -> None:
        """What a model is measured on is the same on all workers."""
        given = argument(node, "validation_data")
        if given is not None and kind(self.value(given.value, names)) in PARTS:
            self.outside(given.value, f"`{self._file.code(given.value)}`, a drawn part of the data, to validate on")

    def _is_optimizer(self, given: cst.BaseExpression, names: Bindings) -> bool:
        while isinstance(given, cst.Call) and self._is_migrated(given, names) and given.args:
            given = given.args[0].value
        if isinstance(given, cst.SimpleString):
            return str(given.evaluated_value).lower() in OPTIMIZERS
        return self.value(given, names) is Kind.OPTIMIZER

    def _is_migrated(self, given: cst.BaseExpression, names: Bindings) -> bool:
        """Whether a call of the runtime stands here."""
        return isinstance(given, cst.Call) and (self.named(given.func, names) or "").startswith(RUNTIME)

    def _mapped(self, node: cst.Call, of: Kind, names: Bindings) -> None:
        """A dataset whose elements, which are of such a kind, a pure function changes, each from itself."""
        args, named = self._args(node, names)
        if len(args) != 1 or named.keys() - {"num_parallel_calls"} or not isinstance(args[0], Function):
            self.outside(node)
        params = args[0].node.params.params
        before, self.in_graph = self.in_graph, True
        given = self.run(args[0], [of] * len(params), {}, node)
        self.in_graph = before
        if holds_list(given) or not {kind(v) for v in leaves(given)} <= {of, Kind.NUMBER}:  # TensorFlow stacks lists
            self.outside(node)
        self.single |= not isinstance(given, tuple)

    def _object(self, node: cst.Call, value: Value, names: Bindings) -> Value:
        """The call of what is no name of a library."""
        args, named = self._args(node, names)
        if isinstance(value, Function):
            if self.guarded:
                self.outside(node)
            return self.run(value, args, named, node)
        of, kinds = kind(value), [kind(a) for a in args]
        if named.pop("training", Kind.FLAG) is not Kind.FLAG or named:  # it may go by the number of the step
            self.outside(node)
        if of in NETS and kinds == [Kind.SYMBOLIC]:
            return Kind.SYMBOLIC
        if of is Kind.MODEL and len(args) == 1 and kinds[0] in OF_BATCH | DATA:
            return Kind.OWN if kinds[0] in DATA else Kind.OUTPUTS
        # Labels are the batch's: what a model makes of them, nothing looks at as it runs.
        is_one = all(isinstance(a, Kind) for a in args)  # of a list of labels and one of outputs, each would be all's
        if of is Kind.LOSS_OBJECT and is_one and len(kinds) == 2 and kinds[0] in LABELS and kinds[1] in OF_BATCH:
            return Kind.LOSS
        if of is Kind.METRIC and kinds and set(kinds) <= OF_BATCH | {Kind.LOSS}:
            self.measures.append(node)
            return Kind.OWN
        return self.outside(node)


def _of_stage(name: str, given: Kind, node: cst.Call) -> Kind:
    """What a stage of a dataset gives: in another order, or a part of what stands in one that is drawn."""
    of = ONE_BY_ONE if given in ONE_BY_ONE else BATCHED
    in_order, shuffled, part = of
    if name == "shuffle":
        return shuffled if given is in_order else given
    cuts = name in {"take", "skip"} or (name == "batch" and argument(node, "drop_remainder", 1) is not None)
    return part if cuts and given is shuffled else given


def _elements(given: cst.BaseExpression) -> list[cst.BaseExpression]:
    """What a list, tuple or dictionary holds; else the expression itself."""
    if isinstance(given, cst.List | cst.Tuple | cst.Dict):
        return [each.value for each in given.elements if isinstance(each, cst.Element | cst.DictElement)]
    return [given]
