"""Which values keep the rows of a batch apart, and which mix them."""

from __future__ import annotations

from .callees import wrappers
from .domain import Rowwise
from .layers import batch_axis
from .sequences import given_to
from .values import BATCH, Of, Value, because, has_rows, is_free

__all__ = ["BATCH", "Of", "Rowwise", "Value", "batch_axis", "because", "given_to", "has_rows", "is_free", "wrappers"]
