"""The validation that belongs to `fit` is divided, too: all workers run it, as they run `fit`.

`evaluate`, `predict` and `test_on_batch` of the script's own may be called by one worker alone: they stay whole. One
process traces a function for both, once; what its Python has read then holds for both. So the whole one is traced when
the divided one is, and is used in its place where the script has had it traced before.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import Max, Min, TfdpError
from ..framework import draws_on
from ..job import current
from ..transports import Label
from . import report, sight
from .kept import Kept
from .kinds import kind_of_call
from .muted import muted
from .names import put_back
from .plain import verdict_of_step
from .unspent import unspent

# By which Keras 2, Keras 3 and tf-keras tell `evaluate` that `fit` calls it; private to them.
_BY_FIT = "_use_cached_eval_dataset"
# Of a model, as Keras keeps its own: functions may refer to the model, and go with it.
_COMPILED_WITH = "_tfdp_compiled_with"
_DRAWS = "it draws numbers that go on from call to call, and `evaluate` goes on where it has ended"
_TRACED = "the script has had it traced before `fit`, and it is used as it was traced then"

# Where Keras 3, and Keras 2 and tf-keras, keep the data of the validation from epoch to epoch.
VALIDATED = (("_eval_epoch_iterator", "_distributed_dataset"), ("_eval_data_handler", "_dataset"))
_NEAR = 1e-4  # of a result: kernels of a GPU add in any order
_NO_NUMBER = 1.2345e38

_divided: weakref.WeakKeyDictionary[Any, dict[Any, bool]] = weakref.WeakKeyDictionary()


class _Thread(threading.local):
    validated: tuple[Any, Callable[[Any], Kept]] | None = None  # the model; and what Keras may change of one
    is_fresh: bool | None = None  # while the whole one is traced: whether nothing in it was traced before


_thread = _Thread()


def hook_validation(model: Any, kept: Callable[[Any], Kept]) -> None:
    """From now on models of this class are validated by calls that are divided.

    kept: of such a model, what Keras may change in Python when a step is traced.
    """
    evaluating, compiling = (
        next(cls for cls in model.__mro__ if name in vars(cls)) for name in ("evaluate", "compile")
    )
    evaluating.evaluate = _evaluating(evaluating.evaluate, kept)
    compiling.compile = _compiling(compiling.compile)


def _evaluating(original: Callable[..., Any], kept: Callable[[Any], Kept]) -> Callable[..., Any]:
    @functools.wraps(original)
    def evaluate(self: Any, *arguments: Any, **options: Any) -> Any:
        if not options.get(_BY_FIT):
            return original(self, *arguments, **options)
        read_as_it_is_asked(self)
        self.make_test_function()
        whole = self.test_function
        self.test_function = _validating(whole, (self, kept))
        try:
            found = original(self, *arguments, **options)
        finally:
            self.test_function = whole
        compare(found)
        return found

    return evaluate


def read_as_it_is_asked(model: Any) -> None:
    """TensorFlow puts a thread behind a dataset that reads ahead, how far goes by the time. Where the data are shuffled
    and repeat, an iterator that has begun one more pass leaves the next one another order: on each worker its own."""
    for holder, name in VALIDATED:
        kept = getattr(model, holder, None)
        dataset = getattr(kept, name, None)
        if isinstance(dataset, tf.data.Dataset) and dataset.options().experimental_optimization.inject_prefetch is None:
            options = tf.data.Options()
            options.experimental_optimization.inject_prefetch = False
            setattr(kept, name, dataset.with_options(options))


def compare(found: Any) -> None:
    """Whether all workers have validated on the same examples: `found` are the results, by name.

    Raises:
        TfdpError: one of them is another one on a worker; on every rank.
    """
    if not isinstance(found, Mapping):
        return
    numbers = {name: np.asarray(value, np.float64).ravel() for name, value in found.items()}
    flat = np.nan_to_num(np.concatenate([*numbers.values(), np.zeros(0)]), nan=_NO_NUMBER)
    both = current().transport.allreduce([tf.constant([flat, -flat])], Max, Label("results of a validation", "fit"))
    most, least = both[0][0].numpy(), -both[0][1].numpy()
    apart = most - least > _NEAR * np.maximum(np.abs(most), np.abs(least))
    names = [name for name, value in numbers.items() for _ in value]
    if apart.any():
        at = int(apart.argmax())
        raise TfdpError(
            f"the validation of fit gives {names[at]} from {least[at]:.6g} to {most[at]:.6g} on the workers: they have "
            "read its data in another order. Data that are shuffled, repeat and are read ahead (prefetch, a parallel "
            "map or interleave) may be: leave the shuffle or the repetition of the validation data out"
        )


def _validating(step: Callable[..., Any], validated: tuple[Any, Callable[[Any], Kept]]) -> Callable[..., Any]:
    """The step alone: callbacks around it may be rank 0's."""

    def run(*arguments: Any, **options: Any) -> Any:
        before, _thread.validated = _thread.validated, validated
        try:
            with sight.validation():
                return step(*arguments, **options)
        finally:
            _thread.validated = before

    return run


def chosen(whole: Any, divided: Any, arguments: Any, options: Any) -> Any:
    """The one of two `tf.function`s by which such a step computes what it is given: `whole`, where that has been traced
    for it elsewhere, else `divided`, which has traces of its own."""
    if _thread.validated is None or not tf.executing_eagerly():
        return divided
    known = _divided.setdefault(whole, {})
    kind = kind_of_call(whole, None, (arguments, options))
    if kind not in known:
        model, kept = _thread.validated
        reason = verdict_of_step(model, vars(model).get(_COMPILED_WITH, ())).reason
        if not reason:
            before = kept(model).before
            with unspent(), muted():  # first, so that both draw the same numbers in Python
                graph = divided.get_concrete_function(*arguments, **options).graph
            put_back(before)
            reason = _DRAWS if draws_on(graph) else ""
        known[kind] = _is_untraced(whole, arguments, options) and not reason
        if not known[kind]:
            report.undivided("the validation of fit", reason or _TRACED)
    return divided if known[kind] else whole


def _is_untraced(whole: Any, arguments: Any, options: Any) -> bool:
    """Whether no worker has traced it, or a function in it, for what it is given: it is, then, as one process does."""
    _thread.is_fresh = True
    try:
        with sight.validation(False):
            traced(whole, lambda: whole.get_concrete_function(*arguments, **options))
        fresh = tf.constant([int(_thread.is_fresh)])
    finally:
        _thread.is_fresh = None
    with tf.init_scope():
        return bool(current().transport.allreduce([fresh], Min, Label("look at a validation", whole.__name__))[0][0])


def traced(function: Any, call: Callable[[], Any]) -> Any:
    """`call()`, which calls a `tf.function` as a whole, or has it traced."""
    if _thread.is_fresh is None:
        return call()
    before = function.experimental_get_tracing_count()
    result = call()
    if function.experimental_get_tracing_count() == before:
        _thread.is_fresh = False
    return result


def _compiling(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def compile(self: Any, *arguments: Any, **options: Any) -> Any:
        vars(self)[_COMPILED_WITH] = [*arguments, *options.values()]
        return original(self, *arguments, **options)

    return compile
