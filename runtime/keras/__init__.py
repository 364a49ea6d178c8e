"""Differences between the versions of Keras."""

from __future__ import annotations

from .averaged import KEY, averaging_of, is_averaged
from .hooks import Hooks, is_keras, named_in
from .optimizers import PACKAGES, inner_of, optimizer_of, rate_of, road_of, variables_of
from .resuming import begin_in, can_begin_later

__all__ = [
    "KEY",
    "PACKAGES",
    "Hooks",
    "averaging_of",
    "begin_in",
    "can_begin_later",
    "inner_of",
    "is_averaged",
    "is_keras",
    "named_in",
    "optimizer_of",
    "rate_of",
    "road_of",
    "variables_of",
]
