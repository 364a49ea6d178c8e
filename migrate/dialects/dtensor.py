"""DTensor: the runtime has its words for one device, on which nothing is split, and sharded calls divide the model's.

Weights that are sharded are refused by those words where they are made.
"""

from __future__ import annotations

import libcst as cst
import libcst.matchers as m

from ..facts.program import Index, Names, Program, SourceFile
from ..imports import MODULE as RUNTIME
from .texts import Change, NotReadError, Span, Taken

WORD = "dtensor"
_MODULE = "tensorflow.experimental.dtensor"
_KERAS = "keras.dtensor"
WORDS = frozenset(
    {
        "Layout",
        "MATCH",
        "Mesh",
        "UNSHARDED",
        "DVariable",
        "call_with_layout",
        "client_id",
        "copy_to_mesh",
        "create_distributed_mesh",
        "create_mesh",
        "default_mesh",
        "fetch_layout",
        "initialize_accelerator_system",
        "initialize_multi_client",
        "num_clients",
        "pack",
        "relayout",
        "run_on",
        "shutdown_accelerator_system",
        "unpack",
    }
)
"""What the runtime has of it."""
_SAID = (
    "DTensor's words are the runtime's, on one device: each worker has the whole batch, and its own rows of each call"
)


def next_change(module: cst.Module) -> tuple[Change, Taken] | None:
    """The next import to be changed, None where nothing of DTensor is left.

    Raises NotReadError where something of it is not understood.
    """
    file = SourceFile(module)
    index = Index(Program(file))
    names = Names(index)
    every = [node for held in (index.names, index.attributes) for nodes in held.values() for node in nodes]
    apis = {names.api(node) or "" for node in every}
    if any(api.rpartition(".")[0] == _MODULE and api.rpartition(".")[2] not in WORDS for api in apis):
        raise NotReadError
    for node in m.findall(module, m.Import() | m.ImportFrom()):
        span = _of_import(file, node) if isinstance(node, cst.Import) else None
        span = _of_names(file, node) if isinstance(node, cst.ImportFrom) else span
        if span is not None:
            return Change(span=span), Taken(*file.position(node), _SAID)
    if any(api.startswith((_MODULE, _KERAS)) for api in apis):
        raise NotReadError
    return None


def _of_import(file: SourceFile, node: cst.Import) -> Span | None:
    """`import tensorflow.experimental.dtensor as dtensor`."""
    for alias in node.names:
        if file.code(alias.name) == _MODULE:
            if alias.asname is None:
                raise NotReadError
            return Span(*file.span(alias.name), f"{RUNTIME}.{WORD}")
    return None


def _of_names(file: SourceFile, node: cst.ImportFrom) -> Span | None:
    """`from tensorflow.experimental import dtensor`, and what is imported from it."""
    dotted = file.code(node.module) if node.module is not None and not node.relative else ""
    if dotted == _MODULE and node.module is not None:
        if isinstance(node.names, cst.ImportStar) or any(file.code(a.name) not in WORDS for a in node.names):
            raise NotReadError
        return Span(*file.span(node.module), f"{RUNTIME}.{WORD}")
    if dotted != _MODULE.rpartition(".")[0] or isinstance(node.names, cst.ImportStar) or node.module is None:
        return None
    brought = [file.code(alias.name) for alias in node.names]
    if WORD not in brought:
        return None
    if len(brought) > 1:
        raise NotReadError
    return Span(*file.span(node.module), RUNTIME)
