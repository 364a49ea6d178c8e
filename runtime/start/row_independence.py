"""Does a model give each example a result of its own? What mixes the examples of a batch sees only a rank's own here.

Before its first call on a batch a Keras model is compiled once more, for a look: each of three rows is put in the place
of all others. If its result changes, the others had a part in it. Nothing of the script has run in between, so that the
look comes before the step; and a model whose call would write or draw something is not looked at.
"""

import functools
import inspect
import itertools
import threading
import weakref
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from ..foundation import TfdpError, call_site
from ..framework import Variable, only_reads

_ROWS = 4  # of a batch whose size is not known yet
_MOST_ROWS = 8  # of a batch that is there
_LENGTHS = 8, 64  # tried where another size is not known: of a text, of an image
_TRIES = 3  # a model may not be built, or its variables may have no values yet
# One row gives the same bits in the same place of a batch of the same shape; in one of another size the last bits may
# differ. Half precision has been seen to differ in both (TensorFlow 2.15), by a step of 1/1024 in each layer.
_SAME_SHAPE, _OTHER_SHAPE, _HALF = 1e-5, 1e-3, 3e-2


class _Thread(threading.local):
    """Whether a model is being called in this thread."""

    inside = False


class _Look(NamedTuple):
    """What has been seen of a model: how often it was tried, the message if it mixes rows, what it reads, and of which
    layers it was made."""

    tries: int = 0
    mixes: str = ""
    read: frozenset[int] | None = None  # by `id` of the handle: what its result when it is trained is made from
    layers: tuple[int, ...] = ()


_thread = _Thread()
_looks: weakref.WeakKeyDictionary[Any, _Look] = weakref.WeakKeyDictionary()


def watch_calls(cls: Any) -> None:
    """Look at every model of a Keras' `Model` class before its first calls."""
    original = cls.__call__

    # With the name of Keras' module, from which AutoGraph knows that it is not to be compiled.
    @functools.wraps(original)
    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        if _thread.inside:
            return original(self, *arguments, **options)
        _thread.inside = True
        try:
            look(self, arguments, options)
            return original(self, *arguments, **options)
        finally:
            _thread.inside = False

    cls.__call__ = called


def refuse_mixing(variables: Sequence[Variable]) -> None:
    """At an exchange of gradients for these variables: raise if a model that holds one of them mixes rows.

    Raises:
        TfdpError: it does; its place, and what to do.
    """
    found = [(model, seen.mixes) for model, seen in _looks.items() if seen.mixes]
    if not found:
        return
    trained = {id(each.handle) for each in variables if hasattr(each, "handle")}
    for model, message in found:
        if any(id(each.handle) in trained for each in model.trainable_variables):
            raise TfdpError(message)


def reads(model: Any, variable: Variable) -> bool:
    """Whether the model's result depends on the variable when it is trained; True where that is not known."""
    found = _looks.get(model, _Look()).read
    return found is None or id(variable.handle) in found


def look(model: Any, arguments: Sequence[Any], options: dict[str, Any]) -> None:
    """Look at the model, unless that has been done or cannot be done with what it is called on."""
    seen, layers = _looks.get(model, _Look()), _layers_of(model)
    if seen.layers != layers:  # one was added or taken away
        seen = _Look(layers=layers)
    if seen.tries >= _TRIES or not getattr(model, "built", False):
        return
    given = tf.nest.flatten((arguments, options))
    if not _are_batches(given):
        return
    forms = _Forms(model)
    try:
        with tf.init_scope():  # outside the function that is traced, and unseen by tapes
            mixes = forms.that_mix(arguments, options)
    except Exception:  # whatever the model does not take: then there is no answer
        mixes = None
    tries = seen.tries + 1 if mixes is None else _TRIES
    _looks[model] = _Look(tries, _message(model, mixes) if mixes else seen.mixes, forms.read or seen.read, layers)


def _layers_of(model: Any) -> tuple[int, ...]:
    """What tells a model's layers from others, those of its models included."""
    found: list[int] = []
    for layer in getattr(model, "layers", ()):
        found += [id(layer), *_layers_of(layer)]
    return tuple(found)


