"""`horovod.tensorflow.functions` over this runtime."""

from ..collectives import allgather_object, broadcast_object, broadcast_variables

__all__ = ["allgather_object", "broadcast_object", "broadcast_variables"]
