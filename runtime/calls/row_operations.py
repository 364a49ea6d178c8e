"""Which operations keep rows apart, whatever the numbers are: what code of the script's own may do with rows.

Each row of a result must follow from the same row of what is given. What is not in these tables may do anything. Rows
are the first axis of a tensor; it may have several for each of the batch, its *factor*, in the order of the batch.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from .sizes import Count, Entry, are_fixed, fixed


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_ELEMENTWISE = _words(
    """
    Abs Acos Acosh Add AddN AddV2 Asin Asinh Atan Atan2 Atanh BitwiseAnd BitwiseOr BitwiseXor Cast Ceil CheckNumerics
    ClipByValue Cos Cosh Digamma Div
    DivNoNan Elu EluGrad Equal Erf Erfc Exp Expm1 Floor FloorDiv FloorMod Greater GreaterEqual Identity InvGrad IsFinite
    IsInf IsNan LeakyRelu LeakyReluGrad Less LessEqual Lgamma Log Log1p LogicalAnd LogicalNot LogicalOr Maximum Minimum
    Mul MulNoNan Neg NotEqual OnesLike Pow Real RealDiv Reciprocal ReciprocalGrad Relu Relu6 Relu6Grad ReluGrad Rint
    Round Rsqrt RsqrtGrad Select SelectV2 Selu SeluGrad Sigmoid SigmoidGrad Sign Sin Sinh Softplus SoftplusGrad Softsign
    SoftsignGrad Sqrt SqrtGrad Square SquaredDifference StopGradient Sub Tan Tanh TanhGrad Xdivy Xlog1py Xlogy ZerosLike
    """
)
# Of the first input, by others that are no rows: filters, biases.
_OF_FIRST = _words(
    """
    AvgPool AvgPool3D BiasAdd Conv2D Conv3D DepthToSpace DepthwiseConv2dNative ExtractImagePatches LogSoftmax MaxPool
    MaxPool3D ResizeArea ResizeBicubic ResizeBilinear ResizeNearestNeighbor Softmax SpaceToDepth
    """
)
_ON_LAST = {"LogSoftmax": 1, "MatrixBandPart": 2, "MatrixDiagPartV3": 2, "Softmax": 1, "TopKV2": 1}  # axes
_ALONG_AXES = {"Cumprod": 1, "Cumsum": 1, "ReverseV2": 1, "Roll": 2}  # the input that names them
_REDUCTIONS = _words("All Any ArgMax ArgMin EuclideanNorm Max Mean Min Prod Sum")


class Operation(NamedTuple):
    """One that has rows among its inputs.

    factors: for each input that has rows, how many it has for each of the batch; None for others.
    sizes: for each input that follows from the number of rows its elements; None for others.
    """

    kind: str
    inputs: Sequence[Any]
    attrs: dict[str, Any]
    outputs: Sequence[Any]
    factors: Sequence[int | None]
    sizes: Sequence[list[Entry] | None]

    @property
    def rows(self) -> Sequence[bool]:
        """Which inputs have rows."""
        return [each is not None for each in self.factors]

    def rank(self, index: int) -> int:
        """That of an input; -1 where it is not known."""
        return _rank(self.inputs[index])

    def value(self, index: int) -> Any:
        """An input's, where it is known; else None."""
        given = self.inputs[index]
        if self.sizes[index] is not None:
            return None
        found = tf.get_static_value(given)
        if found is not None or not given.shape.is_fully_defined():
            return found
        entries = fixed(given)  # as of the axes by which TensorFlow's softmax along another axis transposes
        return np.reshape(np.array(entries), given.shape) if are_fixed(entries) else None

    def axes(self, index: int, rank: int) -> Sequence[int]:
        """The axes that an input names; 0 where they are not known."""
        value = self.value(index)
        return [0] if value is None else [int(each) % max(rank, 1) for each in np.ravel(value)]


def factor(seen: Operation) -> int | None:
    """How many rows all outputs have for each of the batch, each of which follows from the same row of the inputs; None
    where that is not known."""
    if any(each.shape.rank is None or not each.shape.rank for each in seen.outputs):
        return None
    if any(each.shape[0] is not None for each in seen.outputs):
        return None  # it is said to be a number, which is not that of a worker's rows
    given = {each for each in seen.factors if each is not None}
    found = _MAKES[seen.kind](seen) if seen.kind in _MAKES else next(iter(given)) if len(given) == 1 else None
    return found if found and (seen.kind in _MAKES or _keeps(seen)) else None