def _are_batches(given: Sequence[Any]) -> bool:
    """Whether all tensors of a call are dense and have equally many rows, more than one."""
    tensors = [each for each in given if _is_tensor(each)]
    unlike = [each for each in given if not _is_tensor(each) and hasattr(each, "shape")]
    if unlike or not tensors or any(each.shape.rank in (0, None) for each in map(_spec, tensors)):
        return False
    rows = {each.shape[0] for each in tensors}
    return len(rows) == 1 and rows not in ({0}, {1})


def _is_tensor(thing: Any) -> bool:
    return isinstance(thing, tf.Tensor | np.ndarray)


def _spec(tensor: Any) -> Any:
    return tf.TensorSpec(tensor.shape, tensor.dtype)


class _Forms:
    """A model as it predicts, and as it is trained, each compiled for a look."""

    def __init__(self, model: Any) -> None:
        self._model = model
        self.read: frozenset[int] | None = None

    def that_mix(self, arguments: Sequence[Any], options: dict[str, Any]) -> str | None:
        """In which form a row's result depends on others; "" if in none, None if that cannot be told."""
        parameters = list(inspect.signature(self._model.call).parameters)
        given, options = list(arguments), dict(options)
        if "training" not in parameters:
            return {True: "in its call", False: "", None: None}[self._mixes(given, options)]
        del given[parameters.index("training") :]  # Keras takes only tensors by their place
        answers = {}
        for training, when in ((False, "when it predicts"), (True, "when it is trained")):
            answers[training] = self._mixes(given, {**options, "training": training})
            if answers[training]:
                return when
        return "" if False in answers.values() else None

    def _mixes(self, arguments: Sequence[Any], options: dict[str, Any]) -> bool | None:
        structure = arguments, options
        flat = tf.nest.flatten(structure)
        places = [index for index, each in enumerate(flat) if _is_tensor(each)]
        called_on = [flat[index] for index in places]
        there = all(hasattr(each, "numpy") or isinstance(each, np.ndarray) for each in called_on)
        may_vary = there or called_on[0].shape[0] is None

        def run(*rows: Any) -> Any:
            put = list(flat)
            for index, tensor in zip(places, rows, strict=True):
                put[index] = tensor
            given, named = tf.nest.pack_sequence_as(structure, put)
            return self._model(*given, **named)

        for tensors, free in itertools.product(_batches(called_on, there), (True, False) if may_vary else (False,)):
            try:
                compiled = tf.function(run).get_concrete_function(*(_spec_of(each, free) for each in tensors))
                self.read = _read_by(compiled.graph)
                return _rows_mix(compiled, tensors, free) if _only_reads(compiled.graph) else None
            except (ValueError, TypeError, tf.errors.OpError):
                continue  # of another size it may go
        return None


def _batches(tensors: Sequence[Any], there: bool) -> Iterator[list[Any]]:
    """Batches like those of the call, to be tried one after the other: its rows, or numbers of the same shapes."""
    if there:
        rows = tensors[0].shape[0]
        for most in sorted({min(rows, _MOST_ROWS), rows}):
            yield [np.asarray(each[:most]) for each in tensors]
        return
    known = all(None not in each.shape[1:] for each in tensors)
    for length in _LENGTHS[:1] if known else _LENGTHS:
        made: list[Any] = []
        for tensor in tensors:
            rows, *others = tensor.shape
            size = [rows or _ROWS, *(length if each is None else each for each in others)]
            made.append(_numbers(size, tensor.dtype, len(made)))
        yield made
        if any(each.dtype.is_floating for each in made):  # an activation may have been nought for all
            yield [-each if each.dtype.is_floating else each for each in made]


def _numbers(size: Sequence[int], dtype: tf.DType, seed: int) -> Any:
    """Rows that differ: of an integer 0 and 1, which any table of embeddings has."""
    random = np.random.default_rng([len(size), seed])
    if dtype.is_floating or dtype.is_complex:
        return tf.constant(random.uniform(size=size), dtype)
    bits = random.integers(0, 2, size)
    bits[[1, -1]] = 1 - bits[0]
    if dtype == tf.string:
        return tf.constant(np.where(bits == 1, "b", "a"))
    return tf.constant(bits, dtype)


