"""One agreed exchange by TensorFlow's collectives, eagerly and in graphs.

In a graph it is: an operation that calls Python and returns when all ranks have come to the same call, with the keys;
the collectives; an operation that calls Python and says that they are over. TensorFlow runs stateful operations without
a variable in the order of the program, and these are such.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any

import numpy as np
import tensorflow as tf

from ._call import Call
from ._group import Group
from ._keys import GROUP, Keys
from ._lane import Lane
from ._protocol import Label, Tensor
from ._tiers import Tiers

# A ring over TCP is fastest in pieces that stay in a core's cache; NCCL cuts what it gets into pieces itself.
_BUCKET_BYTES = {"ring": 2**22, "nccl": 2**26}
# Neither a message between TensorFlow's servers nor a 32-bit size holds more.
_MOST = 2**31 - 1

Shape = tuple[int, ...]


@dataclass(frozen=True)
class Request:
    """What a rank wants: `what` and the given tensors are compared over the ranks.

    `length` says how many elements of the exchanged vectors stand for a tensor of this dtype and shape.
    """

    what: str
    label: Label
    length: Callable[[Any, Shape], int]


class Exchange:
    """What is common to all collectives of one process."""

    def __init__(self, lane: Lane, size: int, hint: str, tiers: Tiers | None = None) -> None:
        """`hint` is `nccl` or `ring`. With `tiers` all goes by way of them."""
        self.lane = lane
        self.ways: Group | Tiers = tiers or Group(size, GROUP, hint)
        self.keys = Keys()
        self._size = size
        self._hint = hint

    def reduce(
        self, request: Request, tensors: Sequence[Tensor], flats: Sequence[Tensor], merge: str
    ) -> tuple[list[Tensor], Tensor]:
        """Each of the vectors `flats`, which stand for `tensors`, combined over the ranks; and how many they are.

        That number is known when the graph runs: TensorFlow would replace a division by a constant with a
        multiplication, whose results differ.
        """
        buckets = _buckets(flats, _BUCKET_BYTES[self._hint])
        kinds = [f"{flats[bucket[0]].dtype.name} {merge}" for bucket in buckets]
        what = request.what
        if len(buckets) > 1:  # ranks whose graphs know different sizes would cut differently
            what = f"{what} in {len(buckets)} parts {'+'.join(str(len(bucket)) for bucket in buckets)}"
        dtypes = [each.dtype for each in tensors]

        def begin(shapes: Sequence[Shape]) -> list[Any]:
            lengths = [request.length(dtype, shape) for dtype, shape in zip(dtypes, shapes, strict=True)]
            counts = [sum(lengths[index] for index in bucket) for bucket in buckets]
            listed = tuple((dtype.name, shape) for dtype, shape in zip(dtypes, shapes, strict=True))
            self.lane.enter(Call(what, listed, request.label))
            taken = [self.keys.take(kind, count) for kind, count in zip(kinds, counts, strict=True)]
            filling = [width - count for (_, width), count in zip(taken, counts, strict=True)]
            return [np.array(each, np.int32) for each in ([key for key, _ in taken], filling, self._size)]

        def exchange(keys: Tensor, filling: Tensor, ranks: Tensor) -> list[Tensor]:
            sums = []
            for number, bucket in enumerate(buckets):
                parts = [flats[index] for index in bucket]
                filled = tf.concat([*parts, tf.zeros(filling[number : number + 1], parts[0].dtype)], 0)
                sums.append(self.ways.reduced(filled, keys[number], merge))
            return [*sums, filling, ranks]

        given = [(tf.int32, [len(buckets)]), (tf.int32, [len(buckets)]), (tf.int32, [])]
        *sums, filling, ranks = self._run(begin, tensors, flats, given, exchange)
        found: list[Tensor] = [None] * len(flats)
        for number, bucket in enumerate(buckets):
            sizes = tf.stack([*(_length(flats[index]) for index in bucket), filling[number]])
            for index, part in zip(bucket, tf.split(sums[number], sizes, num=len(bucket) + 1), strict=False):
                found[index] = part
        return found, ranks

    def gather(self, request: Request, tensor: Tensor, flat: Tensor) -> tuple[Tensor, Tensor]:
        """All ranks' vectors as rows of a matrix, filled up with zeros; and how many rows each rank's tensor has."""
        dtype = tensor.dtype

        def begin(shapes: Sequence[Shape]) -> list[Any]:
            rows, *row = shapes[0]
            call = Call(request.what, ((dtype.name, (-1, *row)),), request.label)
            counts = [count for _, count in self.lane.enter(call, rows=rows)]
            longest = max(request.length(dtype, (count, *row)) for count in counts)
            key, width = self.keys.take(f"{flat.dtype.name} gather", longest, varies=True)
            if width * flat.dtype.size > _MOST:
                self.lane.leave()
                raise ValueError(
                    f"{call}: one rank's rows are {longest * flat.dtype.size} bytes, and a message between "
                    "TensorFlow's processes holds 2 GiB. Gather in parts"
                )
            filling = width - request.length(dtype, (rows, *row))
            return [np.array(counts, np.int64), np.array([key], np.int32), np.array([filling], np.int32)]

        def exchange(counts: Tensor, key: Tensor, filling: Tensor) -> list[Tensor]:
            filled = tf.concat([flat, tf.zeros(filling, flat.dtype)], 0)
            return [self.ways.gathered(filled, key[0]), counts]

        given = [(tf.int64, [self._size]), (tf.int32, [1]), (tf.int32, [1])]
        every, counts = self._run(begin, [tensor], [flat], given, exchange)
        return tf.reshape(every, [self._size, -1]), counts

    def meet(self, call: Call) -> None:
        """All that there is to a barrier: that the ranks agree on it."""

        def both(_: Sequence[Shape]) -> list[Any]:
            self.lane.enter(call)
            self.lane.leave()
            return [np.zeros((), np.int32)]

        _in_python(both, [], [], [(tf.int32, [])])

    def held(self) -> "_Held":
        """Around collectives that are called eagerly, after `enter`: leaves the lane, and says why they failed."""
        return _Held(self.lane)

    def _run(
        self,
        begin: Callable[[Sequence[Shape]], list[Any]],
        tensors: Sequence[Tensor],
        flats: Sequence[Tensor],
        given: Sequence[tuple[Any, Sequence[int]]],
        exchange: Callable[..., list[Tensor]],
    ) -> list[Tensor]:
        """`begin` in Python with the tensors' shapes; then `exchange` with what it gives, until which it waits."""
        numbers = _in_python(begin, tensors, flats, given)
        if tf.executing_eagerly():
            with self.held():
                return exchange(*numbers)
        results = exchange(*numbers)
        with tf.control_dependencies(results), tf.device("CPU:0"):
            left = tf.numpy_function(self._left, [], tf.int32)
        with tf.control_dependencies([left]):
            return [tf.identity(each) for each in results]

    def _left(self) -> Any:
        self.lane.leave()
        return np.int32(0)


