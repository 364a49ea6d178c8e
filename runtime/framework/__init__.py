"""How TensorFlow names variables, what its datasets are made of, and how our code stays out of what it compiles."""

from __future__ import annotations

from .autograph import as_written
from .datasets import made_of
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
    "made_of",
    "name_of",
    "stream_element",
]
