"""Gradients of variables are averaged over the workers where they are taken, whoever takes them."""

from __future__ import annotations

import functools
import inspect
import itertools
from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from ..collective import is_recording
from ..foundation import Average, TfdpError, call_site, is_elsewhere, say_once
from ..framework import in_python, is_variable, name_of, raw, transparent
from ..gradients import Compression, Exchange
from ..job import current
from ..start import creation_ordinals, list_number, note_slices, watched
from . import apart, nets, own_sources, report, sight, widened
from .local_moments import MovingStatistics
from .look import is_looking
from .rows import mean
from .swallowed import refuse_swallowed

_SINGLE = (
    "each call of a model so far was given one row, or none: every worker does all the work, and trains what one "
    "process does. Calls that are given several rows will be divided; where the data have more, `tfdp migrate --batch "
    "per-worker` gives each worker rows of its own"
)
_PUSHED = (
    "the gradient at {} is taken inside a tf.autodiff.ForwardAccumulator, of what a tape has recorded before: the "
    "workers exchange it, and no tangent goes through that. Enter the tape inside the accumulator"
)


class _Passengers:
    """Several passengers of an exchange, one after the other."""

    def __init__(self, passengers: Sequence[Any]) -> None:
        self._passengers = passengers
        self._widths: list[int] = []

    def sent(self, dtype: tf.DType) -> Any:
        parts = [each.sent(dtype) for each in self._passengers]
        self._widths = [int(each.shape[0]) for each in parts]
        return tf.concat(parts, 0)

    def received(self, total: Any, ranks: int) -> None:
        for each, part in zip(self._passengers, tf.split(total, self._widths), strict=True):
            each.received(part, ranks)


_OUT_OF_STRATEGY = (
    "A strategy of tf.distribute has made the thread, for workers of its own: where the strategy is made, perhaps in "
    "another file than the one that was migrated, write tf.distribute.get_strategy() in its place"
)


def average_gradients() -> None:
    """From now on `tf.GradientTape.gradient` gives for variables the mean over the workers."""
    original = tf.GradientTape.gradient

    @functools.wraps(original)
    def gradient(
        self: Any,
        target: Any,
        sources: Any,
        output_gradients: Any = None,
        unconnected_gradients: Any = tf.UnconnectedGradients.NONE,
    ) -> Any:
        if sight.now() is not None or is_looking() or apart.is_without_exchanges():
            return original(self, target, sources, output_gradients, unconnected_gradients)
        if apart.is_accumulating():  # an exchange would end the tangents
            if not apart.is_entered_accumulating(self):
                raise TfdpError(_PUSHED.format(call_site()))
            return original(self, target, sources, output_gradients, unconnected_gradients)
        if apart.is_entered_elsewhere(self) and not any(map(is_variable, tf.nest.flatten(sources))):
            return original(self, target, sources, output_gradients, unconnected_gradients)
        take = functools.partial(original, self, target, output_gradients=output_gradients)
        flat = tf.nest.flatten(sources)
        found = own_sources.taken(take, flat, unconnected_gradients)
        return tf.nest.pack_sequence_as(sources, _averaged(self, target, flat, found))

    tf.GradientTape.gradient = transparent(gradient)
    _loop_over_jacobians()
    _refuse_other_gradients()


def _averaged(tape: Any, target: Any, sources: Sequence[Any], gradients: Sequence[Any]) -> list[Any]:
    refuse_swallowed()
    site = call_site()
    report.gradient(site)
    exchanged = report.is_anything_divided() or any(map(is_variable, sources))
    if exchanged and is_elsewhere():
        raise TfdpError(
            f"the gradient at {site} is taken in a thread of its own: workers could not know which of them belong "
            f"together. {_OUT_OF_STRATEGY if tf.distribute.has_strategy() else 'Train in the main thread'}"
        )
    for index, each in enumerate(tf.nest.flatten(target)):
        nets.note(f"target {index + 1} of the gradient", each)
    found = [_of_tensor(*each) for each in zip(sources, gradients, strict=True)]
    by_creation = _by_creation()
    _remember(sources, found, by_creation)
    dense = []
    for index, (source, each) in enumerate(zip(sources, found, strict=True)):
        if each is None:
            continue
        if isinstance(each, tf.IndexedSlices) or not is_variable(source):
            nets.note(f"the gradient of {_name(source, index)}", each)
        else:
            dense.append(index)
    dense.sort(key=lambda index: by_creation(sources[index]))
    if not dense:
        return found
    _refuse_idle([sources[index] for index in dense], tape, site)
    names = [_name(sources[index], index) for index in dense]
    given = [found[index] for index in dense]
    averaged = [mean(each, name) for each, name in zip(given, names, strict=True)] if is_recording() else None
    if averaged is None:
        averaged = _exchanged([sources[index] for index in dense], given, names, site)
    for index, each in zip(dense, averaged, strict=True):
        found[index] = each
    return found


