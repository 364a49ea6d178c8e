"""What only rank 0 comes to, by the script's own text."""

from __future__ import annotations

import libcst as cst

from ..apis import ON_ROOT
from ..program import Origins, number

_DP = "tfdp.runtime."


def is_on_root(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether a node is inside `if dp.rank() == 0:`, `… if dp.rank() == 0 else …` or an argument of `dp.on_root(…)` and
    the like."""
    child = node
    for parent in origins.index.ancestors(node):
        if isinstance(parent, cst.If | cst.IfExp) and child is parent.body and _asks_rank(origins, parent.test):
            return True
        if origins.called(parent) in ON_ROOT:
            return True
        child = parent
    return False


def _asks_rank(origins: Origins, test: cst.BaseExpression) -> bool:
    """`dp.rank() == 0`."""
    if not isinstance(test, cst.Comparison) or len(test.comparisons) != 1:
        return False
    target = test.comparisons[0]
    is_zero = isinstance(target.operator, cst.Equal) and number(target.comparator) == 0
    return is_zero and origins.called(test.left) == f"{_DP}rank"
