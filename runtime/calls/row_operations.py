"""Which operations keep rows apart, whatever the numbers are: what functions in `dp.by_rows` may do.

A look tries such a function on one batch, and may miss what it does by the numbers, the length or a flag. So at each
call, or where a graph is built of it, every operation is seen: of rows each result must follow row by row. What is not
in these tables may do anything.
"""

from __future__ import annotations

import contextlib
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import is_users
from . import sight
from .observed import observed
from .reach import reached


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ELEMENTWISE = _words(
    """
    Abs Add AddV2 Cast CheckNumerics ClipByValue Cos Div DivNoNan Elu Equal Erf Exp Expm1 Floor Greater GreaterEqual
    Identity IsFinite IsNan LeakyRelu Less LessEqual Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum Mul
    MulNoNan Neg NotEqual OnesLike Pow Real RealDiv Reciprocal Relu Relu6 Rint Rsqrt Select SelectV2 Selu Sigmoid
    Sign Sin Softplus Softsign Sqrt Square SquaredDifference StopGradient Sub Tan Tanh ZerosLike
    """
)
# Of the first input, by others that are no rows: filters, biases.
_OF_FIRST = _words(
    """
    AvgPool AvgPool3D BiasAdd Conv2D Conv3D DepthwiseConv2dNative LogSoftmax MaxPool MaxPool3D ResizeBilinear
    ResizeNearestNeighbor Softmax
    """
)
_REDUCTIONS = _words("All Any ArgMax ArgMin Max Mean Min Prod Sum")
_SHAPES = _words("Shape Size")  # of rows: their number, which may only go into shapes
_BESIDE_SHAPES = _words("Cast ConcatV2 ExpandDims Identity Pack StridedSlice")


class Guard:
    """Sees what a function does with a worker's own rows: axis 0 of tensors."""

    def __init__(self, refuse: Callable[[str], None]) -> None:
        """`refuse` is told what is wrong, and raises an error."""
        self._refuse = refuse
        self._rows: dict[int, Any] = {}
        self._sizes: dict[int, Any] = {}
        self._paused = 0

    def mark(self, tensor: Any) -> None:
        """It has rows of the batch, or a multiple of them."""
        if tf.is_tensor(tensor):
            self._rows[id(tensor)] = tensor

    def has_rows(self, tensor: Any) -> bool:
        """Whether it follows from rows of the batch, and has one for each."""
        return id(tensor) in self._rows

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """What is executed inside is known to be right."""
        self._paused += 1
        try:
            yield
        finally:
            self._paused -= 1

    def seen(self, kind: str | bytes, inputs: Any, attrs: Any, outputs: Any, *_: Any, **__: Any) -> None:
        """An operation has been executed, or put into a graph."""
        if self._paused:
            return
        name = kind.decode() if isinstance(kind, bytes) else kind
        of_rows, of_sizes = any(map(self.has_rows, inputs)), any(id(each) in self._sizes for each in inputs)
        if not of_rows and not of_sizes:
            return
        if name == "Rank":
            return
        if name in _SHAPES if of_rows else name in _BESIDE_SHAPES:
            self._sizes.update((id(each), each) for each in outputs)
        elif name == "IdentityN":
            for given, found in zip(inputs, outputs, strict=True):
                held = self._rows if self.has_rows(given) else self._sizes if self.is_size(given) else {}
                held[id(found)] = found
        elif of_rows and _keeps(name, list(inputs), _named(attrs), list(outputs), self):
            self._rows.update((id(each), each) for each in outputs)
        else:
            self._refuse(f"does what may mix rows (operation {name})")

    def is_size(self, tensor: Any) -> bool:
        """Whether it follows from the number of rows."""
        return id(tensor) in self._sizes


class _Thread(threading.local):
    guard: Guard | None = None


_thread = _Thread()


def now() -> Guard | None:
    """The guard of the function that this thread is in."""
    return _thread.guard


