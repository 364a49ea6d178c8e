"""One GPU for each process."""

from ..foundation import pin
from .membership import current


def pin_gpu() -> None:
    """Show this process only the GPU of its local rank, and let its memory grow as needed.

    Without a GPU it does nothing. Call it right after `dp.init()`.

    Raises:
        TfdpError: there are GPUs, but fewer than ranks on this host, or TensorFlow has begun to use them.
    """
    pin(current().topology)
