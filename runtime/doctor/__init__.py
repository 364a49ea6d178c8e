"""`tfdp doctor`: what is here to train on, which engine has started this, and whether processes can train together."""

from __future__ import annotations

from .examination import examine

__all__ = ["examine"]
