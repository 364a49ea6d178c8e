"""How many axes the batches have that a dataset gives, or that are taken of arrays, where their source says so."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import libcst as cst

from ...catalogue import BATCHING
from ..data import Chain
from ..program import Origins, argument
from .values import BATCH, UNRANKED, Of, Value, is_free

_Evaluate = Callable[[cst.CSTNode], Value]
_KEEP_RECORDS = frozenset({"shuffle", "repeat", "prefetch", "cache", "take", "skip", "shard", "with_options"})


def of_chain(origins: Origins, value: _Evaluate, chain: Chain, path: tuple[int, ...]) -> Value:
    """A batch of a dataset, or the part of it at a path."""
    found = replace(BATCH, several=not path)
    stages = [link.stage for link in chain.links[1:]]
    if not (_KEEP_RECORDS | BATCHING).issuperset(stages) or sum(stage in BATCHING for stage in stages) != 1:
        return found
    call, name = chain.source, origins.called(chain.source).rpartition(".")[2]
    if name == "from_tensor_slices":
        given = argument(call, "tensors", 0)
        part = _part(origins, given.value, path) if given is not None else None
        array = value(part) if part is not None else BATCH
        return Value(Of.ROWS, rank=array.rank) if is_free(array) and array.base is None and array.rank else found
    signature = argument(call, "output_signature") if name == "from_generator" else None
    part = _part(origins, signature.value, path) if signature is not None else None
    made = origins.made(part) if part is not None else None
    shape = argument(made, "shape", 0) if isinstance(made, cst.Call) else None
    written = origins.made(shape.value) if shape is not None else None
    return Value(Of.ROWS, rank=len(written.elements) + 1) if isinstance(written, cst.Tuple | cst.List) else found


def _part(origins: Origins, node: cst.BaseExpression, path: tuple[int, ...]) -> cst.BaseExpression | None:
    """The element at a path of what is written out; None where that is several, or not known."""
    made = origins.made(node)
    if isinstance(made, cst.Dict) or (isinstance(made, cst.Tuple | cst.List) and not path):
        return None
    if not path:
        return node
    if not isinstance(made, cst.Tuple | cst.List) or not 0 <= path[0] < len(made.elements):
        return None
    return _part(origins, made.elements[path[0]].value, path[1:])


def of_array(value: _Evaluate, node: cst.CSTNode) -> Value:
    """A batch that is a slice of an array."""
    sliced = isinstance(node, cst.Subscript) and len(node.slice) == 1
    array = value(cst.ensure_type(node, cst.Subscript).value) if sliced else BATCH
    known = is_free(array) and array.base is None and array.rank
    return Value(Of.ROWS, rank=array.rank) if known else Value(Of.ROWS, rank=1, base=UNRANKED)


def of_input(origins: Origins, call: cst.Call) -> Value:
    """`keras.Input(shape=(28, 28))`: one axis more than its shape."""
    shape = next((a for a in call.args if a.keyword is None or a.keyword.value in {"shape", "batch_shape"}), None)
    made = origins.made(shape.value) if shape is not None else None
    if shape is None or not isinstance(made, cst.Tuple | cst.List):
        return replace(BATCH, several=False)
    whole = shape.keyword is not None and shape.keyword.value == "batch_shape"
    return Value(Of.ROWS, rank=len(made.elements) + (not whole))
