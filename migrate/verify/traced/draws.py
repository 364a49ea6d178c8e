"""Draws inside the model, made comparable: of what the reference drew for the global batch, rank r takes rows `r::N`.

A draw belongs to a step and to the functions that led to it and is counted there, because lines and the draws in
between may differ: only rank 0 draws what is under a guard. What is not N times as long in the reference stays as it is
in life.
"""

import functools
import hashlib
import inspect
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from ..record import DRAWN, Array
from . import keras2

_LARGEST = 2**24  # elements; a larger tensor is data, of which no rank draws its own rows
_GENERATED = "__autograph_generated_file"
_BRANCHES = ("loop_body", "if_body", "else_body", "loop_test")  # AutoGraph's, whose numbers depend on other statements
Site = tuple[str, ...]


class Draws:
    """Wraps what draws random numbers: in the reference to write them down, on the ranks to take from them."""

    def __init__(
        self,
        script: Path,
        folder: Path,
        place: tuple[int, int] | None,
        moment: Callable[[], tuple[int, int]],
        changed: Callable[[str], Callable[[], None]],
    ) -> None:
        """folder: the reference's trace. place: rank and size, None in the reference itself. moment: the step and the
        number of gradients taken in it. changed: asked where a draw is in the script; what it gives notes the draw."""
        self._script = str(script)
        self._folder = folder / "draws"
        self._place = place
        self._moment = moment
        self._changed = changed
        self._lines: dict[Site, list[tuple[int, ...]]] = {}
        self._counts: Counter[str] = Counter()
        self._drawn: WeakKeyDictionary[Any, Counter[str]] = WeakKeyDictionary()
        self.taken: Callable[[Array], Array] = lambda drawn: drawn  # what becomes of what this process takes

    def install(self) -> None:
        """Wrap TensorFlow's functions and generators, and Keras' layers that draw."""
        if self._place is None:
            self._folder.mkdir(parents=True)
        for name in ("normal", "truncated_normal"):
            setattr(tf.random, name, self._scaled(getattr(tf.random, name), "mean", "stddev"))
        tf.random.uniform = self._uniform(tf.random.uniform)
        tf.random.Generator.normal = self._plain(tf.random.Generator.normal)
        tf.random.Generator.uniform = self._plain(tf.random.Generator.uniform)
        tf.nn.dropout = self._masked(tf.nn.dropout)
        if (generator := keras2.generator()) is not None:
            self._install_in_keras2(generator)
            return
        from keras.src.backend.tensorflow import random as layers
        from keras.src.random.seed_generator import SeedGenerator

        for name in ("normal", "uniform", "truncated_normal"):
            setattr(layers, name, self._plain(getattr(layers, name), SeedGenerator))
        layers.dropout = self._masked(layers.dropout)

    def _install_in_keras2(self, generator: type) -> None:
        """Layers draw by a generator of their own class, and flip images by TensorFlow's functions."""
        for name in ("random_normal", "random_uniform", "truncated_normal"):
            setattr(generator, name, self._by_layers(getattr(generator, name)))
        generator.dropout = self._dropped_by_layers(generator.dropout)  # type: ignore[attr-defined]
        images = keras2.images()
        for name, axis in (("stateless_random_flip_left_right", 2), ("stateless_random_flip_up_down", 1)):
            setattr(images, name, self._flipped(getattr(images, name), axis))

    # --- the functions ------------------------------------------------------------------------------------------------

    def _scaled(self, draw: Callable[..., Any], mean: str, stddev: str) -> Callable[..., Any]:
        """`normal` and its like: parameters stay outside what is exchanged, so that gradients reach them."""
        signature = inspect.signature(draw)

        def drawn(*args: Any, **options: Any) -> Any:
            given = signature.bind(*args, **options).arguments
            location, scale = given.pop(mean, 0.0), given.pop(stddev, 1.0)
            value = self._exchanged(draw(**given))
            return value * tf.cast(scale, value.dtype) + tf.cast(location, value.dtype)

        return _as(draw, drawn)

    def _uniform(self, draw: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(draw)

        def drawn(*args: Any, **options: Any) -> Any:
            given = signature.bind(*args, **options).arguments
            if tf.as_dtype(given.get("dtype", tf.float32)).is_integer:
                return self._exchanged(draw(**given))
            low, high = given.pop("minval", 0), given.pop("maxval", None)
            value = self._exchanged(draw(**given))
            low, high = tf.cast(low, value.dtype), tf.cast(1 if high is None else high, value.dtype)
            return value * (high - low) + low

        return _as(draw, drawn)

    def _plain(self, draw: Callable[..., Any], seeded: type | None = None) -> Callable[..., Any]:
        """A draw whose result is exchanged as it is; with `seeded`, only draws by generators of that class."""
        signature = inspect.signature(draw)

        def drawn(*args: Any, **options: Any) -> Any:
            value = draw(*args, **options)
            seed = signature.bind(*args, **options).arguments.get("seed")
            initial = seeded is not None and seed is not None and not isinstance(seed, seeded)
            return value if initial else self._exchanged(value)

        return _as(draw, drawn)

    def _masked(self, dropout: Callable[..., Any]) -> Callable[..., Any]:
        signature = inspect.signature(dropout)
        first = next(iter(signature.parameters))

        def dropped(*args: Any, **options: Any) -> Any:
            given = signature.bind(*args, **options).arguments
            inputs = tf.convert_to_tensor(given.pop(first))
            return inputs * self._exchanged(dropout(tf.ones_like(inputs), **given))

        return _as(dropout, dropped)

    def _by_layers(self, draw: Callable[..., Any]) -> Callable[..., Any]:
        """A method of Keras 2's generator; those without a state draw initial values."""

        def drawn(this: Any, *args: Any, **options: Any) -> Any:
            value = draw(this, *args, **options)
            return value if keras2.initialises(this) else self._exchanged(value)

        return _as(draw, drawn)

    def _dropped_by_layers(self, dropout: Callable[..., Any]) -> Callable[..., Any]:
        def dropped(this: Any, inputs: Any, *args: Any, **options: Any) -> Any:
            inputs = tf.convert_to_tensor(inputs)
            return inputs * self._exchanged(dropout(this, tf.ones_like(inputs), *args, **options))

        return _as(dropout, dropped)

    def _flipped(self, flip: Callable[..., Any], axis: int) -> Callable[..., Any]:
        """A flip of some images of a batch: which ones is seen by flipping images of two pixels, 0 and 1."""

        def flipped(image: Any, seed: Any) -> Any:
            if image.shape.rank != 4:
                return flip(image, seed)
            pixels = [2 if place == axis else 1 for place in (1, 2)]
            two = tf.reshape(tf.constant([0.0, 1.0]), [1, *pixels, 1])
            two = tf.broadcast_to(two, [tf.shape(image)[0], *pixels, 1])
            chosen = self._exchanged(flip(two, seed)[:, :1, :1])
            return tf.where(chosen > 0, tf.reverse(image, [axis]), image)

        return _as(flip, flipped)

    # --- the exchange -------------------------------------------------------------------------------------------------

    def _exchanged(self, value: Any) -> Any:
        site = self._site()
        if site is None or not tf.is_tensor(value):
            return value
        if tf.executing_eagerly():
            return tf.constant(self._exchange(site, self._changed(DRAWN), value.numpy()), value.dtype)
        graph = tf.compat.v1.get_default_graph()
        drawn = self._drawn.setdefault(graph, Counter())
        exchange = functools.partial(self._exchange, f"{site}-{drawn[site]}", self._changed(DRAWN))
        drawn[site] += 1
        # In their order with the steps that are recorded: nothing else orders operations that call Python.
        earlier = [each for each in graph.get_operations() if each.op_def is not None and each.op_def.is_stateful]
        with tf.control_dependencies(earlier):
            taken = tf.numpy_function(exchange, [value], value.dtype)
        taken.set_shape(value.shape)
        return taken

    def _exchange(self, site: str, noted: Callable[[], None], value: Array) -> Array:
        """Write a value of the reference down, or replace one of a rank by its rows."""
        step, calls = self._moment()
        # What is drawn before the first step are the variables' initial values, or is drawn again later.
        if step:
            noted()
        place = f"{site}-{step}-{calls}"
        number = self._counts[place]
        self._counts[place] += 1
        if value.ndim == 0 or value.dtype.kind not in "fiu":
            return value
        if self._place is None:
            if value.size <= _LARGEST:
                np.save(self._file(place, number), value)
            return value
        # The first call of a graph may draw more than once, as variables are made: each time the same.
        while step == 0 and number and not self._file(place, number).exists():
            number -= 1
        file = self._file(place, number)
        return self.taken(_rows(value, np.load(file), *self._place)) if file.exists() else value

    def _file(self, place: str, number: int) -> Path:
        return self._folder / f"{place}-{number}.npy"

    def _site(self) -> str | None:
        """A name for the functions of the script that are running, the same in the reference and on the ranks."""
        names: list[str] = []
        lines: list[int] = []
        frame = sys._getframe(1)
        while frame is not None:
            path, name = frame.f_code.co_filename, frame.f_code.co_name
            if "tensorflow/python/data/" in path:
                return None  # drawn by the input pipeline, ahead of time and in no order
            if (_GENERATED in path and name.startswith("tf__")) or path == self._script:
                names.append(name.removeprefix("tf__"))
                lines.append(frame.f_lineno)
            elif _GENERATED in path and name.startswith(_BRANCHES):
                lines.append(frame.f_lineno)
            frame = frame.f_back  # type: ignore[assignment]
        if not names:
            return None
        known = self._lines.setdefault(tuple(names), [])
        if tuple(lines) not in known:
            known.append(tuple(lines))
        text = repr((names, known.index(tuple(lines))))
        return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _rows(value: Array, reference: Array, rank: int, size: int) -> Array:
    """A rank's rows of the reference's draw, where that is `size` times as long as the rank's own."""
    batch = reference.shape[1:] == value.shape[1:] and len(reference) == size * len(value)
    return np.ascontiguousarray(reference[rank::size]) if batch else value


def _as(original: Callable[..., Any], changed: Callable[..., Any]) -> Callable[..., Any]:
    functools.update_wrapper(changed, original)
    return tf.autograph.experimental.do_not_convert(changed)  # type: ignore[no-any-return]
