"""What serves the ranks of one host: the store's other side, and the process that holds it where an engine starts them.

`tfdp run` serves its ranks itself. Where mpirun or srun start them, nobody outlives them who could: the first rank of
a host then starts an agent. Nothing here imports TensorFlow.
"""

from __future__ import annotations

from .engine_hosts import ROOT, SHORTEST
from .hosts import Hosts
from .link import Link
from .rendezvous import Comer, Meeting, Plan, address_of, alone, met
from .store_server import StoreServer, Ways

__all__ = [
    "ROOT",
    "SHORTEST",
    "Comer",
    "Hosts",
    "Link",
    "Meeting",
    "Plan",
    "StoreServer",
    "Ways",
    "address_of",
    "alone",
    "met",
]
