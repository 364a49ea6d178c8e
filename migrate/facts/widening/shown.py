"""Whether nothing happens where it is computed what a script shows: it may be shown at fewer steps then."""

from __future__ import annotations

import re

import libcst as cst

from ..apis import ONLY_COMPUTES
from ..program import Origins, fold, is_of_names, method, nodes

_OF_ARRAYS = re.compile(
    r"numpy\.(?!random\.)|tensorflow\.(math|linalg)\.|tensorflow\.nn\.(?!\w*(dropout|sampled|nce_|fractional))"
    r"|tensorflow\.(reduce_\w+|cast|norm|sqrt|abs|square|exp|sigmoid|tanh|add|subtract|multiply|matmul|equal|argmax|argmin"
    r"|maximum|minimum|round|reshape|transpose|expand_dims|squeeze|concat|stack|gather|where|one_hot|shape|size|constant"
    r"|(zeros|ones)(_like)?)$"
)
_READS = frozenset({"format", "join", "numpy", "item", "mean", "result", "strftime", "total_seconds"})
_HAPPENS = (
    cst.Await,
    cst.NamedExpr,
    cst.Yield,
    cst.With,
    cst.AugAssign,
    cst.AnnAssign,
    cst.Global,
    cst.Nonlocal,
    cst.Del,
)
_DEPTH = 4  # functions that call one another


def only_shows(origins: Origins, call: cst.CSTNode) -> bool:
    """Whether a call that shows something is given what was computed from what there is."""
    return _only_computes(origins, [node for node in nodes(call) if node is not call], _DEPTH)


def _only_computes(origins: Origins, inside: list[cst.CSTNode], depth: int) -> bool:
    stores = (t.target for node in inside if isinstance(node, cst.Assign) for t in node.targets)
    if any(isinstance(node, _HAPPENS) for node in inside) or not all(map(is_of_names, stores)):
        return False
    return all(_is_pure(origins, node, depth) for node in inside if isinstance(node, cst.Call))


def _is_pure(origins: Origins, call: cst.Call, depth: int) -> bool:
    api = fold(origins.called(call))
    if api:
        return bool(ONLY_COMPUTES.match(api) or _OF_ARRAYS.match(api))
    function = origins.function(call.func)
    if isinstance(function, cst.FunctionDef):
        return depth > 0 and _only_computes(origins, list(nodes(function.body)), depth - 1)
    return method(call) in _READS
