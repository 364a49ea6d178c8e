"""What serves the ranks of one host: the store's other side, and the process that holds it where an engine starts them.

`tfdp run` serves its ranks itself. Where mpirun or srun start them, nobody outlives them who could: the first rank of
a host then starts an agent. Nothing here imports TensorFlow.
"""

from __future__ import annotations

from .store_server import StoreServer

__all__ = ["StoreServer"]
