"""Keras' own training under control of the proof: the order of its data, and gradients averaged by an optimizer.

Keras' `fit`, `train_on_batch` and `minimize` take their gradients by a `tf.GradientTape`, which is recorded as a
script's own is. Where the ranks' optimizer averages, what a tape gives is a rank's own gradient: it is exchanged for
what the optimizer made of it.
"""

import functools
import inspect
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np
import tensorflow as tf

from ....runtime.foundation import Sum
from ....runtime.training import Averaging
from ..record import SAME_BATCH
from . import keras2
from .notes import Notes
from .recorder import Recorder
from .tapes import again, dense, operation
from .variables import Registry

T = TypeVar("T")


def keep_order(notes: Notes, shorten: Callable[[dict[str, Any]], None]) -> None:
    """From now on `fit` takes its data in the order in which they come; the batches it makes of arrays are noted.

    shorten: may change the arguments of `fit`, by name.
    """

    def in_order(given: dict[str, Any]) -> None:
        given["shuffle"] = False
        x = given.get("x")
        if isinstance(x, (np.ndarray, dict, list, tuple)) or tf.is_tensor(x):
            notes.add(SAME_BATCH, str(given.get("batch_size") or 32))
        shorten(given)

    change_fits(in_order)


def change_fits(change: Callable[[dict[str, Any]], None]) -> None:
    """From now on the arguments of `fit`, by name, are changed before it is called."""
    model = tf.keras.Model
    # In Keras 3 a base class of Model has the method.
    owner = next(cls for cls in model.__mro__ if "fit" in vars(cls))
    fit = owner.fit
    signature = inspect.signature(fit)

    @functools.wraps(fit)
    def changed(*args: Any, **options: Any) -> Any:
        given = signature.bind(*args, **options)
        change(given.arguments)
        return fit(*given.args, **given.kwargs)

    owner.fit = changed


def update_after_gradients() -> None:
    """In graphs, Keras 2's optimizers change nothing before the gradients of the step are recorded.

    Those of sparse gradients let a slot decay by itself first, of which nothing makes it wait for the step's beginning.
    """
    if keras2.generator() is not None:
        for optimizer in (tf.keras.optimizers.Optimizer, tf.keras.optimizers.legacy.Optimizer):
            optimizer.apply_gradients = _after_gradients(optimizer.apply_gradients)


def _after_gradients(apply: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(apply)
    def applied(self: Any, grads_and_vars: Any, *args: Any, **options: Any) -> Any:
        pairs = list(grads_and_vars)
        if tf.executing_eagerly():
            return apply(self, pairs, *args, **options)
        given = [gradient for gradient, _ in pairs if gradient is not None]
        with tf.control_dependencies([getattr(gradient, "values", gradient) for gradient in given]):
            return apply(self, pairs, *args, **options)

    return tf.autograph.experimental.do_not_convert(applied)  # type: ignore[no-any-return]


class Optimizers:
    """Watches what the runtime's averaging makes of gradients."""

    def __init__(self, recorder: Recorder, registry: Registry, guard: Callable[[Callable[[], None]], None]) -> None:
        self._recorder = recorder
        self._registry = registry
        self._guard = guard

    def install(self) -> None:
        """Wrap it for the rest of the process."""
        combined = Averaging.combined

        def recorded(this: Any, optimizer: Any, given: Sequence[Any], variables: Sequence[Any], *rest: Any) -> Any:
            found = combined(this, optimizer, given, variables, *rest)
            job = this.exchange.job
            shares = job.topology.size if this.exchange.op is Sum else 1
            return self._record(given, found, variables, shares)

        Averaging.combined = tf.autograph.experimental.do_not_convert(recorded)  # type: ignore[method-assign]

    def _record(self, given: Sequence[Any], found: Sequence[Any], variables: Sequence[Any], shares: int) -> list[Any]:
        keys = self._registry.keys_of(list(variables))
        known = [index for index, key in enumerate(keys) if key and given[index] is not None]
        names = [str(keys[index]) for index in known]

        def note(*values: Any) -> None:
            arrays = [np.array(value) for value in values]
            local = dict(zip(names, arrays[: len(names)], strict=True))
            self._recorder.averaged(local, dict(zip(names, arrays[len(names) :], strict=True)), shares)

        inputs = [dense(gradients[index]) for gradients in (given, found) for index in known]
        if tf.executing_eagerly():
            self._guard(lambda: note(*(value.numpy() for value in inputs)))
            return list(found)
        with tf.control_dependencies([operation(self._guard, note, inputs)]):
            return [again(gradient) for gradient in found]
