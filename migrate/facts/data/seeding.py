"""Where random numbers come from: seeds, generators made without one, and draws that make data."""

from __future__ import annotations

import re
from collections.abc import Iterable

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, argument, parts

_DRAWS = re.compile(r"(tensorflow|keras)\.random\.(?!set_seed|Generator|experimental|stateless_)")
_BY_RANK = "tfdp.runtime.rank_seed"


def seeds(origins: Origins) -> tuple[tuple[cst.Call, Kind], ...]:
    """Calls that set the global seed with a value that is not made per rank yet."""
    found = []
    for call in origins.index.calls:
        kind = origins.kind(call.func)
        first = argument(call, "seed", 0)
        done = (
            first is not None and isinstance(first.value, cst.Call) and origins.names.api(first.value.func) == _BY_RANK
        )
        if kind in {Kind.SEED, Kind.SEED_ALL} and first is not None and not done:
            found.append((call, kind))
    return tuple(found)


def unseeded(origins: Origins) -> tuple[cst.Call, ...]:
    """NumPy's and Python's generators that are made without a seed, hence different on each rank."""
    return tuple(c for c in origins.index.calls if not c.args and origins.kind(c.func) is Kind.GENERATOR)


def draws_in(origins: Origins, made: Iterable[cst.CSTNode]) -> tuple[cst.Call, ...]:
    """Draws of TensorFlow's generators that expressions are made of."""
    drawn = [n for m in made for n in parts(origins, m) if isinstance(n, cst.Call)]
    return tuple(dict.fromkeys(c for c in drawn if _DRAWS.match(origins.names.api(c.func) or "")))
