"""How the gradients of all workers become one."""

from __future__ import annotations

from .accumulation import Accumulation
from .compression import Compression
from .exchange import FINGERPRINT, Exchange, Gradient, count_exchange, exchanges, values_of
from .options import check_kinds, check_options
from .tape_marks import forget_marks, mark, refuse_marked, taken_back

__all__ = [
    "FINGERPRINT",
    "Accumulation",
    "Compression",
    "Exchange",
    "Gradient",
    "check_kinds",
    "check_options",
    "count_exchange",
    "exchanges",
    "forget_marks",
    "mark",
    "refuse_marked",
    "taken_back",
    "values_of",
]
