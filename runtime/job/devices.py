"""One GPU for each process."""

from ..foundation import pin, when_imported
from .membership import current


def pin_gpu() -> None:
    """Show this process only the GPU of its local rank, and let its memory grow as needed.

    Without a GPU it does nothing. Call it right after `dp.init()`; it happens when TensorFlow has been imported.

    Raises:
        TfdpError: there are GPUs, but fewer than ranks on this host, or TensorFlow has begun to use them.
    """
    topology = current().topology
    when_imported(lambda: pin(topology))
