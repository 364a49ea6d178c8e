"""What the training steps of this process get to read, noted without a change to it."""

import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any, TypeAlias
from weakref import WeakKeyDictionary

import numpy as np
import tensorflow as tf

from ..record import Array, Delivery, DeliveryKind, hashes, write_examples
from . import iterators, keras2
from .frames import KERAS, frames, inside

# Operations that draw by these names, in the functions of a pipeline; a shuffle is none of them.
_DRAWING = ("Random", "StatelessRandom", "StatefulRandom", "Multinomial", "SampleDistortedBoundingBox")
_CALLING = ("If", "While", "Case", "Call", "Dataset", "DatasetV2")
_APART = frozenset({"train_on_batch", "predict"})
# In a site, between the line that reads and the functions of Keras through which it does.
_THROUGH = ">"
# Once the pipelines have fed that many steps, arguments are not looked at any more: they come from there.
_FED = 2
# The kind, the site, which pass over the data at the site, whether random numbers are drawn, the rows of each part.
_Element: TypeAlias = tuple[DeliveryKind, str, int, bool, tuple[Array, ...]]


class Examples:
    """Watches `tf.data` iterators, and the arguments of `tf.function`s while no iterator feeds the training."""

    def __init__(self, folder: Path, guard: Callable[[Callable[[], None]], None]) -> None:
        """folder: the trace of this process."""
        self._folder = folder
        self._guard = guard
        self._lock = threading.Lock()
        self._pending: list[_Element] = []
        self._computed: list[Delivery] = []
        self._fed = 0
        self._arguments: Any = None
        self._turns: WeakKeyDictionary[Any, tuple[str, int]] = WeakKeyDictionary()
        self._passes: dict[str, int] = {}
        self._drawing: WeakKeyDictionary[Any, bool] = WeakKeyDictionary()

    def install(self) -> None:
        """Wrap iterators of datasets, and calls of `tf.function`s. AutoGraph's loops over datasets ask no iterator."""
        iterators.wrap(self._delivering)
        begin = tf.data.Dataset.__iter__

        def __iter__(this: Any) -> Any:  # noqa: N807
            made = begin(this)
            self._drawing[made] = self._draws(this)
            return made

        tf.data.Dataset.__iter__ = tf.autograph.experimental.do_not_convert(__iter__)
        self._watch_calls()

    def watch_sharded_batches(self) -> None:
        """Wrap Python loops over batches of a dataset that the runtime shards; the reference's are over a dataset."""
        # Not at the top: all instruments are in place before anything of the runtime is imported.
        from ....runtime.data import ShardedBatches

        elements = ShardedBatches._elements

        def _elements(this: Any) -> Iterator[Any]:
            loop, source = sys._getframe(1), this._stream._source
            made = elements(this)
            site = _site(loop.f_back) if loop.f_back is not None and loop.f_code.co_name == "__iter__" else None
            if site is None or not isinstance(source, tf.data.Dataset):
                return made
            turn, drawn = self._turn(made, site), self._draws(source)
            return (self._deliver(site, turn, drawn, element) for element in made)

        ShardedBatches._elements = _elements  # type: ignore[assignment,method-assign]

    def entered(self, step: int) -> None:
        """The outermost tape of a step is entered: what was delivered since the last time is what it computes."""
        with self._lock:
            pending, self._pending = self._pending, []
            arguments, self._arguments = self._arguments, None
        if pending:
            self._fed += 1
        elif arguments is not None and self._fed < _FED:
            parts = _parts(arguments[1])
            pending = [("argument", arguments[0], 0, False, parts)] if parts else []
        if pending:
            self._computed = _of_one_pass(step, pending)

    def taken(self) -> None:
        """A gradient is taken: what was delivered before its tape is what it trains on. A loop that validates may enter
        a tape, too."""
        if self._computed:
            write_examples(self._folder, self._computed)
        self._computed = []

    # --- datasets -----------------------------------------------------------------------------------------------------

    def _delivering(self, following: Callable[[Any], Any]) -> Callable[[Any], Any]:
        def delivered(this: Any) -> Any:
            element = following(this)
            site = _site(sys._getframe(1))
            if site is not None:
                eager = tf.executing_eagerly()
                turn = self._turn(this, site) if eager else 0
                return self._deliver(site, turn, self._drawing.get(this, False) if eager else False, element)
            return element

        delivered.__name__ = following.__name__
        return tf.autograph.experimental.do_not_convert(delivered)  # type: ignore[no-any-return]

    def _deliver(self, site: str, turn: int, drawn: bool, element: Any) -> Any:
        """Note an element now, or in a graph whenever it comes. Returns it; in a graph not before it is noted."""
        flat = tf.nest.flatten(element, expand_composites=False)
        parts = [part for part in flat if _has_rows(part)]

        def note(*values: Any) -> Any:
            def noted() -> None:
                rows = tuple(hashes(np.asarray(value)) for value in values)
                with self._lock:
                    self._pending.append(("stream", site, turn, drawn, rows))

            self._guard(noted)
            return np.int64(0)

        if tf.executing_eagerly():
            note(*(part.numpy() for part in parts))
            return element
        with tf.control_dependencies([tf.numpy_function(note, parts, tf.int64)]):
            return tf.nest.pack_sequence_as(element, [tf.identity(one) if _has_rows(one) else one for one in flat])

    def _turn(self, iterator: Any, site: str) -> int:
        """Which iterator of its site this is."""
        if iterator not in self._turns:
            self._turns[iterator] = (site, self._passes.get(site, 0))
            self._passes[site] = self._passes.get(site, 0) + 1
        return self._turns[iterator][1]

    def _draws(self, dataset: Any) -> bool:
        """Whether numbers are drawn at random in a pipeline: by `Dataset.random`, or in a function it maps."""
        pending, seen = [dataset], set()
        while pending:
            one = pending.pop()
            if id(one) in seen:
                continue
            seen.add(id(one))
            if one not in self._drawing:
                functions = [wrapped.function for wrapped in one._functions()]
                self._drawing[one] = "Random" in type(one).__name__ or any(map(_drawing, functions))
            if self._drawing[one]:
                return True
            pending.extend(one._inputs())
        return False

    # --- arguments ----------------------------------------------------------------------------------------------------

    def _watch_calls(self) -> None:
        kind = type(tf.function(lambda: None))
        call = kind.__call__

        def __call__(this: Any, *args: Any, **options: Any) -> Any:  # noqa: N807
            if self._fed >= _FED or self._arguments is not None or not tf.executing_eagerly():
                return call(this, *args, **options)
            self._arguments = (getattr(this, "__name__", ""), (args, options))
            try:
                return call(this, *args, **options)
            finally:
                self._arguments = None

        kind.__call__ = tf.autograph.experimental.do_not_convert(__call__)


