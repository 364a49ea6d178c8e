"""Callbacks at the outermost entered tape and the outermost `gradient()`, eagerly and inside graphs."""

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol, TypeVar

import numpy as np
import tensorflow as tf

from ....runtime.foundation import call_site
from ..record import INPUT_AVERAGED, Call
from .notes import Notes
from .recorder import Recorder
from .variables import Registry, wide_dtype

T = TypeVar("T")
WEIGHT = "_verify_batch_size"
SHARES = "_verify_shares"
COMBINED = "_verify_combined"


class Guard(Protocol):
    """Runs a callback of ours, whose failure must not look like the script's."""

    def __call__(self, callback: Callable[[], T]) -> T:
        """The callback's result."""


class Tapes:
    """Wraps `tf.GradientTape`, and the runtime's tape where one is given."""

    def __init__(self, recorder: Recorder, registry: Registry, guard: Guard, notes: Notes) -> None:
        self._recorder = recorder
        self._notes = notes
        self._registry = registry
        self._guard = guard
        self._open: list[tuple[Any, Any]] = []
        self._asking = 0
        self._asked: Any = None
        self.apart: Callable[[], bool] = lambda: False  # whether what is done now is no part of the script

    def install(self) -> None:
        """Wrap `tf.GradientTape` for the rest of the process."""
        tape = tf.GradientTape
        enter, leave = tape.__enter__, tape.__exit__

        def __enter__(this: Any) -> Any:  # noqa: N807
            self._entering(this)
            return enter(this)

        def __exit__(this: Any, *reason: Any) -> Any:  # noqa: N807
            result = leave(this, *reason)
            self._leaving(this, *reason)
            return result

        tape.__enter__ = tf.autograph.experimental.do_not_convert(__enter__)
        tape.__exit__ = tf.autograph.experimental.do_not_convert(__exit__)
        self.watch(tape)
        _build_at_once()

    @property
    def is_open(self) -> bool:
        """Whether a tape records."""
        return bool(self._open)

    def watch(self, kind: Any, combined: str = "") -> None:
        """Wrap the method `gradient` of a tape class. combined: how its tapes combine the ranks' gradients."""
        gradient = kind.gradient

        def recorded(this: Any, target: Any, sources: Any, *rest: Any, **options: Any) -> Any:
            if isinstance(this, tf.GradientTape):
                self._asked = this
            if self._asking or self.apart():
                return gradient(this, target, sources, *rest, **options)
            self._asking += 1
            try:
                result = gradient(this, target, sources, *rest, **options)
            finally:
                self._asking -= 1
                asked, self._asked = self._asked, None
            inner = any(entered is not asked for entered, _ in self._open)
            return self._record(target, sources, result, this, inner, combined)

        kind.gradient = tf.autograph.experimental.do_not_convert(recorded)

    def _entering(self, tape: Any) -> None:
        controller = None
        # Tapes entered while gradients are taken belong to recomputation inside TensorFlow.
        if not (self._open or self._asking or self.apart()):
            controller = self._begin()
        self._open.append((tape, controller))

    def _leaving(self, tape: Any, *reason: Any) -> None:
        if not any(entered is tape for entered, _ in self._open):
            return
        # A tape that was entered by hand may never be left: those above this one are over with it.
        left = None
        while left is not tape:
            left, controller = self._open.pop()
            if controller is not None:
                controller.__exit__(*reason)

    def _begin(self) -> Any:
        """Begin a step now, or in graphs before every operation made until the returned scope is left."""
        if tf.executing_eagerly():
            self._guard(lambda: self._registry.load(self._recorder.enter()))
            return None
        controller = tf.control_dependencies(self._beginning())
        controller.__enter__()
        return controller

    def _beginning(self) -> list[Any]:
        """The operations that begin a step in a graph.

        They assign, because TensorFlow keeps reads and writes of a variable in their order: an optimizer reads its
        slots outside the tape's block, where nothing else would make it wait. They come after all that the graph has
        done to variables so far, such as another model's update.
        """
        variables = self._registry.found(self._recorder.locked)
        graph = tf.compat.v1.get_default_graph()
        earlier = [each for each in graph.get_operations() if each.op_def is not None and each.op_def.is_stateful]
        # The data may have been read by the function that calls this one.
        given = [each for each in getattr(graph, "inputs", ()) if each.dtype not in (tf.resource, tf.variant)]
        earlier += [tf.identity(each).op for each in given]

        def begin() -> list[Any]:
            state = {**dict.fromkeys(variables), **self._recorder.enter(variables)}
            kept = [key for key in variables if state[key] is None]
            state.update(zip(kept, self._registry.values(kept), strict=True))
            return [state[key] for key in variables]

        def run() -> list[Any]:
            return [np.int64(0), *self._guard(begin)]

        dtypes = [tf.int64, *(wide_dtype(variable.dtype) for variable in variables.values())]
        with tf.control_dependencies(earlier):
            done, *values = tf.numpy_function(run, [], dtypes)
        assigned = []
        for variable, value in zip(variables.values(), values, strict=True):
            value.set_shape(variable.shape)
            assigned.append(variable.assign(tf.cast(value, variable.dtype), read_value=False))
        return [done, *assigned]

    def _record(  # noqa: PLR0917
        self, target: Any, sources: Any, result: Any, tape: Any, inner: bool, how: str
    ) -> Any:
        keys = self._registry.keys_of(tf.nest.flatten(sources))
        weight, combined, site = getattr(tape, WEIGHT, None), getattr(tape, COMBINED, how), call_site()
        if not any(keys):
            if combined and not how:
                self._notes.add(INPUT_AVERAGED, site)
            return result
        gradients = tf.nest.flatten(result)
        pairs = {key: dense(g) for key, g in zip(keys, gradients, strict=True) if key and g is not None}
        head = [_sum(target) * getattr(tape, SHARES, 1), tf.cast(-1 if weight is None else weight, tf.float64)]

        def note(loss: Any, count: Any, *values: Any) -> None:
            known = None if weight is None else float(count)
            arrays = dict(zip(pairs, (np.array(value) for value in values), strict=True))
            self._recorder.call(Call(float(loss), known, inner, tuple(filter(None, keys)), arrays, combined, site))

        inputs = [*head, *pairs.values()]
        if tf.executing_eagerly():
            self._guard(lambda: note(*(value.numpy() for value in inputs)))
            return result
        with tf.control_dependencies([operation(self._guard, note, inputs)]):
            return tf.nest.pack_sequence_as(result, [again(gradient) for gradient in gradients])


