"""Where random numbers come from: seeds, generators made without one, and draws that make data."""

from __future__ import annotations

from collections.abc import Iterable

import libcst as cst

from ...catalogue import Kind
from ..apis import DRAWS_BY_SEED
from ..program import Origins, argument, parts

_BY_RANK = "tfdp.runtime.rank_seed"


def seeds(origins: Origins) -> tuple[tuple[cst.Call, Kind], ...]:
    """Calls that set the global seed with a value that is not made per rank yet."""
    found = []
    for call in origins.index.calls:
        kind = origins.kind(call.func)
        first = argument(call, "seed", 0)
        if kind in {Kind.SEED, Kind.SEED_ALL} and first is not None and origins.called(first.value) != _BY_RANK:
            found.append((call, kind))
    return tuple(found)


def draws_in(origins: Origins, made: Iterable[cst.CSTNode]) -> tuple[cst.Call, ...]:
    """Draws of TensorFlow's generators that expressions are made of."""
    calls = [n for m in made for n in parts(origins, m) if isinstance(n, cst.Call)]
    return tuple(dict.fromkeys(c for c in calls if DRAWS_BY_SEED.match(origins.called(c))))
