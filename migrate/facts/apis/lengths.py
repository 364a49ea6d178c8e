"""What decides how many elements a function gives: those of its arguments, their values, or something outside."""

from __future__ import annotations

COUNTS = frozenset({"builtins.len", "numpy.shape", "numpy.size", "tensorflow.shape", "tensorflow.size"})
"""Functions that say how many there are."""
