"""Averaging, put on one optimizer: on the road that all its updates take, and on those of what Keras puts around it.

The instance gets its own `apply` (Keras 3) or `apply_gradients` (all others), which averages and then calls that of the
class. No class is made, so that configurations, saved models and checkpoints are those of the optimizer.

A LossScaleOptimizer around it calls the inner optimizer only where it found no infinity: there it would be too late for
a collective, since the other ranks may have found one (tensorflow#46863). So gradients are averaged at the
LossScaleOptimizer's own road instead.
"""

import contextlib
import copy
import importlib
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from ..foundation import call_site
from ..framework import is_variable, name_of, stream_element, transparent
from ..gradients import Accumulation, Exchange, Gradient, check_kinds, forget_marks, refuse_marked, taken_back
from ..job import runs_as_written
from ..keras import KEY, PACKAGES, averaging_of, inner_of, road_of, variables_of
from ..start import watched

_ORIGINAL = "_tfdp_original"


class Averaging:
    """What an optimizer's gradients go through before they are applied."""

    def __init__(self, exchange: Exchange, passes: int, mean_of_passes: bool) -> None:
        self.exchange, self._passes, self._mean_of_passes = exchange, passes, mean_of_passes
        self._accumulation = Accumulation(passes, mean_of_passes)
        self._compared: dict[tuple[int, ...], list[Any]] = {}

    def for_a_copy(self) -> "Averaging":
        """The same for a copy of the optimizer, which adds up passes for itself."""
        return Averaging(self.exchange, self._passes, self._mean_of_passes)

    def update(
        self, optimizer: Any, gradients: Sequence[Gradient], variables: Sequence[Any], apply: Callable[[list[Any]], Any]
    ) -> Any:
        """`apply` with what all ranks' gradients come to; every so many calls, where passes are added up."""
        site = call_site()
        given = [_as_tensor(each) for each in gradients]
        if not runs_as_written():
            refuse_marked(variables, site)
        elif taken_back(variables):  # Horovod's optimizer leaves them to the tape
            return apply(given)
        names = [_name(variables, index) for index in range(len(given))]
        check_kinds(given, names, site)
        if self._passes == 1:
            return apply(self.combined(optimizer, given, variables, names, site))
        _build(optimizer, variables)

        def all_passes(sums: Sequence[Gradient]) -> None:
            apply(self.combined(optimizer, sums, variables, names, site))

        self._accumulation.add(given, variables, all_passes, lambda: optimizer.iterations.assign_add(1))
        return optimizer.iterations

    def _held(self, optimizer: Any, variables: Sequence[Any]) -> list[Any]:
        """What is compared over the ranks before its first update: the same list each time.

        An optimizer makes its slots at the first update, and ranks may trace a function again at different steps.
        """
        found = [each for each in (*variables, *variables_of(optimizer)) if _is_comparable(each)]
        return self._compared.setdefault(tuple(map(id, variables)), found)

    def combined(
        self, optimizer: Any, given: Sequence[Gradient], variables: Sequence[Any], names: Sequence[str], site: str
    ) -> list[Gradient]:
        """What all ranks' gradients come to; the first time, the variables are compared over the ranks."""
        job = self.exchange.job
        if job.topology.size == 1:
            return self.exchange.alone(given)
        with tf.name_scope("distributed_optimizer"):
            sparse = self.exchange.sparse_of(zip(variables, given, strict=False))
            watch = watched(self._held(optimizer, variables), sparse, job)
            # Also what is sent for a gradient that is none, and depends on nothing, comes after the comparison.
            with tf.control_dependencies(watch.compared(given) if watch else []):
                return self.exchange.combined(given, names, site, watch)


def put_on(optimizer: Any, averaging: Averaging) -> None:
    """From now on the optimizer's gradients go through `averaging`."""
    road = road_of(optimizer)
    assert road is not None
    own = _averaged_apply if road == "apply" else _averaged_apply_gradients
    methods = {road: own, "__deepcopy__": _deep_copy}
    vars(optimizer).update({name: types.MethodType(method, optimizer) for name, method in methods.items()})
    vars(optimizer)[KEY] = averaging
    _cover_loss_scaling(optimizer, road)
    forget_marks()


def _deep_copy(optimizer: Any, memo: dict[int, Any]) -> Any:
    """What `copy.deepcopy` makes of the optimizer: it looks for `__deepcopy__` on the instance.

    Keras 3 makes a new optimizer from the configuration, Keras 2 copies what the instance holds.
    """
    road, averaging = road_of(optimizer), averaging_of(optimizer)
    assert road is not None
    assert averaging is not None
    put = {name: vars(optimizer).pop(name) for name in (road, "__deepcopy__", KEY)}
    try:
        found = copy.deepcopy(optimizer, memo)
    finally:
        vars(optimizer).update(put)
    put_on(found, averaging.for_a_copy())
    return found


