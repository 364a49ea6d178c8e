"""Sharded calls: every worker runs the whole script, and its own rows of each model call that a tape records."""

from __future__ import annotations

from .entropy import draw_by
from .functions import by_rows, matmul
from .installation import install
from .keras_layers import hook_layers
from .look import is_looking
from .report import NOTHING, Line, are_single_rows, report
from .unspent import spend_from, spent

__all__ = [
    "NOTHING",
    "Line",
    "are_single_rows",
    "by_rows",
    "draw_by",
    "hook_layers",
    "install",
    "is_looking",
    "matmul",
    "report",
    "spend_from",
    "spent",
]