def _build_at_once() -> None:
    """What a layer computes to make its variables waits for no step to begin: TensorFlow takes it out of the step, as
    it does in life. Keras 2, tf-keras and Keras 3 all build by one method, which is private."""
    layer = tf.keras.layers.Layer
    build = layer._maybe_build

    @functools.wraps(build)
    def built(*arguments: Any, **options: Any) -> Any:
        with tf.control_dependencies(None):
            return build(*arguments, **options)

    layer._maybe_build = tf.autograph.experimental.do_not_convert(built)


def operation(guard: Callable[[Callable[[], None]], None], callback: Callable[..., None], inputs: Sequence[Any]) -> Any:
    """In a graph: call `callback` with the values of `inputs`."""

    def run(*values: Any) -> Any:
        guard(lambda: callback(*values))
        return np.int64(0)

    return tf.numpy_function(run, list(inputs), tf.int64)


def _sum(target: Any) -> Any:
    """The number whose gradient a tape takes."""
    parts = [tf.cast(tf.reduce_sum(tf.convert_to_tensor(part)), tf.float64) for part in tf.nest.flatten(target)]
    return tf.add_n(parts)


def dense(gradient: Any) -> Any:
    """The gradient as a trace holds it."""
    tensor = tf.convert_to_tensor(gradient)
    return tf.cast(tensor, wide_dtype(tensor.dtype))


def again(gradient: Any) -> Any:
    """The same gradient, not available before the control inputs in force have run."""
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(tf.identity(gradient.values), gradient.indices, gradient.dense_shape)
    return None if gradient is None else tf.identity(gradient)
