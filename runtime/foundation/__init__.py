"""What everything else of the runtime stands on; nothing here imports TensorFlow."""

from __future__ import annotations

from .endings import REASON_SECONDS, reason_within, uncaught
from .errors import (
    CollectiveMismatchError,
    JobAborted,
    LaunchEnvironmentError,
    NotInitializedError,
    RankFinishedError,
    StallError,
    StoreError,
    StoreEvictedError,
    StoreTimeout,
    TfdpError,
    TopologyError,
    TransportError,
    hear_errors,
)
from .gpus import pin
from .imports import import_now, is_imported, when_imported
from .ops import Average, Max, Min, Product, ReduceOp, Sum
from .places import Ordinals, say_once
from .ports import PORTS, allow_ports, allowed_ports
from .sites import call_site, is_generated, is_of_script, is_users, site_of
from .threads import Inside, is_elsewhere
from .topology import SOLO, Topology
from .wording import gist

__all__ = [
    "PORTS",
    "REASON_SECONDS",
    "SOLO",
    "Average",
    "CollectiveMismatchError",
    "Inside",
    "JobAborted",
    "LaunchEnvironmentError",
    "Max",
    "Min",
    "NotInitializedError",
    "Ordinals",
    "Product",
    "RankFinishedError",
    "ReduceOp",
    "StallError",
    "StoreError",
    "StoreEvictedError",
    "StoreTimeout",
    "Sum",
    "TfdpError",
    "Topology",
    "TopologyError",
    "TransportError",
    "allow_ports",
    "allowed_ports",
    "call_site",
    "gist",
    "hear_errors",
    "import_now",
    "is_elsewhere",
    "is_generated",
    "is_imported",
    "is_of_script",
    "is_users",
    "pin",
    "reason_within",
    "say_once",
    "site_of",
    "uncaught",
    "when_imported",
]
