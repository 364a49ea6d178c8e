"""What is another thing than it is called: names put anew."""

from __future__ import annotations

from .patching import patched

__all__ = ["patched"]
