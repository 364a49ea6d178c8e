"""From a value that is each worker's own back to the examples that it is made from."""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..program import Origins, Unknown, additions, attribute_additions, reaching, tests_around
from ..sameness import Mark, Sameness

_FAR = 60  # places followed
_PARTS = (cst.BaseExpression, cst.Arg, cst.Element, cst.ComparisonTarget, cst.SubscriptElement, cst.Index)


def because(origins: Origins, sameness: Sameness, node: cst.CSTNode) -> Unknown | None:
    """The name or call farthest on the way from a value to this worker's examples; None where that is the value."""
    seen: dict[cst.CSTNode, None] = {node: None}
    ring = [node]
    while ring and len(seen) < _FAR:
        ring = list(dict.fromkeys(n for each in ring for n in _further(origins, sameness, each) if n not in seen))
        seen.update(dict.fromkeys(ring))
    named = [n for n in seen if n is not node and _is_value(origins, n)]
    return Unknown(named[-1], "is made from this worker's examples") if named else None


def _further(origins: Origins, sameness: Sameness, node: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """What a value is made of that is this worker's own."""
    made: list[cst.CSTNode | None] = []
    if isinstance(node, cst.Name):
        definitions = reaching(origins.index, node)
        made += [d.value for d in definitions if Mark.LOCAL in sameness.definition(d)]
        added = [a.values for a in additions(origins, definitions)]
    elif isinstance(node, cst.Attribute):
        made += [value for value, _ in origins.stored(node)]
        added = [a.values for a in attribute_additions(origins, node)]
    else:
        followed = isinstance(node, cst.Call) and origins.function(node.func) is not None
        made += () if followed else node.children
        added = []
    for each in (*made, *(value for values in added for value in values)):
        plain = each.value if isinstance(each, cst.AugAssign) else each
        if isinstance(plain, _PARTS) and Mark.LOCAL in sameness.of(plain):
            yield plain
        elif each is not None and each not in node.children:
            yield from (t for t in tests_around(each, origins) if Mark.LOCAL in sameness.of(t))


def _is_value(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether a message may say what a node is made of: a name or a call, not a method."""
    holder = origins.index.parents.get(node)
    if isinstance(node, cst.Attribute):
        return not (isinstance(holder, cst.Call) and holder.func is node)
    return isinstance(node, cst.Name | cst.Call)