def _of_one_pass(step: int, pending: Sequence[_Element]) -> list[Delivery]:
    """Without what the same line has read of other passes: of validation data, where one loop trains and validates."""
    _, here, this, _, _ = pending[-1]
    kept = [element for element in pending if element[1] != here or element[2] == this]
    end = len(kept) - 1
    return [
        Delivery(step, kind, site, turn, number == end, drawn, parts)
        for number, (kind, site, turn, drawn, parts) in enumerate(kept)
    ]


def _drawing(function: Any) -> bool:
    operations = [operation.type for operation in function.graph.get_operations()]
    # What has constants in it may be large: it is written out only to see the functions that it calls.
    if any(name.endswith(_CALLING) for name in operations):
        called = function.graph.as_graph_def().library.function
        operations += [node.op for each in called for node in each.node_def]
    return any(name.startswith(_DRAWING) for name in operations)


def _parts(arguments: Any) -> tuple[Array, ...]:
    parts = [part for part in tf.nest.flatten(arguments) if isinstance(part, np.ndarray) or _has_rows(part)]
    return tuple(hashes(np.asarray(part)) for part in parts if part.ndim)


def _has_rows(part: Any) -> bool:
    return (
        isinstance(part, tf.Tensor) and part.shape.rank not in (0, None) and part.dtype not in (tf.variant, tf.resource)
    )


def _site(frame: FrameType) -> str | None:
    """The line that asks for an element, and what of Keras is between: one line may train and validate.

    None where the runtime reads for itself, or a reference's function for it; it may also stand between the line and
    Keras. None of what Keras 2 feeds to single batches by pipelines of its own: of what is predicted the last bits
    depend on the batch's size.
    """
    functions: list[str] = []
    for one in frames(frame):
        name = one.f_globals.get("__name__") or ""
        if name.startswith(KERAS):
            functions.append(one.f_code.co_name)
        elif (name.startswith("tfdp.runtime") or one.f_code.co_name.startswith("tfdp_")) and not functions:
            return None
        elif not (inside(one) or name.startswith("tfdp.")):
            if not _APART.isdisjoint(functions) and keras2.generator() is not None:
                return None
            return _THROUGH.join([f"{one.f_code.co_filename}:{one.f_lineno}", *reversed(functions)])
    return None