def _remember(sources: Sequence[Any], gradients: Sequence[Any], by_creation: Callable[[Any], int]) -> None:
    """What is compared at the end of the job, whoever exchanges its gradient."""
    pairs = [(each, gradient) for each, gradient in zip(sources, gradients, strict=True) if is_variable(each)]
    note_slices({tuple(each.shape) for each, gradient in pairs if isinstance(gradient, tf.IndexedSlices)})
    list_number(sorted((each for each, _ in pairs), key=by_creation))


def _by_creation() -> Callable[[Any], int]:
    """A key to sort variables by, alike on all workers: a script may list them by their addresses, as TensorFlow does
    for functions with a gradient of their own."""
    ordinals = creation_ordinals()
    return lambda variable: ordinals.get(id(raw(variable).handle), len(ordinals))


def _of_tensor(source: Any, gradient: Any) -> Any:
    """The gradient of a tensor that is no variable: of some rows, where divided calls use it and are not given it; else
    the same on all workers, and their mean."""
    if gradient is None or is_variable(source) or not report.is_anything_divided():
        return gradient
    return mean(gradient, "a gradient of a tensor")


def _exchanged(variables: Sequence[Any], given: Sequence[Any], names: Sequence[str], site: str) -> list[Any]:
    job = current()
    widened.look()
    with tf.name_scope("averaged_gradient"):
        watch = watched(variables, [], job)
        passengers = _Passengers([each for each in (watch, nets.Notes(), MovingStatistics()) if each is not None])
        exchange = Exchange(job, Average, None, Compression.none, 1.0, False, False)
        with tf.control_dependencies(watch.compared(given) if watch else []):
            return exchange.combined(given, names, site, passengers)


def _name(source: Any, index: int) -> str:
    return name_of(source) if is_variable(source) else f"source {index}"


def _refuse_other_gradients() -> None:
    """Those that are taken without a tape nobody exchanges."""

    def refused(*_: Any, **__: Any) -> Any:
        raise TfdpError(
            f"the gradients at {call_site()} are taken by tf.gradients, and would be a worker's own: take them by a "
            "tf.GradientTape"
        )

    for module in (tf, tf.compat.v1, tf.compat.v2):
        for name in ("gradients", "hessians"):
            if hasattr(module, name):
                setattr(module, name, transparent(refused))


def _loop_over_jacobians() -> None:
    """Row by row where calls were divided: parallel graphs (`pfor`) lose gradients that functions define."""
    for name in ("jacobian", "batch_jacobian"):
        setattr(tf.GradientTape, name, transparent(_looped(getattr(tf.GradientTape, name))))


def _looped(original: Callable[..., Any]) -> Callable[..., Any]:
    parameter = "experimental_use_pfor"
    place = list(inspect.signature(original).parameters).index(parameter)

    @functools.wraps(original)
    def jacobian(*arguments: Any, **options: Any) -> Any:
        if not report.is_anything_divided():
            return original(*arguments, **options)
        if tf.executing_eagerly() and not arguments[0]._persistent:
            # In a graph a loop takes the gradient once, as a tape allows that is not persistent.
            return tf.function(functools.partial(jacobian, *arguments, **options), autograph=False)()
        if len(arguments) > place:
            return original(*arguments[:place], False, *arguments[place + 1 :], **options)
        return original(*arguments, **{**options, parameter: False})

    return jacobian


_idle: dict[int, int] = {}  # of each list of variables whose gradients came while nothing was divided, the last step
_steps = itertools.count(1)


def _refuse_idle(variables: Sequence[Any], tape: Any, site: str) -> None:
    """End a job in which the second step begins, and nothing has been divided, though there were rows to divide.

    A step may take several gradients by one tape. What is compiled is traced once, and has one tape for all its steps.
    """
    if report.is_anything_divided():
        return
    number = list_number(variables)
    steps = vars(tape).setdefault("_tfdp_step", itertools.repeat(next(_steps)) if tf.executing_eagerly() else _steps)

    def come() -> bool:
        step = next(steps)
        if _idle.setdefault(number, step) != step and not report.is_anything_divided():
            if not report.are_single_rows():
                raise TfdpError(report.nothing_divided(site))
            if current().topology.rank == 0:
                say_once(_SINGLE)
        return True

    in_python(come, [], tf.bool, [])
