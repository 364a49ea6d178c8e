"""Where the size of the batch is written out in a shape that a loss is computed from."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator

import libcst as cst

from ..program import Origins, number


def sizes_in_shapes(
    origins: Origins, literals: Collection[float], computed: Iterable[cst.CSTNode]
) -> Iterator[cst.CSTNode]:
    """`[32, 100]`: numbers equal to the size that stand first in a list of several."""
    for node in computed:
        if isinstance(node, cst.Integer) and number(node) in literals and number(node) not in {0, 1}:
            element = origins.index.parents.get(node)
            holder = origins.index.parents.get(element) if isinstance(element, cst.Element) else None
            if isinstance(holder, cst.List | cst.Tuple) and holder.elements[0] is element and len(holder.elements) > 1:
                yield node
