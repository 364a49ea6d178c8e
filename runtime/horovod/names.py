"""The names of Horovod's modules: those that are here, and those that are not. Imports nothing."""

from __future__ import annotations

BASICS = (
    "ccl_built",
    "cross_rank",
    "cross_size",
    "cuda_built",
    "ddl_built",
    "gloo_built",
    "gloo_enabled",
    "init",
    "is_homogeneous",
    "is_initialized",
    "local_rank",
    "local_size",
    "mpi_built",
    "mpi_enabled",
    "mpi_threads_supported",
    "nccl_built",
    "rank",
    "rocm_built",
    "shutdown",
    "size",
)
OPERATIONS = ("Average", "Max", "Min", "Product", "Sum")
COLLECTIVES = (
    "allgather",
    "allgather_object",
    "allreduce",
    "broadcast",
    "broadcast_",
    "broadcast_global_variables",
    "broadcast_object",
    "broadcast_variables",
    "grouped_allgather",
    "grouped_allreduce",
    "local_rank_op",
    "local_size_op",
    "rank_op",
    "size_op",
)
OF_TENSORFLOW = (
    *BASICS,
    *OPERATIONS,
    *COLLECTIVES,
    "Compression",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "global_process_set",
    "keras",
)
OF_KERAS = (
    *BASICS,
    "Average",
    "Sum",
    "Compression",
    "DistributedOptimizer",
    "allgather",
    "allreduce",
    "broadcast",
    "broadcast_global_variables",
    "callbacks",
    "global_process_set",
    "load_model",
)
OF_CALLBACKS = (
    "BroadcastGlobalVariablesCallback",
    "LearningRateScheduleCallback",
    "LearningRateWarmupCallback",
    "MetricAverageCallback",
)
OF_FUNCTIONS = ("allgather_object", "broadcast_object", "broadcast_variables")
MODULES = {
    "horovod": ("__version__", "keras", "run", "tensorflow"),
    "horovod.tensorflow": OF_TENSORFLOW,
    "horovod.tensorflow.compression": ("Compression",),
    "horovod.tensorflow.functions": OF_FUNCTIONS,
    "horovod.tensorflow.mpi_ops": (*BASICS, *OPERATIONS, "allgather", "broadcast", "broadcast_"),
    "horovod.tensorflow.keras": OF_KERAS,
    "horovod.tensorflow.keras.callbacks": OF_CALLBACKS,
    "horovod.keras": OF_KERAS,
    "horovod.keras.callbacks": OF_CALLBACKS,
}
"""What each module of Horovod's has here."""

LEFT_OUT = {
    "Adasum": "it is another way to combine gradients: use Average",
    "BestModelCheckpoint": "use keras.callbacks.ModelCheckpoint(save_best_only=True) on rank 0",
    "BroadcastGlobalVariablesHook": "it is for sessions of TensorFlow 1",
    "PartialDistributedGradientTape": "it has layers that differ by rank, which tfdp does not train",
    "PartialDistributedOptimizer": "it has layers that differ by rank, which tfdp does not train",
    "ProcessSet": "all ranks take part in everything",
    "SyncBatchNormalization": "migrate the script for one GPU: sharded calls have the whole batch's statistics",
    "add_process_set": "all ranks take part in everything",
    "alltoall": "each rank has its own model and data here; use allgather",
    "broadcast_object_fn": "it is for sessions of TensorFlow 1: use broadcast_object",
    "data": "a data service of Horovod's own: use tf.data, sharded by rank",
    "elastic": "the number of ranks does not change while a job runs",
    "grouped_reducescatter": "use grouped_allreduce",
    "join": "all ranks take equally many steps: shard the data evenly, or take so many batches as every rank has",
    "reducescatter": "use allreduce",
    "remove_process_set": "all ranks take part in everything",
    "start_timeline": "there is no timeline: use the TensorFlow profiler",
    "stop_timeline": "there is no timeline: use the TensorFlow profiler",
}
"""Names of Horovod's that are left out, each with what to do instead."""
