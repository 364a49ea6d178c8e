"""Collectives between the processes of one host, through memory they share. NumPy in, NumPy out.

An all-reduce goes chunk by chunk: every rank puts its data into its slot (but not the share that it combines itself),
all meet, each combines its share of everyone's data, and the results travel with the data of the next chunk. What is
small is put whole, and every rank combines all of it: one meeting instead of two.
"""

import functools
import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np

from ..foundation import ReduceOp, Topology
from ._arena import Arena
from ._call import Call
from ._meeting import Meeting
from ._protocol import Label
from ._reduce import Array, Chunk, Run, aligned, combine, divide

# A chunk and its results stay in the cache of a core between the steps it goes through.
_CHUNK_BYTES = 2**21
_SMALL_BYTES = 2**14
# Calling NumPy for each of more pieces than this costs more than copying them together.
_FEW_PIECES = 4


class SharedMemory:
    """The ranks of one host. All arrays are C-contiguous; what is returned is new memory."""

    name = "shared_memory"

    def __init__(self, arena: Arena, topology: Topology, stall_seconds: float) -> None:
        self._rank, self._size = topology.rank, topology.size
        self._meeting = Meeting(arena, topology.rank, stall_seconds)
        self._room = arena.slot_bytes
        memory = np.frombuffer(arena.view, np.uint8)
        self._slots = tuple(
            tuple(memory[at : at + self._room] for at in (arena.slot_at(rank, parity) for rank in range(self._size)))
            for parity in (0, 1)
        )

    def allreduce(self, arrays: Sequence[Array], op: ReduceOp, label: Label) -> list[Array]:
        """Each array combined over the ranks. float16, bfloat16, float32, float64, int32 or int64, any shapes."""
        outs = [_new(array.shape, array.dtype) for array in arrays]
        kinds = sorted({array.dtype for array in arrays}, key=_name)
        groups = [[index for index, array in enumerate(arrays) if array.dtype == kind] for kind in kinds]
        mine = [Run([arrays[index] for index in group]) for group in groups]
        whole = [Run([outs[index] for index in group]) for group in groups]
        with self._meeting.turn(Call(f"allreduce {op}", _signature(arrays), label)):
            needed = sum(aligned(run.size * run.dtype.itemsize) for run in mine)
            if needed <= min(_SMALL_BYTES, self._room):
                self._reduce_small(mine, whole, op)
            else:
                sizes = [(run.dtype.itemsize, run.size) for run in mine]
                chunks = divide(sizes, self._size, min(self._room, _CHUNK_BYTES))
                self._reduce_chunks(mine, whole, chunks, op)
        return outs

    def _reduce_small(self, mine: Sequence[Run], whole: Sequence[Run], op: ReduceOp) -> None:
        slot, at = self._my_next_slot(), 0
        for run in mine:
            _put(run, 0, run.size, slot, at)
            at += aligned(run.size * run.dtype.itemsize)
        slots, at = self._exchange(), 0
        for run in whole:
            end = at + run.size * run.dtype.itemsize
            if run.size:
                result = np.empty(run.size, run.dtype)
                combine(op, [slot[at:end].view(run.dtype) for slot in slots], result)
                for piece, low, high in run.pieces(0, run.size):
                    piece[...] = result[low:high]
            at += aligned(end - at)

    def _reduce_chunks(self, mine: Sequence[Run], whole: Sequence[Run], chunks: Sequence[Chunk], op: ReduceOp) -> None:
        for step in range(len(chunks) + 1):
            if step < len(chunks):
                self._give(mine, chunks[step])
            slots = self._exchange()
            if step < len(chunks):
                self._combine_share(mine, whole, chunks[step], slots, op)
            if step > 0:
                self._take(whole, chunks[step - 1], slots)

    def _give(self, mine: Sequence[Run], chunk: Chunk) -> None:
        slot = self._my_next_slot()
        for segment in chunk:
            run = mine[segment.run]
            low, high = segment.share(self._rank, self._size)
            _put(run, segment.low, segment.low + low, slot, segment.data_at)
            _put(run, segment.low + high, segment.high, slot, segment.data_at + high * run.dtype.itemsize)

    def _combine_share(
        self, mine: Sequence[Run], whole: Sequence[Run], chunk: Chunk, slots: Sequence[Array], op: ReduceOp
    ) -> None:
        slot = self._my_next_slot()
        for segment in chunk:
            dtype = mine[segment.run].dtype
            low, high = segment.share(self._rank, self._size)
            begin, end = segment.low + low, segment.low + high
            result = slot[segment.result_at : segment.result_at + (high - low) * dtype.itemsize].view(dtype)
            data_at = segment.data_at + low * dtype.itemsize
            others = [other[data_at : data_at + result.nbytes].view(dtype) for other in slots]
            pieces = mine[segment.run].pieces(begin, end)
            if len(pieces) > _FEW_PIECES:
                # Our share of our own slot is nobody else's to read: a place to put the pieces together.
                for piece, start, stop in pieces:
                    others[self._rank][start:stop] = piece
                pieces = [(others[self._rank], 0, high - low)]
            for piece, start, stop in pieces:
                parts = [other[start:stop] for other in others]
                parts[self._rank] = piece
                combine(op, parts, result[start:stop])
            for piece, start, stop in whole[segment.run].pieces(begin, end):
                piece[...] = result[start:stop]

    def _take(self, whole: Sequence[Run], chunk: Chunk, slots: Sequence[Array]) -> None:
        for segment in chunk:
            run = whole[segment.run]
            for rank, slot in enumerate(slots):
                low, high = segment.share(rank, self._size)
                if rank != self._rank and low < high:
                    result = slot[segment.result_at : segment.result_at + (high - low) * run.dtype.itemsize]
                    values = result.view(run.dtype)
                    for piece, start, stop in run.pieces(segment.low + low, segment.low + high):
                        piece[...] = values[start:stop]

    def reduce_scatter(self, array: Array, op: ReduceOp, label: Label) -> Array:
        """This rank's share, `[n / size]`, of a vector `[n]` combined over the ranks; n is a multiple of their number.

        In pieces of which each rank puts what the others combine into its slot.
        """
        size, dtype = self._size, array.dtype
        shares, out = array.reshape(size, -1), _new((array.size // size,), dtype)
        most = max(1, min(self._room, _CHUNK_BYTES) // (size * dtype.itemsize))
        with self._meeting.turn(Call(f"reduce_scatter {op}", _signature([array]), label)):
            for low in range(0, max(out.size, 1), most):
                high = min(low + most, out.size)
                count = high - low
                room = self._my_next_slot()[: size * count * dtype.itemsize].view(dtype).reshape(size, count)
                for rank in range(size):
                    if rank != self._rank:
                        room[rank] = shares[rank, low:high]
                slots = self._exchange()
                begin = self._rank * count * dtype.itemsize
                parts = [slot[begin : begin + count * dtype.itemsize].view(dtype) for slot in slots]
                parts[self._rank] = shares[self._rank, low:high]
                combine(op, parts, out[low:high])
        return out

    def allgather(self, array: Array, label: Label) -> tuple[Array, Array]:
        """All ranks' rows, and how many each has (int64, `[size]`). At least one dimension; dtypes of fixed width."""
        row = array.shape[1:]
        call = Call("allgather", ((_name(array.dtype), (-1, *row)),), label)
        with self._meeting.turn(call):
            slot, data = self._my_next_slot(), _bytes(array)
            first = min(self._room, data.size)
            slot[:first] = data[:first]
            slots = self._exchange(data.size, array.shape[0])
            numbers = [self._meeting.numbers(rank) for rank in range(self._size)]
            rows = np.array([count for _, count in numbers], np.int64)
            out = _new((int(rows.sum()), *row), array.dtype)
            self._collect(data, [payload for payload, _ in numbers], _bytes(out), slots)
        return out, rows

    def _collect(self, data: Array, payloads: Sequence[int], out: Array, slots: Sequence[Array]) -> None:
        """Fill `out` with all ranks' bytes; their first chunk is in `slots`."""
        starts = [sum(payloads[:rank]) for rank in range(self._size)]
        out[starts[self._rank] : starts[self._rank] + data.size] = data
        for low in range(0, max(*payloads, 1), self._room):
            if low > 0:
                chunk = data[low : low + self._room]
                self._my_next_slot()[: chunk.size] = chunk
                slots = self._exchange()
            for rank, slot in enumerate(slots):
                high = min(low + self._room, payloads[rank])
                if rank != self._rank and low < high:
                    out[starts[rank] + low : starts[rank] + high] = slot[: high - low]

    def broadcast(self, arrays: Sequence[Array], root: int, label: Label) -> list[Array]:
        """The root's arrays. Dtypes of fixed width; shapes are equal on all ranks."""
        with self._meeting.turn(Call(f"broadcast from rank {root}", _signature(arrays), label)):
            if self._rank == root:
                outs = [array.copy() for array in arrays]
            else:
                outs = [_new(array.shape, array.dtype) for array in arrays]
            if outs:
                self._spread(Run([_bytes(out) for out in outs]), root)
            else:
                self._exchange()
        return outs

    def _spread(self, run: Run, root: int) -> None:
        for low in range(0, max(run.size, 1), self._room):
            high = min(run.size, low + self._room)
            if self._rank == root:
                _put(run, low, high, self._my_next_slot(), 0)
            slots = self._exchange()
            if self._rank != root:
                for piece, start, stop in run.pieces(low, high):
                    piece[...] = slots[root][start:stop]

    def broadcast_bytes(self, payload: bytes | None, root: int, label: Label) -> bytes:
        """The root's bytes; the others need not know how many."""
        mine = np.frombuffer(payload or b"", np.uint8) if self._rank == root else np.empty(0, np.uint8)
        with self._meeting.turn(Call(f"broadcast_object from rank {root}", (), label)):
            first = mine[: self._room]
            self._my_next_slot()[: first.size] = first
            slots = self._exchange(mine.size)
            size, _ = self._meeting.numbers(root)
            out = mine if self._rank == root else np.empty(size, np.uint8)
            for low in range(0, max(size, 1), self._room):
                if low > 0:
                    chunk = mine[low : low + self._room]
                    self._my_next_slot()[: chunk.size] = chunk
                    slots = self._exchange()
                if self._rank != root:
                    high = min(size, low + self._room)
                    out[low:high] = slots[root][: high - low]
        return out.tobytes()

    def barrier(self, label: Label) -> None:
        """Return when every rank has called it."""
        with self._meeting.turn(Call("barrier", (), label)):
            self._exchange()

    def is_awaited(self) -> bool:
        """Whether rank 0 has begun a call that this rank has not."""
        return self._meeting.is_awaited(0)

    def ended(self) -> AbstractContextManager[None]:
        """As of `Meeting`."""
        return self._meeting.ended()

    def close(self) -> None:
        """Let the others know that this rank will not come any more."""
        self._meeting.leave()

    def _my_next_slot(self) -> Array:
        return self._slots[self._meeting.next_parity][self._rank]

    def _exchange(self, payload: int = 0, rows: int = 0) -> Sequence[Array]:
        """Publish this rank's slot, wait for the others', and return all of them by rank."""
        self._meeting.publish(payload, rows)
        self._meeting.wait()
        return self._slots[self._meeting.parity]


def _put(run: Run, low: int, high: int, slot: Array, at: int) -> None:
    room = slot[at : at + (high - low) * run.dtype.itemsize].view(run.dtype)
    for piece, start, stop in run.pieces(low, high):
        room[start:stop] = piece


def _bytes(array: Array) -> Array:
    return array.reshape(-1).view(np.uint8)


def _signature(arrays: Sequence[Array]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((_name(array.dtype), array.shape) for array in arrays)


@functools.cache  # NumPy makes the name each time, which takes longer than a small all-reduce
def _name(dtype: "np.dtype[Any]") -> str:
    return str(dtype.name)


def _new(shape: tuple[int, ...], dtype: "np.dtype[Any]") -> Array:
    count = math.prod(shape) * dtype.itemsize
    if count < _SMALL_BYTES:
        return np.empty(shape, dtype)
    # TensorFlow takes over memory that is aligned like its own and copies any other.
    memory = np.empty(count + 64, np.uint8)
    start = -memory.ctypes.data % 64
    return memory[start : start + count].view(dtype).reshape(shape)
