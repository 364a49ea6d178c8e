"""Arrays, tensors, data frames and lists, and what holds several of them: their parts, their rows, their content."""

import hashlib
import mmap
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import call_site

_LOOKED_AT = 2**16  # bytes of one part of one batch: about 50 microseconds


def mapped(data: Any, change: Callable[[Any], Any], *, lists: bool) -> Any:
    """The same structure with `change(part)` for each part of tuples and dictionaries; None stays None.

    Args:
        data: a part, or a structure of parts.
        change: of one part.
        lists: whether a list of arrays holds several parts, as Keras takes it, or is one part, of which they are the
            rows. A list of numbers or strings always is one part.
    """
    if data is None:
        return None
    if isinstance(data, dict):
        return {key: mapped(part, change, lists=lists) for key, part in data.items()}
    if _is_structure(data, lists):
        members = [mapped(part, change, lists=lists) for part in data]
        return type(data)(*members) if hasattr(data, "_fields") else type(data)(members)
    return change(data)


def leaves(data: Any, *, lists: bool) -> list[Any]:
    """The parts of a structure, in order; see `mapped`."""
    found: list[Any] = []
    mapped(data, found.append, lists=lists)
    return found


def sliced(part: Any, rows: slice) -> Any:
    """Some rows: of a data frame or series those at the places, not those with the labels."""
    return getattr(part, "iloc", part)[rows]


def _is_structure(data: Any, lists: bool) -> bool:
    if isinstance(data, tuple):
        return True
    nested = (dict, tuple, type(None))
    return lists and isinstance(data, list) and all(isinstance(part, nested) or len(_shape(part)) > 0 for part in data)


def _shape(part: Any) -> Any:
    shape = getattr(part, "shape", ())
    return () if shape is None else shape


def length(part: Any) -> Any:
    """The number of rows: an int, or a scalar tensor in a graph that does not know it yet."""
    if isinstance(part, str | bytes):
        raise TypeError(f"a batch at {call_site()} holds {part!r}, which has no rows")
    shape = getattr(part, "shape", None)
    if shape is None:
        try:
            return len(part)
        except TypeError:
            raise TypeError(f"a batch at {call_site()} holds a {type(part).__name__}, which has no rows") from None
    if len(shape) == 0:
        raise TypeError(f"a batch at {call_site()} holds a single {type(part).__name__}, which has no rows")
    if shape[0] is not None:
        return int(shape[0])
    return part.nrows() if isinstance(part, tf.RaggedTensor) else tf.shape(part)[0]


def _is_in_memory(part: Any) -> bool:
    base = part
    while isinstance(base, np.ndarray):
        if isinstance(base, np.memmap):
            return False
        base = base.base
    known = isinstance(part, np.ndarray | list | tf.Tensor | tf.RaggedTensor) or hasattr(part, "iloc")
    return known and not isinstance(base, mmap.mmap)


def digest(before: int, parts: list[Any], *, whole: bool = False) -> int:
    """A hash of 56 bits over `before` and a sample of each part's rows; with `whole` over all that is in memory.

    Of what lies in a file (a `np.memmap`, HDF5's datasets) a sample is read all the same. 1 GB takes about 1 s.
    """
    found = hashlib.blake2b(before.to_bytes(8, "little"), digest_size=7)
    for part in parts:
        limit = sys.maxsize if whole and _is_in_memory(part) else _LOOKED_AT
        if hasattr(part, "tocsr"):
            part = part.tocsr().data  # noqa: PLW2901 - the entries of a SciPy matrix stand for it
        listed = isinstance(part, list | tf.RaggedTensor)
        array = np.empty(0, object) if listed else np.asarray(part)
        if array.dtype.kind in "OSU":
            every = max(1, int(length(part)) // limit)
            rows = sliced(part, slice(None, None, every))
            rows = rows.numpy() if isinstance(rows, tf.Tensor) else rows
            found.update(repr(rows.to_list() if isinstance(rows, tf.RaggedTensor) else list(rows)).encode())
        else:
            found.update(f"{array.dtype}{array.shape}".encode())
            every = max(1, array.nbytes // limit)
            found.update(np.ascontiguousarray(array[::every]).reshape(-1).view(np.uint8).data)
    return int.from_bytes(found.digest(), "little")
