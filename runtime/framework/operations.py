"""What TensorFlow knows of an operation by its name alone."""

from __future__ import annotations

import functools

# Of all operations with a state those that only read it, or hold others, which are looked at themselves.
_READS = frozenset(
    (
        *("ReadVariableOp", "ResourceGather", "ResourceGatherNd", "VarHandleOp", "VarIsInitializedOp"),
        *("StatefulPartitionedCall", "If", "While", "Case", "Assert"),
        *("HashTableV2", "LookupTableFindV2", "LookupTableSizeV2"),
    )
)


@functools.cache
def only_reads(operation: str) -> bool:
    """Whether the operation changes no state; nothing public tells it of a name."""
    from tensorflow.python.framework import op_def_registry

    definition = op_def_registry.get(operation)
    return operation in _READS or (definition is not None and not definition.is_stateful)