def _keeps(seen: Operation) -> bool:
    """Whether each row of the outputs follows from the same row of the inputs, which have as many."""
    if any(each is not None for each in seen.sizes):
        return False
    kind, rows = seen.kind, seen.rows
    if kind in _ELEMENTWISE:
        return _is_aligned(seen)
    found = _MOVES.get(kind)
    if found is not None:
        return found(seen)
    if not rows[0] or any(rows[1:]):
        return False
    if kind in _ON_LAST:
        return seen.rank(0) > _ON_LAST[kind]
    if kind in _ALONG_AXES:
        return 0 not in seen.axes(_ALONG_AXES[kind], seen.rank(0))
    if kind in _REDUCTIONS:
        return 0 not in seen.axes(1, seen.rank(0))
    return kind in _OF_FIRST


def _is_aligned(seen: Operation) -> bool:
    """Axis 0 of the rows is axis 0 of the result, and nothing else has more than one element there."""
    rank = _rank(seen.outputs[0])
    for each, of_rows in zip(seen.inputs, seen.rows, strict=True):
        if of_rows and _rank(each) != rank:
            return False
        if not of_rows and (_rank(each) < 0 or (_rank(each) == rank and each.shape[0] != 1)):
            return False
    return rank > 0


def _rank(tensor: Any) -> int:
    rank = tensor.shape.rank
    return -1 if rank is None else int(rank)


def _matmul(seen: Operation) -> bool:
    return seen.rows == [True, False] and not seen.attrs.get("transpose_a") and seen.rank(0) == 2


def _batch_matmul(seen: Operation) -> bool:
    left, right = seen.rank(0), seen.rank(1)
    if not all(seen.rows):
        others = 1 if seen.rows[0] else 0
        if left == right == 2:
            return others == 1 and not seen.attrs.get("adj_x")
        return max(left, right) == seen.rank(1 - others) > 2 and 0 <= seen.rank(others) < max(left, right)
    return left == right > 2


def _transpose(seen: Operation) -> bool:
    order = seen.value(1)
    return not seen.rows[1] and order is not None and order[0] == 0


def _concat(seen: Operation) -> bool:
    return all(seen.rows[:-1]) and 0 not in seen.axes(len(seen.inputs) - 1, seen.rank(0))


def _pack(seen: Operation) -> bool:
    return all(seen.rows) and int(seen.attrs["axis"]) % _rank(seen.outputs[0]) != 0


def _unpack(seen: Operation) -> bool:
    return int(seen.attrs["axis"]) % seen.rank(0) != 0


def _split(seen: Operation) -> bool:
    """`Split` names the axis first, `SplitV` last."""
    values, axis = (1, 0) if seen.kind == "Split" else (0, 2)
    only = [index == values for index in range(len(seen.inputs))]
    return seen.rows == only and 0 not in seen.axes(axis, seen.rank(values))


def _squeeze(seen: Operation) -> bool:
    axes = [int(each) % seen.rank(0) for each in seen.attrs.get("squeeze_dims") or ()]
    return bool(axes) and 0 not in axes


def _expand(seen: Operation) -> bool:
    return seen.rows == [True, False] and 0 not in seen.axes(1, _rank(seen.outputs[0]))


def _slice(seen: Operation) -> bool:
    """All of axis 0, in its order."""
    steps, attrs = seen.value(3), seen.attrs
    whole = attrs["begin_mask"] & attrs["end_mask"] & 1
    moved = attrs["new_axis_mask"] | attrs["shrink_axis_mask"] | attrs["ellipsis_mask"]
    all_rows = whole and steps is not None and len(steps) and steps[0] == 1 and not moved & 1
    ellipsis = attrs["ellipsis_mask"] & 1 and _behind(seen)
    return seen.rows == [True, False, False, False] and bool(all_rows or ellipsis)


def _behind(seen: Operation) -> bool:
    """Whether an ellipsis stands first, and for axis 0 among others."""
    attrs, begin = seen.attrs, seen.value(1)
    others = 0 if begin is None else len(begin) - 1 - bin(attrs["new_axis_mask"]).count("1")
    return begin is not None and not attrs["new_axis_mask"] & 1 and others < seen.rank(0)


def _pad(seen: Operation) -> bool:
    widths = seen.value(1)
    return seen.rows[0] and not any(seen.rows[1:]) and widths is not None and not widths[0].any()


def _gather(seen: Operation) -> bool:
    """From a table by rows of indices; from each row at the same places; or from each row by its own indices."""
    batched = int(seen.attrs.get("batch_dims", 0))
    of_table, by_rows, _ = seen.rows
    axes = seen.axes(2, max(seen.rank(0), 1))
    if by_rows and not of_table:
        return batched == 0 and tuple(axes) == (0,) and seen.value(2) is not None
    return 0 not in axes and (batched >= 1 if by_rows else batched == 0)


def _one_hot(seen: Operation) -> bool:
    axis = int(seen.attrs["axis"])
    return seen.rows == [True, False, False, False] and (axis == -1 or axis > 0)


def _both(seen: Operation) -> bool:
    return seen.rows == [True, True]


def _bitcast(seen: Operation) -> bool:
    return seen.rank(0) == _rank(seen.outputs[0])


