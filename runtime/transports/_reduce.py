"""Combining the ranks' values: the arithmetic, and how much of it each rank does when."""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any

import numpy as np
import numpy.typing as npt

from ..foundation import ReduceOp

Array = npt.NDArray[Any]
_ALIGN = 64
_COMBINE: dict[ReduceOp, np.ufunc] = {
    ReduceOp.AVERAGE: np.add,
    ReduceOp.SUM: np.add,
    ReduceOp.MIN: np.minimum,
    ReduceOp.MAX: np.maximum,
    ReduceOp.PRODUCT: np.multiply,
}


def combine(op: ReduceOp, parts: Sequence[Array], out: Array) -> None:
    """`out` = `parts[0] op parts[1] op …`, always in that order, so that every rank gets the same bits.

    All are one-dimensional with one length and dtype. Two-byte floats are combined in float32 and rounded once;
    int32 is averaged in int64, so that the sum cannot overflow.
    """
    dtype = out.dtype
    wide = dtype
    if dtype.itemsize == 2:
        wide = np.dtype(np.float32)
    elif op is ReduceOp.AVERAGE and dtype == np.int32:
        wide = np.dtype(np.int64)
    total = out if wide == dtype else np.empty(out.shape, wide)
    first, second, *rest = (part.astype(wide, copy=False) for part in parts)
    function = _COMBINE[op]
    with np.errstate(all="ignore"):
        function(first, second, out=total)
        for part in rest:
            function(total, part, out=total)
        if op is ReduceOp.AVERAGE:
            _divide(total, len(parts))
        if total is not out:
            out[...] = total


def _divide(total: Array, count: int) -> None:
    if total.dtype.kind not in "iu":
        np.divide(total, total.dtype.type(count), out=total)
        return
    rest = total % count
    total //= count
    total += (rest != 0) & (total < 0)  # floor division went one too far from zero


class Run:
    """Arrays of one dtype, seen as one after the other."""

    def __init__(self, arrays: Sequence[Array]) -> None:
        self.dtype = arrays[0].dtype
        self._arrays = [array.reshape(-1) for array in arrays]
        self._ends = list(accumulate(array.size for array in self._arrays))
        self.size = self._ends[-1]

    def pieces(self, low: int, high: int) -> list[tuple[Array, int, int]]:
        """The parts of the arrays that make up `[low, high)`, each with its own bounds in that range, from 0."""
        found = []
        origin = low
        index = bisect_right(self._ends, low)
        while low < high:
            array, end = self._arrays[index], self._ends[index]
            stop = min(high, end)
            if low < stop:
                start = end - array.size
                found.append((array[low - start : stop - start], low - origin, stop - origin))
                low = stop
            index += 1
        return found


@dataclass(frozen=True)
class Segment:
    """`[low, high)` of one run, and where in the slot it is: the ranks' data, and the owner's result."""

    run: int
    low: int
    high: int
    data_at: int
    result_at: int

    def share(self, rank: int, size: int) -> tuple[int, int]:
        """The part that `rank` combines, from 0."""
        length = self.high - self.low
        return length * rank // size, length * (rank + 1) // size


Chunk = tuple[Segment, ...]


def aligned(count: int) -> int:
    """`count` bytes rounded up so that whatever follows starts on a cache line."""
    return -(-count // _ALIGN) * _ALIGN


def divide(runs: Sequence[tuple[int, int]], size: int, room: int) -> list[Chunk]:
    """Cut runs of (item bytes, items) into chunks that fit into `room` bytes of a slot.

    Behind the data there is room for the results of the chunk before, so that one exchange carries both.
    """
    data_room = (room - 2 * _ALIGN * (len(runs) + 1)) * size // (size + 1) // _ALIGN * _ALIGN
    if data_room < _ALIGN:
        raise ValueError(f"{room} bytes are too few for {len(runs)} dtypes")
    chunks: list[Chunk] = []
    current: list[Segment] = []
    data, result = 0, data_room
    for run, (item, items) in enumerate(runs):
        low = 0
        while low < items:
            if data == data_room:
                chunks.append(tuple(current))
                current, data, result = [], 0, data_room
            high = min(items, low + (data_room - data) // item)
            current.append(Segment(run, low, high, data, result))
            data += aligned((high - low) * item)
            result += aligned(-(-(high - low) // size) * item)
            low = high
    return [*chunks, tuple(current)] if current else chunks
