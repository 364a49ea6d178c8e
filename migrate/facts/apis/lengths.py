"""What decides how many elements a function gives: those of its arguments, their values, or something outside."""

from __future__ import annotations

import re

COUNTS = frozenset({"builtins.len", "numpy.shape", "numpy.size", "tensorflow.shape", "tensorflow.size"})
"""Functions that say how many there are."""

AS_LONG = frozenset(
    {
        *("builtins.list", "builtins.tuple", "builtins.sorted", "builtins.reversed", "builtins.enumerate"),
        *("builtins.zip", "numpy.array", "numpy.asarray", "numpy.concatenate", "numpy.stack", "collections.deque"),
        *("tensorflow.stack", "tensorflow.concat", "tensorflow.constant", "tensorflow.convert_to_tensor"),
    }
)
"""As many as the arguments have."""

CHOOSES = frozenset(
    {
        *("builtins.filter", "builtins.set", "builtins.frozenset", "builtins.str", "builtins.repr"),
        *("numpy.unique", "numpy.nonzero", "numpy.flatnonzero", "numpy.argwhere", "numpy.where", "numpy.compress"),
        *("numpy.extract", "tensorflow.boolean_mask", "tensorflow.where", "tensorflow.unique", "tensorflow.range"),
        *("builtins.range", "numpy.arange", "itertools.takewhile", "itertools.dropwhile", "collections.Counter"),
    }
)
"""As many as the values of the arguments choose."""

AS_SAID = re.compile(
    r"(numpy|tensorflow|keras\.ops)\.(zeros|ones|full|empty|fill|eye|identity|linspace|logspace)$"
    r"|(numpy|tensorflow|keras)\.random\."
)
"""As many as a number among the arguments says."""

CHOOSING_METHODS = frozenset({"split", "splitlines", "nonzero", "encode", "strip", "compress"})
"""Methods that give as many as the value of their object chooses."""

OUTSIDE = re.compile(r"(os|glob|pathlib)\.")
"""As many as there are outside the program."""