class _Held:
    def __init__(self, lane: Lane) -> None:
        self._lane = lane

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            if error is not None:
                reason = self._lane.failed(error, lost=isinstance(error, tf.errors.OpError))
                if reason is not None:
                    raise reason from error
        finally:
            self._lane.leave()


def _buckets(flats: Sequence[Tensor], most_bytes: int) -> list[list[int]]:
    """Indices of vectors that travel together: of one type, in order, up to a size. A longer one travels alone."""
    found: list[list[int]] = []
    for dtype in sorted({flat.dtype for flat in flats}, key=lambda dtype: str(dtype.name)):
        filled = most_bytes + 1
        for index, flat in enumerate(flats):
            if flat.dtype == dtype:
                size = (flat.shape[0] or 0) * dtype.size
                if filled + size > most_bytes:
                    found.append([])
                    filled = 0
                found[-1].append(index)
                filled += size
    return found


def _length(flat: Tensor) -> Any:
    return tf.size(flat) if flat.shape[0] is None else flat.shape[0]


def _in_python(
    function: Callable[[Sequence[Shape]], list[Any]],
    tensors: Sequence[Tensor],
    after: Sequence[Tensor],
    results: Sequence[tuple[Any, Sequence[int]]],
) -> list[Tensor]:
    """`function` of the tensors' shapes; in a graph when it comes there, and when `after` has been computed."""
    if tf.executing_eagerly():
        found = function([tuple(each.shape.as_list()) for each in tensors])
        with tf.device("CPU:0"):
            return [tf.constant(each) for each in found]
    shapes = [tuple(each.shape.as_list()) if each.shape.is_fully_defined() else None for each in tensors]

    def with_shapes(*others: Any) -> list[Any]:
        late = iter(others)
        return function([tuple(map(int, next(late))) if shape is None else shape for shape in shapes])

    with tf.control_dependencies(after), tf.device("CPU:0"):
        asked = [tf.shape(each) for each, shape in zip(tensors, shapes, strict=True) if shape is None]
        found = tf.numpy_function(with_shapes, asked, [dtype for dtype, _ in results], stateful=True)
    for each, (_, shape) in zip(found, results, strict=True):
        each.set_shape(shape)
    return list(found)


def elements(_dtype: Any, shape: Shape) -> int:
    """The `length` of vectors that hold the tensors' elements as they are."""
    return math.prod(shape)
