"""Gradients in fewer bytes on their way between the ranks."""

from dataclasses import dataclass
from typing import Any

import tensorflow as tf


@dataclass(frozen=True)
class Compressor:
    """Sends wider floating-point tensors as `dtype` (None: as they are); what is received has its own dtype again.

    The ranks' values are rounded before they are combined: a change of the result, which differs from run to run as
    little as before, but is no longer that of one process.
    """

    name: str
    dtype: Any = None

    def compress(self, tensor: Any) -> tuple[Any, Any]:
        """The tensor to send, same shape, and what `decompress` needs with it. Integers and two-byte floats pass."""
        if self.dtype is None or not tensor.dtype.is_floating or tensor.dtype.size <= self.dtype.size:
            return tensor, tensor.dtype
        return tf.cast(tensor, self.dtype), tensor.dtype

    def decompress(self, tensor: Any, context: Any) -> Any:
        """The received tensor in the dtype it had before `compress`."""
        return tensor if tensor.dtype == context else tf.cast(tensor, context)


class Compression:
    """The choices for `compression=`.

    fp16 keeps 11 bits and overflows beyond 65504: `gradient_predivide_factor` keeps sums below that where the transport
    adds in float16. bf16 has the range of float32 and keeps 8 bits.
    """

    none = Compressor("none")
    fp16 = Compressor("fp16", tf.float16)
    bf16 = Compressor("bf16", tf.bfloat16)
