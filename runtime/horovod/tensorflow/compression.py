"""`horovod.tensorflow.compression` over this runtime."""

from ...gradients import Compression

__all__ = ["Compression"]
