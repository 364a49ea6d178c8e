"""How TensorFlow names variables, and how our code stays out of what it compiles."""

from __future__ import annotations

from .autograph import as_written
from .variables import Key, Keys, Variable, collect, is_followed, is_variable, keyed, name_of, stream_element

__all__ = [
    "Key",
    "Keys",
    "Variable",
    "as_written",
    "collect",
    "is_followed",
    "is_variable",
    "keyed",
    "name_of",
    "stream_element",
]
