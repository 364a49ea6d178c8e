"""The hooks into Keras 2, Keras 3 and tf-keras: calls of layers, losses that they add, normalisation, embeddings.

All of them are private to Keras' classes or patched there; tests/calls runs on each supported version.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import sys
import weakref
from collections.abc import Callable
from typing import Any

import tensorflow as tf

from ..framework import raw, stream_element
from ..keras import PACKAGES, is_keras
from ..start import live_generators, live_variables
from . import alike, division, guard, local_moments, own_code, replaced, report, sight
from .callee import Callee
from .examples import kind_of
from .kept import Kept
from .keras_losses import hook_losses
from .lookups import hook_embedding
from .names import of_objects
from .row_layers import has_no_variables, works_along_rows
from .sight import Moments
from .stateless import generator_state, of_keras
from .validation import hook_validation

_hooked: set[str] = set()


def hook_layers() -> None:
    """Hook into every Keras that has been imported. One may be at any time: call it now and then."""
    for package in PACKAGES:
        keras: Any = sys.modules.get(package)
        layers = getattr(keras, "layers", None)
        if layers is None or package in _hooked or not hasattr(layers, "Embedding"):
            continue
        _hooked.add(package)
        hook_losses(keras.losses, keras.metrics)
        _hook_calls(layers.Layer)
        hook_embedding(layers.Embedding)
        hook_validation(keras.Model, _kept)
        _hook_building(keras.Sequential)
        normalization = layers.BatchNormalization
        if hasattr(normalization, "_calculate_mean_and_var"):
            _hook_moments_of_keras_2(normalization)
        else:
            _hook_moments(normalization)


def _hook_calls(layer: Any) -> None:
    owner: Any = next(cls for cls in layer.__mro__ if "__call__" in vars(cls))
    original, add_loss = owner.__call__, layer.add_loss

    # With the name of Keras' module, from which AutoGraph knows that it is not to be compiled.
    @functools.wraps(original)
    def called(self: Any, *arguments: Any, **options: Any) -> Any:
        here, call = sight.now(), functools.partial(_within_rows, original, self)
        if here is not None and _is_symbolic(arguments, options):
            with sight.seen(None), sight.undivided():  # a Sequential of Keras 2, which builds itself by its input
                return original(self, *arguments, **options)
        if here is not None:
            if not getattr(self, "built", True) and not has_no_variables(self):
                here.refuse(f"makes the variables of {_name(self)}")
            if not guard.is_seeing() or own_code.other_code(self):
                with replaced.inside(self):
                    return call(*arguments, **options)
            structure = arguments, options
            nested = functools.partial(_nested, self, call, structure)
            return guard.of_layer(nested, lambda: call(*arguments, **options), structure)
        if not _is_built(self):  # it makes its variables, and may not know its sizes before
            with contextlib.nullcontext() if _unbuilt(self) == {id(self)} else sight.undivided():
                results = original(self, *arguments, **options)
            if division.is_due():
                report.building(_name(self))
            _left_unbuilt[self] = _unbuilt(self)
            return results
        if not division.is_due():
            return original(self, *arguments, **options)
        callee = functools.partial(_callee, self, call, is_atom=_is_atom(self, layer))
        return division.called(callee, arguments, options)

    @functools.wraps(add_loss)
    def added(self: Any, *arguments: Any, **options: Any) -> Any:
        here = sight.now()
        if here is not None:
            here.refuse("adds a loss")
        return add_loss(self, *arguments, **options)

    owner.__call__, layer.add_loss = called, added


def _callee(layer: Any, call: Callable[..., Any], *, is_atom: bool) -> Callee:
    code = own_code.code(layer)
    kept = functools.partial(_kept, layer)
    state = own_code.configuration(layer)
    return Callee(call, layer, _name(layer), kept, is_atom, state, code, settings=own_code.numbers_of)


def _is_symbolic(arguments: Any, options: Any) -> bool:
    """Whether it is given no tensors, but what stands for them while a model is built."""
    leaves = tf.nest.flatten((arguments, options))
    return any(cls.__name__ == "KerasTensor" for leaf in leaves for cls in type(leaf).__mro__)


def _within_rows(original: Callable[..., Any], layer: Any, *arguments: Any, **options: Any) -> Any:
    """The call of a layer that must not work along the axis of the batch where it is divided."""
    here = sight.now()
    if here is not None and works_along_rows(layer, _ranks(arguments, options)):
        here.refuse(f"works along the axis of the batch ({_name(layer)})")
    return original(layer, *arguments, **options)


def _ranks(arguments: Any, options: Any) -> list[int]:
    """Of the tensors that are given, where they are known."""
    given = (each.shape.rank for each in tf.nest.flatten((arguments, options)) if isinstance(each, tf.Tensor))
    return [each for each in given if each is not None]


def _hook_building(sequential: Any) -> None:
    """Keras 2: a Sequential that was given no shape builds itself anew where it meets another length, and each time its
    layers take one of the seeds that they count: it meets the length of the batch."""
    original = getattr(sequential, "_build_graph_network_for_inferred_shape", None)
    if original is None:
        return

    @functools.wraps(original)
    def build(self: Any, input_shape: Any, input_dtype: Any = None) -> Any:
        here = sight.now()
        if here is not None and input_shape is not None and len(input_shape):
            input_shape = (here.whole_length(input_shape[0]), *input_shape[1:])
        return original(self, input_shape, input_dtype)

    sequential._build_graph_network_for_inferred_shape = build


# Layers with those of their parts that their last whole call has not come to.
_left_unbuilt: weakref.WeakKeyDictionary[Any, frozenset[int]] = weakref.WeakKeyDictionary()


def _is_built(layer: Any) -> bool:
    """Whether it has made its variables, and so have those of its parts that its calls come to, as far as one has
    shown."""
    return bool(getattr(layer, "built", False)) and _unbuilt(layer) <= _left_unbuilt.get(layer, frozenset())


def _unbuilt(layer: Any) -> frozenset[int]:
    return frozenset(id(each) for each in layer._flatten_layers() if not getattr(each, "built", True))


def _is_atom(given: Any, layer: Any) -> bool:
    """Whether it is, or derives from, one of Keras' own layers that is no model: no script calls its parts."""
    strict = [cls for cls in type(given).__mro__ if issubclass(cls, layer) and cls is not layer]
    return any(is_keras(cls) and not hasattr(cls, "fit") for cls in strict)