@transparent
def _averaged_apply(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
    """`apply` of an instance of Keras 3."""
    return _apply(optimizer, averaging_of(optimizer), type(optimizer).apply, grads, trainable_variables)


@transparent
def _averaged_apply_gradients(optimizer: Any, grads_and_vars: Any, *arguments: Any, **options: Any) -> Any:
    """`apply_gradients` of an instance of Keras 2, tf-keras or their legacy optimizers.

    `skip_gradients_aggregation` is about a tf.distribute strategy, which there is none of here.
    """
    original = type(optimizer).apply_gradients
    return _apply_gradients(optimizer, averaging_of(optimizer), original, grads_and_vars, *arguments, **options)


def _apply(optimizer: Any, averaging: Averaging | None, original: Any, grads: Any, trainable_variables: Any) -> Any:
    gradients = list(grads)
    if averaging is None or not gradients or _is_held(optimizer):
        return original(optimizer, gradients, trainable_variables)
    if trainable_variables is None:
        # What Keras itself goes by then; it says so if it has not been built.
        variables = list(getattr(optimizer, "_trainable_variables", ()))
    else:
        variables = trainable_variables = list(trainable_variables)

    def apply(found: list[Any]) -> Any:
        with _held(inner_of(optimizer)):
            return original(optimizer, found, trainable_variables)

    return averaging.update(optimizer, gradients, variables, apply)


def _apply_gradients(
    optimizer: Any,
    averaging: Averaging | None,
    original: Any,
    grads_and_vars: Any,
    *arguments: Any,
    **options: Any,
) -> Any:
    pairs = list(grads_and_vars)
    if averaging is None or not pairs or _is_held(optimizer):
        return original(optimizer, pairs, *arguments, **options)
    variables = [variable for _, variable in pairs]

    def apply(found: list[Any]) -> Any:
        with _held(inner_of(optimizer)):
            return original(optimizer, list(zip(found, variables, strict=True)), *arguments, **options)

    return averaging.update(optimizer, [gradient for gradient, _ in pairs], variables, apply)


def _cover_loss_scaling(optimizer: Any, road: str) -> None:
    """Average at the road of a LossScaleOptimizer that has, or will get, an averaged optimizer inside."""
    for cls in _loss_scalers(optimizer, road):
        original = vars(cls).get(road)
        if original is None or hasattr(original, _ORIGINAL):
            continue
        covered = _covered_apply(original) if road == "apply" else _covered_apply_gradients(original)
        setattr(covered, _ORIGINAL, original)
        setattr(cls, road, covered)


def _covered_apply(original: Any) -> Any:
    @transparent
    def apply(self: Any, grads: Any, trainable_variables: Any = None) -> Any:
        inner = None if averaging_of(self) else averaging_of(inner_of(self))
        return _apply(self, inner, original, grads, trainable_variables)

    return apply


def _covered_apply_gradients(original: Any) -> Any:
    @transparent
    def apply_gradients(self: Any, grads_and_vars: Any, *arguments: Any, **options: Any) -> Any:
        inner = None if averaging_of(self) else averaging_of(inner_of(self))
        return _apply_gradients(self, inner, original, grads_and_vars, *arguments, **options)

    return apply_gradients


def _loss_scalers(optimizer: Any, road: str) -> list[type]:
    """The LossScaleOptimizers of the optimizer's Keras."""
    roots = [cls.__module__.split(".")[0] for cls in type(optimizer).__mro__]
    package = next(root for root in roots if root in PACKAGES)
    if road == "apply":
        return [importlib.import_module(package).optimizers.LossScaleOptimizer]
    # The class for today's optimizers of Keras 2 has no public name: the public one makes instances of it.
    module = importlib.import_module(f"{package}.src.mixed_precision.loss_scale_optimizer")
    return [module.LossScaleOptimizer, module.LossScaleOptimizerV3]


class _Held(threading.local):
    """Optimizers inside one that has averaged for them."""

    def __init__(self) -> None:
        self.optimizers: list[Any] = []


_inside = _Held()


@contextlib.contextmanager
def _held(optimizer: Any) -> Iterator[None]:
    _inside.optimizers.append(optimizer)
    try:
        yield
    finally:
        _inside.optimizers.pop()


def _is_held(optimizer: Any) -> bool:
    return any(each is optimizer for each in _inside.optimizers)


def _as_tensor(gradient: Any) -> Gradient:
    """Keras takes arrays too."""
    if gradient is None or isinstance(gradient, tf.__internal__.CompositeTensor):
        return gradient
    return tf.convert_to_tensor(gradient)


def _name(variables: Sequence[Any], index: int) -> str:
    held = variables[index] if index < len(variables) else None
    return name_of(held) if is_variable(held) else f"gradient {index}"


def _is_comparable(thing: Any) -> bool:
    if not is_variable(thing) or stream_element(thing.name) is not None:
        return False
    dtype = tf.as_dtype(thing.dtype)
    return bool(dtype.is_floating or dtype.is_integer or dtype.is_bool or dtype.is_complex)


def _build(optimizer: Any, variables: Sequence[Any]) -> None:
    """Make the optimizer's variables: in a branch, where accumulated gradients are applied, Keras 3 cannot."""
    if road_of(optimizer) == "apply" and not optimizer.built:
        optimizer.build(list(variables))
        optimizer.built = True