class _AlikeError(ValueError):
    """A batch of which nothing can be told."""


def _rows_mix(compiled: Any, tensors: Sequence[Any], free: bool) -> bool | None:
    """Whether a row's result changes with the other rows; None where there is none for each, or none twice."""
    rows = len(tensors[0])
    whole = _results(compiled, tensors, rows)
    if not whole or any(not np.isfinite(each[[0, 1, -1]]).all() for each in whole):
        return None
    if all(np.array_equal(each, np.repeat(each[:1], rows, 0)) for each in whole):
        raise _AlikeError("all rows have one result")
    again = _results(compiled, tensors, rows)
    if any(not np.array_equal(one, two, equal_nan=True) for one, two in zip(whole, again, strict=True)):
        return None
    half = any(each.dtype in (tf.float16, tf.bfloat16) for op in compiled.graph.get_operations() for each in op.outputs)
    same, other = (max(each, _HALF if half else 0.0) for each in (_SAME_SHAPE, _OTHER_SHAPE))
    for row in {0, 1, rows - 1}:
        alone = _results(compiled, [np.repeat(np.asarray(each)[[row]], rows, 0) for each in tensors], rows)
        if _differ([each[row] for each in whole], [each[row] for each in alone], whole, same):
            return True
    if not free or rows < 4:
        return False
    for start, stop in ((0, rows // 2), (rows // 2, rows)):  # in one of them an activation may be nought for all
        few = _results(compiled, [each[start:stop] for each in tensors], stop - start)
        if _differ([each[start:stop] for each in whole], few, whole, other):
            return True
    return False


def _spec_of(tensor: Any, free: bool) -> Any:
    return tf.TensorSpec([None, *tensor.shape[1:]] if free else tensor.shape, tensor.dtype)


def _results(compiled: Any, tensors: Sequence[Any], rows: int) -> list[Any]:
    """The parts of a result that have a row for each example, as arrays."""
    found = tf.nest.flatten(compiled(*(tf.convert_to_tensor(each) for each in tensors)))
    dense = [each for each in found if isinstance(each, tf.Tensor) and each.dtype.is_floating and each.shape.rank]
    return [tf.cast(each, tf.float64).numpy() for each in dense if each.shape[0] == rows]


def _differ(ones: Sequence[Any], others: Sequence[Any], whole: Sequence[Any], limit: float) -> bool:
    if len(ones) != len(others):
        return True
    for one, other, all_rows in zip(ones, others, whole, strict=True):
        size = float(np.nanmax(np.abs(all_rows), initial=0.0))
        if not (np.abs(one - other) <= limit * size).all():  # where it is no number any more, too
            return True
    return False


def _only_reads(graph: Any) -> bool:
    """Whether no operation of the graph, or of a function in it, writes or draws."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(node for each in definition.library.function for node in each.node_def)]
    return all(only_reads(name) for name in {node.op for node in nodes})


def _read_by(graph: Any) -> frozenset[int]:
    """The `id`s of the handles of all variables that a graph's outputs are made from."""
    handles = {id(inner): id(outer) for outer, inner in graph.captures}
    seen: set[int] = set()
    due = list(graph.outputs)
    while due:
        tensor = due.pop()
        if id(tensor) not in seen:
            seen.add(id(tensor))
            due += tensor.op.inputs
    return frozenset(handle for inner, handle in handles.items() if inner in seen)


def _message(model: Any, when: str) -> str:
    return (
        f"the model {model.name!r} ({type(model).__name__}), called at {call_site()}, mixes the examples of a batch "
        f"{when}: the result for one example changes with the others. Each rank has only its own examples, so it would "
        "train another model than one process. Look in its layers for what goes over axis 0, or uses the batch's size, "
        "and let each example have a result of its own. If axis 0 of what the model takes is not the batch, say "
        "dp.init(row_check=False)"
    )