def guarded(function: Any, call: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """`call(*arguments, **options)`, each operation of which is seen, where this thread has a sight.

    function: the script's own, by whose names it might keep rows.
    """
    here = sight.now()
    if here is None:
        return call(*arguments, **options)
    guard = Guard(here.refuse)
    hidden = {id(each): _hidden(each) for each in sight.rows()}
    for each in hidden.values():
        guard.mark(each)
    leaves = [hidden.get(id(each), each) for each in tf.nest.flatten((arguments, options))]
    arguments, options = tf.nest.pack_sequence_as((arguments, options), leaves)
    before, _thread.guard = _thread.guard, guard
    try:
        with observed(guard.seen):
            results = call(*arguments, **options)
    finally:
        _thread.guard = before
    flat = tf.nest.flatten(results)
    if any(map(guard.is_size, flat)):
        here.refuse("gives what follows from the number of rows")
    if any(guard.has_rows(each) or guard.is_size(each) for each in reached(function)):
        here.refuse("keeps some of the rows")
    here.gives([guard.has_rows(each) for each in flat])
    return results


def drawn(draw: Callable[[], Any]) -> Any:
    """What is drawn inside a function: rows, unless it is known to have another length."""
    guard = now()
    if guard is None:
        return draw()
    with guard.paused():
        found = draw()
        own = next((each.shape[0] for each in sight.rows()), None)
        by_rows = found.shape.rank != 0 and (found.shape[0] is None or found.shape[0] == own)
        found = _hidden(found) if by_rows else found
    if by_rows:
        guard.mark(found)
    return found


def of_layer(call: Callable[[], Any], given: Any) -> Any:
    """What a layer of Keras' own gives inside a function: rows, if it is given any. A look has seen all of it."""
    guard = now()
    if guard is None:
        return call()
    with guard.paused():
        results = call()
    if any(map(guard.has_rows, tf.nest.flatten(given))):
        for each in tf.nest.flatten(results):
            guard.mark(each)
    return results


def _hidden(rows: Any) -> Any:
    """The same rows, of which Python does not know how many there are in a graph."""
    if tf.executing_eagerly() or not rows.shape.rank:
        return tf.identity(rows)
    return tf.raw_ops.PlaceholderWithDefault(input=rows, shape=[None, *rows.shape[1:]])


def hide_lengths() -> None:
    """From now on the script's own Python does not see how many rows there are in a function either: a whole batch has
    another number. TensorFlow has no public place for it."""
    from tensorflow.python.framework import ops

    tensor = ops._EagerTensorBase
    original = tensor.shape

    def shape(self: Any) -> Any:
        found, guard = original.fget(self), now()
        if guard is None or not guard.has_rows(self) or not is_read_by_user(ops.__file__):
            return found
        return tf.TensorShape([None, *found[1:]])

    tensor.shape = property(shape, doc=original.__doc__)


def is_read_by_user(operators: str) -> bool:
    """Whether the next caller outside the file that defines tensors' methods is the user's."""
    frame: Any = sys._getframe(2)
    while frame is not None and frame.f_code.co_filename == operators:
        frame = frame.f_back
    return frame is not None and is_users(frame.f_code.co_filename)


def _named(attrs: Any) -> dict[str, Any]:
    flat = list(attrs or ())
    names = [each.decode() if isinstance(each, bytes) else each for each in flat[::2]]
    return {name: _attribute(value) for name, value in zip(names, flat[1::2], strict=True)}


def _attribute(value: Any) -> Any:
    """Of an operation of a graph: flags, integers and lists of them; others as they are."""
    kind = value.WhichOneof("value") if hasattr(value, "WhichOneof") else None
    if kind == "list":
        return list(value.list.i)
    return getattr(value, kind) if kind in ("b", "i") else value


def _keeps(kind: str, inputs: list[Any], attrs: dict[str, Any], outputs: list[Any], guard: Guard) -> bool:
    """Whether each row of the outputs follows from the same row of the inputs that have rows."""
    rows = [guard.has_rows(each) for each in inputs]
    if any(guard.is_size(each) for each in inputs[:: 1 if kind != "Reshape" else 2]):
        return False
    if kind in _ELEMENTWISE:
        return _is_aligned(inputs, rows, outputs[0])
    if not rows[0] and kind != "ConcatV2":
        return False
    others = any(rows[1:])
    if kind in _OF_FIRST:
        return not others and (kind not in ("Softmax", "LogSoftmax") or _rank(inputs[0]) > 1)
    if kind in _REDUCTIONS:
        return not others and 0 not in _axes(inputs[1], _rank(inputs[0]))
    found = _MOVES.get(kind)
    return found is not None and found(inputs, rows, attrs, outputs)


def _is_aligned(inputs: Sequence[Any], rows: Sequence[bool], output: Any) -> bool:
    """Axis 0 of the rows is axis 0 of the result, and nothing else has more than one element there."""
    rank = _rank(output)
    for each, of_rows in zip(inputs, rows, strict=True):
        if of_rows and _rank(each) != rank:
            return False
        if not of_rows and _rank(each) == rank and each.shape[0] != 1:
            return False
    return rank > 0


def _rank(tensor: Any) -> int:
    rank = tensor.shape.rank
    return -1 if rank is None else int(rank)


def _axes(tensor: Any, rank: int) -> Sequence[int]:
    """The axes that a tensor names; 0 where they are not known."""
    value = tf.get_static_value(tensor)
    return [0] if value is None else [int(each) % max(rank, 1) for each in np.ravel(value)]


def _matmul(inputs: Any, rows: Any, attrs: Any, _: Any) -> bool:
    return not rows[1] and not attrs.get("transpose_a") and _rank(inputs[0]) == 2


def _batch_matmul(inputs: Any, rows: Any, attrs: Any, _: Any) -> bool:
    left, right = map(_rank, inputs)
    if left == 2:
        return not rows[1] and right == 2 and not attrs.get("adj_x")
    return left > 2 and (right == left if rows[1] else 0 <= right < left)


def _reshape(inputs: Any, rows: Any, _: Any, outputs: Any) -> bool:
    """As many rows as before: each of as many elements."""
    sizes = [each.shape[1:].num_elements() if each.shape.rank else None for each in (inputs[0], outputs[0])]
    return not rows[1] and None not in sizes and sizes[0] == sizes[1]


def _transpose(inputs: Any, rows: Any, _: Any, __: Any) -> bool:
    order = tf.get_static_value(inputs[1])
    return not rows[1] and order is not None and order[0] == 0


def _concat(inputs: Any, rows: Any, _: Any, __: Any) -> bool:
    return all(rows[:-1]) and 0 not in _axes(inputs[-1], _rank(inputs[0]))


def _squeeze(inputs: Any, _: Any, attrs: Any, __: Any) -> bool:
    axes = [int(each) % _rank(inputs[0]) for each in attrs.get("squeeze_dims") or ()]
    return bool(axes) and 0 not in axes


def _expand(inputs: Any, rows: Any, _: Any, outputs: Any) -> bool:
    return not rows[1] and 0 not in _axes(inputs[1], _rank(outputs[0]))


def _slice(inputs: Any, rows: Any, attrs: Any, _: Any) -> bool:
    """All of axis 0, in its order."""
    steps = tf.get_static_value(inputs[3])
    whole = attrs["begin_mask"] & attrs["end_mask"] & 1
    moved = attrs["new_axis_mask"] | attrs["shrink_axis_mask"] | attrs["ellipsis_mask"]
    return bool(not any(rows[1:]) and steps is not None and steps[0] == 1 and whole and not moved & 1)


def _pad(inputs: Any, rows: Any, _: Any, __: Any) -> bool:
    widths = tf.get_static_value(inputs[1])
    return not any(rows[1:]) and widths is not None and not widths[0].any()


_MOVES: dict[str, Callable[[Any, Any, Any, Any], bool]] = {
    "BatchMatMulV2": _batch_matmul,
    "BatchMatMulV3": _batch_matmul,
    "ConcatV2": _concat,
    "ExpandDims": _expand,
    "MatMul": _matmul,
    "MirrorPad": _pad,
    "Pad": _pad,
    "PadV2": _pad,
    "Reshape": _reshape,
    "Squeeze": _squeeze,
    "StridedSlice": _slice,
    "Transpose": _transpose,
}
