"""What makes values of each example out of others of its batch: by the mean, norm or largest of them all.

A worker's examples then meet other ones than in one process. Keras' BatchNormalization is a known difference instead
(SEMANTICS.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ..apis import CALLED
from ..data import Chain, ShardPoint
from ..keras import methods_below
from ..losses import Losses
from ..program import Origins, Problem

_NETWORKS = (".Layer", ".Model", ".Sequential", ".RNN")
_REASON = "this makes values of each example out of all examples of its batch, of which a worker has its own only"
_NEXT = (
    "take the mean, norm or the like of each example (axis=1 and so on), of all data before training, or write "
    "`# tfdp: ignore[TFDP090]` here if it may be that of a worker's examples"
)


class Mixing:
    """Looks into the file's own layers and models, and at what is mapped over batches."""

    def __init__(self, origins: Origins, losses: Losses) -> None:
        """`losses` has to know nothing of who calls a function."""
        self._origins, self._losses = origins, losses

    def problems(self, chains: Iterable[Chain], shard_points: Iterable[ShardPoint]) -> list[Problem]:
        """Each place once."""
        whole = {d.node for d in shard_points if d.batches}
        own = (c for c in chains if whole.isdisjoint(c.nodes))
        given = [c.args[0].value for c in self._origins.calls_to("keras.layers.Lambda") if c.args]
        given += [value for chain in own for value in chain.mapped_over_batches]
        below = methods_below(self._origins, CALLED, _NETWORKS)
        functions = [*below, *(self._origins.function(value) or value for value in given)]
        own_code = [f for f in functions if isinstance(f, cst.FunctionDef | cst.Lambda)]
        found = [n for f in own_code for value in self._origins.index.returned(f) for n in self._mixed(value)]
        return [Problem("TFDP090", node, _REASON, _NEXT) for node in dict.fromkeys(found)]

    def _mixed(self, node: cst.BaseExpression) -> Iterator[cst.CSTNode]:
        """The elements of what is given that are mixed."""
        if isinstance(node, cst.Tuple | cst.List | cst.Dict):
            for element in node.elements:
                yield from self._mixed(element.value)
        elif self._losses.value(node).mixed:
            yield node
