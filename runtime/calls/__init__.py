"""Sharded calls: every worker runs the whole script, and its own rows of each model call that a tape records."""

from __future__ import annotations

from .by_rows import by_rows
from .entropy import common_entropy
from .installation import install
from .keras_layers import hook_layers
from .report import Line, report

__all__ = ["Line", "by_rows", "common_entropy", "hook_layers", "install", "report"]