def _name(layer: Any) -> str:
    return f"{type(layer).__name__} {layer.name!r}"


def _nested(layer: Any, call: Callable[..., Any], structure: Any, by_rows: tuple[bool, ...]) -> guard.Nested:
    kinds = tuple(map(kind_of, tf.nest.flatten(structure), by_rows))
    key = alike.attributes(layer) if has_no_variables(layer) else (id(layer), own_code.configuration(layer)), kinds
    kept = functools.partial(_kept, layer)
    return guard.Nested(key, layer, _name(layer), call, kept, structure, by_rows)


def _kept(layer: Any) -> Kept:
    """What a look at the layer's call may change."""
    objects = list(layer._flatten_layers())
    needed = [raw(each) for each in (*layer.variables, *generator_state())]
    others = map(raw, (*live_variables(), *live_generators()))
    variables = {id(each.handle): each for each in (*needed, *others)}
    writable = [each for each in variables.values() if stream_element(each.name) is not None]
    normalizing = (each for each in objects if any(cls.__name__ in _NORMALIZING for cls in type(each).__mro__))
    writable += [raw(variable) for each in normalizing for variable in each.non_trainable_variables]
    return Kept(needed, list(variables.values()), [*of_objects(objects), *of_keras()], writable)


_NORMALIZING = ("BatchNormalization", "BatchNormalizationBase")


