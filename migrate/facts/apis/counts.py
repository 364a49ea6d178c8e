"""Numbers of examples and of steps: what gives them, and what is computed of them."""

from __future__ import annotations

import re

LOCAL_STEPS = "tfdp.runtime.local_steps"
"""The steps of one worker, of those of the one-process script."""

ROUNDS = frozenset(
    {"builtins.round", *(f"{m}.{name}" for m in ("math", "numpy") for name in ("ceil", "floor", "trunc"))}
)
"""A whole number near another."""

COMPUTES = re.compile(r"(builtins\.(max|min|abs|pow)|math\.\w+|numpy\.(maximum|minimum|round|around))$")
"""A number of numbers."""

COUNTS_EXAMPLES = frozenset({"numpy.bincount", "numpy.count_nonzero", "numpy.sum", "numpy.unique"})
"""How many examples there are of a kind."""

GIVEN_OUTSIDE = frozenset({"os.getenv", "os.environ", "os.environ.get", "sys.argv"})
"""What whoever starts the script has said."""

SIZES_OF_FLOWS = frozenset({"samples", "n", "batch_size"})
"""Attributes of what an ImageDataGenerator flows: how many examples it has, or gives at a time."""
