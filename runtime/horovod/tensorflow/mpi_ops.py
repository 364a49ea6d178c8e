"""`horovod.tensorflow.mpi_ops` over this runtime."""
# ruff: noqa: F401 - what scripts import

from ...foundation import Average, Max, Min, Product, Sum
from ..basics import *  # noqa: F403 - the same names
from ..collectives import allgather, broadcast, broadcast_
