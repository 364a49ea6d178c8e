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

_DATASET = re.compile(r"Dataset(V\d+)?$")


@functools.cache
def only_reads(operation: str) -> bool:
    """Whether the operation changes no state; nothing public tells it of a name."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(operation)
    return operation in _READS or (definition is not None and not definition.is_stateful)


def keeps_state(graph: Any) -> bool:
    """Whether running a graph changes anything, random numbers that are drawn included; not what makes datasets."""
    definition = graph.as_graph_def()
    nodes = [*definition.node, *(node for function in definition.library.function for node in function.node_def)]
    return not all(only_reads(name) or _DATASET.search(name) for name in {node.op for node in nodes})