def _hook_moments(normalization: Any) -> None:
    """Keras 3: `_moments(inputs, mask)` gives mean and variance by feature."""
    original = normalization._moments

    @functools.wraps(original)
    def moments(self: Any, inputs: Any, mask: Any) -> Any:
        here = sight.now()
        if here is None:
            return original(self, inputs, mask)
        local_moments.assigns(self.moving_mean, self.moving_variance)
        axes = [axis % inputs.shape.rank for axis in self._reduction_axes]
        if mask is None:
            found = here.normalised(inputs, None, axes, live=False)
            return tf.squeeze(found.mean, axes), tf.squeeze(found.deviations / found.count, axes)
        found = here.normalised(inputs, tf.cast(tf.expand_dims(mask, -1), inputs.dtype), axes, live=True)
        weight = found.count + importlib.import_module(_package(self)).backend.epsilon()
        mean = found.mean * found.count / weight
        deviations = found.deviations + found.count * tf.math.squared_difference(found.mean, mean)
        return tf.squeeze(mean), tf.squeeze(deviations / weight)

    normalization._moments = moments


def _hook_moments_of_keras_2(normalization: Any) -> None:
    """Keras 2 and tf-keras: `_calculate_mean_and_var`, and TensorFlow's fused operation for images."""
    owner: Any = next(cls for cls in normalization.__mro__ if "_calculate_mean_and_var" in vars(cls))
    original = owner._calculate_mean_and_var

    @functools.wraps(original)
    def moments(self: Any, inputs: Any, reduction_axes: Any, keep_dims: bool, mask: Any = None) -> Any:
        here = sight.now()
        if here is None:
            return original(self, inputs, reduction_axes, keep_dims, mask=mask)
        axes = [axis % inputs.shape.rank for axis in reduction_axes]
        half = inputs.dtype in (tf.float16, tf.bfloat16)
        values = tf.cast(inputs, tf.float32) if half else inputs
        weights = None if mask is None else tf.expand_dims(tf.cast(mask, values.dtype), -1)
        found = here.normalised(values, weights, axes, live=weights is not None)
        both = found.mean, found.deviations / found.count
        mean, variance = both if keep_dims else (tf.squeeze(each, axes) for each in both)
        return tf.cast(mean, inputs.dtype), tf.cast(variance, inputs.dtype)

    owner._calculate_mean_and_var = moments
    for name in ("_assign_moving_average", "_assign_new_value"):
        setattr(owner, name, _assigning(getattr(owner, name)))
    module = importlib.import_module(owner.__module__)
    module.tf.compat.v1.nn.fused_batch_norm = _fused(module.tf.compat.v1.nn.fused_batch_norm)


def _assigning(original: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(original)
    def assign(self: Any, variable: Any, *values: Any) -> Any:
        if sight.now() is not None:
            local_moments.assigns(variable)
        return original(self, variable, *values)

    return assign


def _fused(original: Callable[..., Any]) -> Callable[..., Any]:
    """Like the operation, whose running variance has Bessel's correction."""

    @functools.wraps(original)
    def fused_batch_norm(x: Any, scale: Any, offset: Any, **options: Any) -> Any:
        here = sight.now()
        if here is None or not options.get("is_training", True):
            return original(x, scale, offset, **options)
        channel = 1 if options["data_format"].startswith("NC") else x.shape.rank - 1
        axes = [axis for axis in range(x.shape.rank) if axis != channel]
        found: Moments = here.normalised(tf.cast(x, tf.float32), None, axes, live=True)
        kept = [size if axis == channel else 1 for axis, size in enumerate(x.shape)]
        factors = tf.reshape(scale, kept), tf.reshape(offset, kept)
        variance = found.deviations / found.count
        normal = tf.nn.batch_normalization(
            tf.cast(x, tf.float32), found.mean, variance, factors[1], factors[0], options["epsilon"]
        )
        count = tf.reshape(found.count, [-1])[0]
        correction = count / tf.maximum(count - 1, 1)
        share = options.get("exponential_avg_factor")
        share = 1.0 if share is None else share
        mean = options["mean"] * (1 - share) + tf.reshape(found.mean, [-1]) * share
        running = options["variance"] * (1 - share) + tf.reshape(variance, [-1]) * correction * share
        return tf.cast(normal, x.dtype), mean, running

    return fused_batch_norm


def _package(thing: Any) -> str:
    return next(root for cls in type(thing).__mro__ if (root := cls.__module__.split(".")[0]) in PACKAGES)
