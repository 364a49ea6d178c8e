"""Where the size of the batch is a number in what a loss is computed from: of another batch it would be another one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from ...catalogue import BATCHING
from ..batches import BatchSizes
from ..program import Origins, method, number

_STAGES = BATCHING | {"shuffle", "prefetch", "take", "skip", "repeat", "build"}
_SHOWN = frozenset({"builtins.print", "builtins.str", "builtins.repr", "builtins.format"})


def sizes_as_numbers(origins: Origins, sizes: BatchSizes, computed: Iterable[cst.CSTNode]) -> Iterator[cst.CSTNode]:
    """Those in `computed`, but where batches are made and where it is only shown."""
    for node in computed:
        if isinstance(node, cst.Name | cst.Attribute | cst.Subscript):
            found = not _is_inner(origins, node) and sizes.may_stand(node)
        else:
            found = isinstance(node, cst.Integer) and number(node) in sizes.literals and number(node) not in {0, 1}
            found = found and _is_in_shape(origins, node)
        if found and not _makes_batches(origins, node):
            yield node


def _is_inner(origins: Origins, node: cst.CSTNode) -> bool:
    """A part of a longer name, what is defined, or the name of an argument."""
    parent = origins.index.parents.get(node)
    inner = isinstance(parent, cst.Attribute | cst.Subscript) and parent.value is node
    return inner or origins.index.is_target(node) or (isinstance(node, cst.Name) and origins.index.is_label(node))


def _is_in_shape(origins: Origins, node: cst.CSTNode) -> bool:
    """`[32, 100]`: a number that stands first in a list of several."""
    element = origins.index.parents.get(node)
    holder = origins.index.parents.get(element) if isinstance(element, cst.Element) else None
    several = isinstance(holder, cst.List | cst.Tuple) and len(holder.elements) > 1
    return several and holder.elements[0] is element  # type: ignore[union-attr]


def _makes_batches(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether it is an argument of a stage of the data, of `fit`, or of what is only shown; or goes on by a name."""
    for above in origins.index.ancestors(node):
        if isinstance(above, cst.Call):
            api = origins.called(above)
            own = origins.function(above.func) is not None or origins.constructed(above) is not None
            return own or api in _SHOWN or method(above) in _STAGES or method(above) == "fit"
        if isinstance(above, cst.Assign | cst.AnnAssign | cst.Return | cst.Param):
            return True
        if isinstance(above, cst.BinaryOperation | cst.BaseCompoundStatement | cst.FormattedStringExpression):
            return isinstance(above, cst.FormattedStringExpression)
    return False
