"""What a look draws is drawn again afterwards: a process of one does not do what is done there.

Other threads draw meanwhile, those of a pipeline that runs ahead; so the one generator of Python, of NumPy and of
TensorFlow is not put back, but the thread that looks draws from copies. Code of the script's own that draws in Python
is not looked at; frameworks' code asks for `random.…` and `np.random.…` by these names.
"""

from __future__ import annotations

import contextlib
import functools
import random
import threading
from collections.abc import Callable, Iterator
from types import ModuleType
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf


class _Generators(NamedTuple):
    """What numbers come from: `counts` says how many seeds were asked for, by their kinds."""

    python: Any
    numpy: Any
    tensorflow: Any
    counts: dict[str, int]

    def copied(self) -> _Generators:
        of_numpy = np.random.RandomState(np.random.MT19937(0))  # a seed, lest it asks for one
        of_numpy.set_state(self.numpy.get_state())
        return _Generators(_copied(self.python), of_numpy, _copied(self.tensorflow), dict(self.counts))


class _Thread(threading.local):
    own: _Generators | None = None


class _ByThread:
    """A generator of which a thread that looks has its own."""

    def __init__(self, name: str, common: Any) -> None:
        self._name, self.common = name, common

    def __getattr__(self, attribute: str) -> Any:
        own = _thread.own
        return getattr(self.common if own is None else getattr(own, self._name), attribute)


_thread = _Thread()
_counts: dict[str, int] = {}
_lock = threading.Lock()
_looking: list[None] = []  # one for each look of any thread


def counts() -> dict[str, int]:
    """How many seeds of each kind were asked for, as this thread is to count."""
    return _counts if _thread.own is None else _thread.own.counts


@contextlib.contextmanager
def unspent() -> Iterator[None]:
    """What this thread draws inside, it draws again afterwards; other threads draw as if it had drawn nothing."""
    before = _thread.own
    with _lock:
        if not _looking:
            _install()
        _looking.append(None)
    try:
        _thread.own = (before or _common()).copied()
        yield
    finally:
        _thread.own = before
        with _lock:
            _looking.pop()
            if not _looking:
                _uninstall()


def spent() -> tuple[Any, ...]:
    """What the next numbers follow from that are drawn outside of looks, as `spend_from` takes it."""
    found = _common()
    of_tensorflow = found.tensorflow.getstate() if found.tensorflow is not None else None
    return found.python.getstate(), found.numpy.get_state(), of_tensorflow, dict(found.counts)


def spend_from(state: tuple[Any, ...]) -> None:
    """The next numbers are those that followed when `spent` was asked."""
    found = _common()
    of_python, of_numpy, of_tensorflow, counted = state
    found.python.setstate(of_python)
    found.numpy.set_state(of_numpy)
    if found.tensorflow is not None and of_tensorflow is not None:
        found.tensorflow.setstate(of_tensorflow)
    found.counts.clear()
    found.counts.update(counted)


def _copied(generator: Any) -> Any:
    if generator is None:
        return None
    copied = random.Random(0)
    copied.setstate(generator.getstate())
    return copied


def _common() -> _Generators:
    of_tensorflow = _eager_generator()
    common = of_tensorflow.common if isinstance(of_tensorflow, _ByThread) else of_tensorflow
    return _Generators(random._inst, np.random.mtrand._rand, common, _counts)


# --- by name ----------------------------------------------------------------------------------------------------------

_replaced: list[tuple[ModuleType, str, Any]] = []


def _install() -> None:
    for module, name, method in _drawing():
        original = vars(module)[name]
        _replaced.append((module, name, original))
        setattr(module, name, _by_thread(original, "python" if module is random else "numpy", method))
    generator = _eager_generator()
    if generator is not None:
        _set_eager_generator(_ByThread("tensorflow", generator))


def _uninstall() -> None:
    while _replaced:
        setattr(*_replaced.pop())
    generator = _eager_generator()
    if isinstance(generator, _ByThread):
        _set_eager_generator(generator.common)


def _drawing() -> list[tuple[ModuleType, str, str]]:
    """The functions that draw from the one generator of a module, and which method of it each is."""
    singletons = ((random, random._inst), (np.random, np.random.mtrand._rand))
    bound = [(m, name) for m, one in singletons for name, f in vars(m).items() if getattr(f, "__self__", None) is one]
    others = [(np.random, "seed", "seed"), (np.random, "ranf", "random_sample"), (np.random, "sample", "random_sample")]
    return [*((module, name, name) for module, name in bound), *others]


def _by_thread(original: Callable[..., Any], held: str, method: str) -> Callable[..., Any]:
    @functools.wraps(original)
    def drawn(*arguments: Any, **options: Any) -> Any:
        own = _thread.own
        draw = original if own is None else getattr(getattr(own, held), method)
        return draw(*arguments, **options)

    unconverted: Callable[..., Any] = tf.autograph.experimental.do_not_convert(drawn)
    return unconverted


def _eager_generator() -> Any:
    """TensorFlow's, from which eager draws and draws of graphs take their seeds. It has no public name; there is none
    before a seed is set."""
    from tensorflow.python.eager import context

    return getattr(context.context(), "_rng", None)


def _set_eager_generator(generator: Any) -> None:
    from tensorflow.python.eager import context

    context.context()._rng = generator
