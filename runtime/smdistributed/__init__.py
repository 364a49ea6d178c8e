"""SMDDP's API over this runtime: `import tfdp.runtime.smdistributed.dataparallel.tensorflow as sdp`."""

NAMES = (
    "Compression",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "ReduceOp",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "broadcast_variables",
    "init",
    "local_rank",
    "local_size",
    "oob_allreduce",
    "overlap",
    "rank",
    "shutdown",
    "size",
)
"""What `smdistributed.dataparallel.tensorflow` has here."""
