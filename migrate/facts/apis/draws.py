"""What draws at random: NumPy's and Python's functions, and methods of their generators, by name."""

from __future__ import annotations

DRAW_SIZES = {
    **dict.fromkeys(("random", "random_sample", "standard_normal"), 0),
    **dict.fromkeys(("choice", "exponential"), 1),
    **dict.fromkeys(("gamma", "integers", "laplace", "multivariate_normal", "normal", "randint", "uniform"), 2),
}
"""Where each takes its `size`; not those that give an order of examples, as permutation does."""

DRAWS_INDICES = frozenset({"randint", "choice", "integers", "sample"})
"""May draw which examples come next."""

RESEEDS = frozenset({"numpy.random.seed", "random.seed"})
"""Seed the generator of a module: with None by the system's chance, other for each process."""

DEFINES_FLAG = tuple(f"absl.flags.DEFINE_{kind}" for kind in ("integer", "float", "string"))
"""Define a flag of absl: its name, its default."""

SEED_KEYWORDS = ("seed", "entropy", "a", "x", "random_state")
"""Under which a seed is given, where it is the first argument or given by keyword."""
