"""Tensors as vectors of 64-bit words, and the types in which they travel.

The collectives take few types, and on a GPU fewer: no bool, no 8- and 16-bit integers, bfloat16 only for sums on a CPU,
int32 only to be moved. Values that are combined are cast to a type that all of them take; values that are moved go as
words of their bits.
"""

from typing import Any

import tensorflow as tf

from ._protocol import Tensor

WORD = tf.int64
_WORD_BYTES = 8
# Two-byte floats are summed in float32 and rounded once; int32 would overflow before it is divided.
_WIRE = {
    tf.float16: tf.float32,
    tf.bfloat16: tf.float32,
    tf.float32: tf.float32,
    tf.float64: tf.float64,
    tf.int32: tf.int64,
    tf.int64: tf.int64,
}


def wire(dtype: Any) -> Any:
    """The type in which values of this one are combined."""
    return _WIRE[dtype]


def count(dtype: Any, elements: int) -> int:
    """How many words hold so many elements."""
    return -(-elements * int(dtype.size) // _WORD_BYTES)


def pack(tensor: Tensor) -> Tensor:
    """The tensor's bits, `[count(dtype, elements)]`; the last word is filled up with zeros."""
    flat = tf.reshape(tensor, [-1])
    if flat.dtype == tf.bool:
        flat = tf.cast(flat, tf.uint8)
    if flat.dtype == WORD:
        return flat
    if flat.dtype.size >= _WORD_BYTES:
        return tf.reshape(tf.bitcast(flat, WORD), [-1])
    each = _WORD_BYTES // flat.dtype.size
    missing = tf.math.floormod(-tf.size(flat), each)
    filled = tf.concat([flat, tf.zeros([missing], flat.dtype)], 0)
    return tf.bitcast(tf.reshape(filled, [-1, each]), WORD)


def unpack(words: Tensor, dtype: Any) -> Tensor:
    """The elements in each row of `[…, n]` words: `[…, at least as many as were packed]`."""
    if dtype == tf.bool:
        return tf.cast(unpack(words, tf.uint8), tf.bool)
    if dtype == WORD:
        return words
    leading = tf.shape(words)[:-1]
    if dtype.size > _WORD_BYTES:
        each = dtype.size // _WORD_BYTES
        words = tf.reshape(words, tf.concat([leading, [tf.shape(words)[-1] // each, each]], 0))
    elements = tf.bitcast(words, dtype)
    if dtype.size >= _WORD_BYTES:
        return elements
    per_row = tf.shape(words)[-1] * (_WORD_BYTES // dtype.size)
    return tf.reshape(elements, tf.concat([leading, [per_row]], 0))
