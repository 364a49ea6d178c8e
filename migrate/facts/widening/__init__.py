"""Whether a step may be given the batches of all workers, with learning rates and numbers of steps that follow."""

from __future__ import annotations

from .understood import unwidened

__all__ = ["unwidened"]
