"""Scripts that are distributed already, by another system: their one-worker form, which the facts then see."""

from __future__ import annotations

from .stage import single
from .texts import Place, Single, Taken

__all__ = ["Place", "Single", "Taken", "single"]
