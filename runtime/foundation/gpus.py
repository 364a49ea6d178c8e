"""Which GPU of the host is this process's."""

from .errors import TfdpError
from .topology import Topology


def pin(topology: Topology) -> None:
    """`pin_gpu` for a process that is about to join a job as this one."""
    import tensorflow as tf

    gpus = tf.config.list_physical_devices("GPU")
    if not gpus:
        return
    if len(gpus) < topology.local_size:
        raise TfdpError(
            f"{len(gpus)} GPU(s) visible for {topology.local_size} ranks on this host: start at most {len(gpus)} here "
            f"(`tfdp run -np {len(gpus)}`), widen CUDA_VISIBLE_DEVICES, or hide all GPUs with CUDA_VISIBLE_DEVICES=-1 "
            "to train on CPUs"
        )
    mine = gpus[topology.local_rank]
    try:
        tf.config.set_visible_devices(mine, "GPU")
        tf.config.experimental.set_memory_growth(mine, True)
    except RuntimeError as error:
        raise TfdpError(
            f"rank {topology.rank} cannot be given {mine.name} alone any more ({error}): call dp.pin_gpu() right after "
            "dp.init(), before anything else of TensorFlow"
        ) from error
