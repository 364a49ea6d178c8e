"""What TensorFlow knows of an operation by its name alone."""

from __future__ import annotations

import functools
import re
from typing import Any

# Of all operations with a state those that only read it, or hold others, which are looked at themselves.
_READS = frozenset(
    (
        *("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarHandleOp", "VarIsInitializedOp"),
        # Recurrent layers on GPUs: they draw where they drop out, which Keras' layers never let them do.
        *("CudnnRNN", "CudnnRNNV2", "CudnnRNNV3"),
        *("CudnnRNNBackprop", "CudnnRNNBackpropV2", "CudnnRNNBackpropV3"),
        *("StatefulPartitionedCall", "If", "While", "Case", "Assert"),
        *("HashTableV2", "LookupTableFindV2", "LookupTableSizeV2"),
    )
)

_SEED = "seed2"  # of each operation whose kernel draws, and of none that draws by what it is given
_DATASET = re.compile(r"Dataset(V\d+)?$")


@functools.cache
def only_reads(operation: str) -> bool:
    """Whether the operation changes no state."""
    definition = _definition(operation)
    return operation in _READS or (definition is not None and not definition.is_stateful)


def keeps_state(graph: Any) -> bool:
    """Whether running a graph changes anything, random numbers that are drawn included; not what makes datasets."""
    return not all(only_reads(name) or _DATASET.search(name) for name in names_in(graph))


def draws_on(graph: Any) -> bool:
    """Whether a graph draws numbers that go on from run to run, by a state that no other graph shares."""
    return any(not only_reads(name) and is_seeded(name) for name in names_in(graph))


@functools.cache
def is_seeded(operation: str) -> bool:
    """Whether the operation draws, by a state of its own."""
    definition = _definition(operation)
    return definition is not None and any(each.name == _SEED for each in definition.attr)


def _definition(operation: str) -> Any:
    """What TensorFlow knows of a name; None where there is no such operation. Nothing public tells it."""
    from tensorflow.python.framework import op_def_registry

    return op_def_registry.get(operation)


def names_in(graph: Any) -> set[str]:
    """The names of a graph's operations, and of those in its functions."""
    definition = graph.as_graph_def()
    return {
        node.op
        for nodes in (definition.node, *(each.node_def for each in definition.library.function))
        for node in nodes
    }
