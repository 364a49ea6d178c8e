"""Bytes as numbers from 0 to 15, which each dtype of gradients holds, and so do sums of them with zeros."""

from __future__ import annotations

from typing import Any

import tensorflow as tf


def half_bytes(given: Any) -> Any:
    """Of bytes, the upper and the lower half of each in turn, shape `[2 * bytes]`, uint8."""
    flat = tf.reshape(given, [-1])
    return tf.reshape(tf.stack([flat // 16, flat % 16], 1), [-1])


def floats_of(pairs: Any) -> Any:
    """Float32 numbers of their half bytes, shape `[…, 4, 2]`, integers."""
    return tf.bitcast(tf.cast(pairs[..., 0] * 16 + pairs[..., 1], tf.uint8), tf.float32)
