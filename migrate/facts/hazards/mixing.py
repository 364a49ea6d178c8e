"""What makes values of each example out of others of its batch: by the mean, norm or largest of them all.

A worker's examples then meet other ones than in one process. Keras' BatchNormalization is a known difference instead
(SEMANTICS.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ..data import Chain, Deal
from ..keras import methods_below
from ..losses import Losses
from ..program import Origins, Problem

_NETWORKS = (".Layer", ".Model", ".Sequential", ".RNN")
_CALLED = frozenset({"call", "__call__"})
_LAMBDA = "keras.layers.Lambda"
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

    def problems(self, chains: Iterable[Chain], deals: Iterable[Deal]) -> list[Problem]:
        """Each place once."""
        whole = {d.node for d in deals if d.batches}
        own = (c for c in chains if whole.isdisjoint(c.nodes))
        mapped = (given for chain in own for given in chain.mapped_over_batches)
        found = [*self._networks(), *(f for given in mapped for f in self._of_given(given))]
        return [Problem("TFDP090", node, _REASON, _NEXT) for node in dict.fromkeys(found)]

    def _networks(self) -> Iterator[cst.CSTNode]:
        for function in methods_below(self._origins, _CALLED, _NETWORKS):
            yield from self._mixed(function)
        for call in self._origins.index.calls:
            if self._origins.names.api(call.func) == _LAMBDA and call.args:
                yield from self._of_given(call.args[0].value)

    def _of_given(self, node: cst.BaseExpression) -> Iterator[cst.CSTNode]:
        """Of a function that is handed on: by its name, or written out there."""
        function = self._origins.function(node)
        if function is not None:
            yield from self._mixed(function)
        elif isinstance(node, cst.Lambda):
            yield from self._parts(node.body)

    def _mixed(self, function: cst.FunctionDef) -> Iterator[cst.CSTNode]:
        for returned in self._origins.index.returns[function]:
            if returned.value is not None:
                yield from self._parts(returned.value)

    def _parts(self, node: cst.BaseExpression) -> Iterator[cst.CSTNode]:
        """The elements of what is given that are mixed."""
        if isinstance(node, cst.Tuple | cst.List | cst.Dict):
            for element in node.elements:
                yield from self._parts(element.value)
        elif (value := self._losses.value(node)) is not None and value.mixed:
            yield node