def _einsum(seen: Operation) -> bool:
    """The first axis of the result is that of all that have rows, and of nothing else."""
    equation = seen.attrs["equation"]
    left, result = (equation.decode() if isinstance(equation, bytes) else equation).split("->")
    terms = left.split(",")
    axis = "..." if result.startswith("...") else result[:1]
    with_rows = [term for term, of_rows in zip(terms, seen.rows, strict=True) if of_rows]
    others = [term for term, of_rows in zip(terms, seen.rows, strict=True) if not of_rows]
    if not axis or any(axis in each for each in others) or result.count(axis) != 1:
        return False
    if not all(each.startswith(axis) and each.count(axis) == 1 for each in with_rows):
        return False
    covered = {_rank(each) - len(term) + 3 for term, each in zip(terms, seen.inputs, strict=True) if term in with_rows}
    return axis != "..." or (len(covered) == 1 and min(covered) > 0)


_MOVES: dict[str, Callable[[Operation], bool]] = {
    "BatchMatMulV2": _batch_matmul,
    "BatchMatMulV3": _batch_matmul,
    "Bitcast": _bitcast,
    "ConcatV2": _concat,
    "Einsum": _einsum,
    "ExpandDims": _expand,
    "GatherV2": _gather,
    "MatMul": _matmul,
    "MirrorPad": _pad,
    "OneHot": _one_hot,
    "Pack": _pack,
    "Pad": _pad,
    "PadV2": _pad,
    "SoftmaxCrossEntropyWithLogits": _both,
    "SparseSoftmaxCrossEntropyWithLogits": _both,
    "Split": _split,
    "SplitV": _split,
    "Squeeze": _squeeze,
    "StridedSlice": _slice,
    "Transpose": _transpose,
    "Unpack": _unpack,
}


def _reshaped(seen: Operation) -> int | None:
    """Rows of the batch may become several, and several one, as long as each has as many elements as before."""
    before, given = seen.inputs[0].shape[1:].num_elements(), seen.factors[0]
    if given is None or seen.rows[1] or not before:
        return None
    now = _elements(seen, given * before)
    return int(given * before // now) if now and not given * before % now else None


def _elements(seen: Operation, every: int) -> int | None:
    """How many there are in each row of what is reshaped: by its shape, or by what the shape is made of.

    every: how many there are for each row of the batch.
    """
    known: int | None = seen.outputs[0].shape[1:].num_elements()
    if known is not None:
        return known
    first, *others = seen.sizes[1] or fixed(seen.inputs[1]) or [None]
    numbers = [each for each in others if isinstance(each, int) and each > 0]
    if isinstance(first, Count) and others.count(-1) == 1 and len(numbers) == len(others) - 1:
        fits = first.times and not every % (first.times * math.prod(numbers))
        return every // first.times if fits else None  # what is left out follows from the others
    all_known = len(numbers) == len(others) and (first == -1 or isinstance(first, Count))
    return math.prod(numbers) if all_known else None


def _sized(seen: Operation, place: int) -> int | None:
    """How many rows an input asks for."""
    entries = seen.sizes[place]
    first = entries[0] if entries else None
    return first.times if isinstance(first, Count) else None


def _filled(seen: Operation) -> int | None:
    """A number, in rows."""
    return None if any(seen.rows) or seen.sizes[1] is not None else _sized(seen, 0)


def _broadcast(seen: Operation) -> int | None:
    found = _sized(seen, 1)
    if seen.rows[1] or found is None or seen.sizes[0] is not None:
        return None
    if seen.rows[0]:
        return found if seen.factors[0] == found and seen.rank(0) == _rank(seen.outputs[0]) else None
    small = seen.rank(0) < _rank(seen.outputs[0]) or seen.inputs[0].shape[0] == 1
    return found if small and seen.rank(0) >= 0 else None


def _tiled(seen: Operation) -> int | None:
    """One row many times, or within each row."""
    if seen.rows[1] or seen.sizes[0] is not None:
        return None
    if seen.rows[0]:
        times = seen.value(1)
        return seen.factors[0] if times is not None and times[0] == 1 else None
    return _sized(seen, 1) if seen.rank(0) > 0 and seen.inputs[0].shape[0] == 1 else None


def _transposed_convolution(seen: Operation) -> int | None:
    """Of the sizes of what it gives, filters, and rows."""
    found = _sized(seen, 0)
    return found if seen.rows == [False, False, True] and found == seen.factors[2] else None


# Those whose outputs may have another factor than their inputs.
_MAKES: dict[str, Callable[[Operation], int | None]] = {
    "BroadcastTo": _broadcast,
    "Conv2DBackpropInput": _transposed_convolution,
    "Fill": _filled,
    "Reshape": _reshaped,
    "Tile": _tiled,
}
# Those that make rows of their number alone.
FROM_SIZES = ("BroadcastTo", "Fill", "Tile")
