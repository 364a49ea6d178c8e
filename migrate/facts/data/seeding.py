"""Where random numbers come from: seeds, generators made without one, and draws that make data."""

from __future__ import annotations

import libcst as cst

from ...catalogue import Kind
from ..program import Origins, argument

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
