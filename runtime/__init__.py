"""What a migrated script imports: `import tfdp.runtime as dp`.

Importing this package imports neither TensorFlow nor NumPy; each name is loaded when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .calls import by_rows as by_rows
    from .calls import matmul as matmul
    from .collective import agree as agree
    from .collective import allgather as allgather
    from .collective import allreduce as allreduce
    from .collective import average_value as average_value
    from .collective import barrier as barrier
    from .collective import broadcast as broadcast
    from .collective import broadcast_object as broadcast_object
    from .collective import broadcast_variables as broadcast_variables
    from .collective import global_mean as global_mean
    from .collective import global_sum as global_sum
    from .collective import grouped_allreduce as grouped_allreduce
    from .collective import metric_result as metric_result
    from .data import count_examples as count_examples
    from .data import even_batch_size as even_batch_size
    from .data import global_batch_size as global_batch_size
    from .data import held_out as held_out
    from .data import local_batch_size as local_batch_size
    from .data import local_batches as local_batches
    from .data import local_rows as local_rows
    from .data import local_steps as local_steps
    from .data import rank_path as rank_path
    from .data import shard as shard
    from .data import shard_batches as shard_batches
    from .data import sharded_length as sharded_length
    from .foundation import Average as Average
    from .foundation import CollectiveMismatchError as CollectiveMismatchError
    from .foundation import JobAborted as JobAborted
    from .foundation import LaunchEnvironmentError as LaunchEnvironmentError
    from .foundation import Max as Max
    from .foundation import Min as Min
    from .foundation import NotInitializedError as NotInitializedError
    from .foundation import Product as Product
    from .foundation import RankFinishedError as RankFinishedError
    from .foundation import ReduceOp as ReduceOp
    from .foundation import StallError as StallError
    from .foundation import StoreError as StoreError
    from .foundation import StoreEvictedError as StoreEvictedError
    from .foundation import StoreTimeout as StoreTimeout
    from .foundation import Sum as Sum
    from .foundation import TfdpError as TfdpError
    from .foundation import TopologyError as TopologyError
    from .foundation import TransportError as TransportError
    from .gradients import Compression as Compression
    from .initialise import init as init
    from .job import common_seed as common_seed
    from .job import cross_rank as cross_rank
    from .job import cross_size as cross_size
    from .job import is_initialized as is_initialized
    from .job import local_rank as local_rank
    from .job import local_size as local_size
    from .job import on_root as on_root
    from .job import pin_gpu as pin_gpu
    from .job import rank as rank
    from .job import rank_seed as rank_seed
    from .job import report as report
    from .job import root_first as root_first
    from .job import root_path as root_path
    from .job import seed_by_rank as seed_by_rank
    from .job import set_random_seed as set_random_seed
    from .job import shuffle_seed as shuffle_seed
    from .job import shutdown as shutdown
    from .job import size as size
    from .runner import Runner as Runner
    from .runner import WorkerError as WorkerError
    from .start import broadcast_state as broadcast_state
    from .training import DistributedGradientTape as DistributedGradientTape
    from .training import DistributedOptimizer as DistributedOptimizer
    from .training import fit_callbacks as fit_callbacks
    from .training import local_schedule as local_schedule
    from .training import scale_lr as scale_lr
    from .training import scale_optimizer as scale_optimizer

_ROOMS = {
    "calls": ("by_rows", "matmul"),
    "collective": (
        "agree",
        "allgather",
        "allreduce",
        "average_value",
        "barrier",
        "broadcast",
        "broadcast_object",
        "broadcast_variables",
        "global_mean",
        "global_sum",
        "grouped_allreduce",
        "metric_result",
    ),
    "data": (
        "count_examples",
        "sharded_length",
        "even_batch_size",
        "global_batch_size",
        "held_out",
        "local_batch_size",
        "local_batches",
        "local_rows",
        "local_steps",
        "rank_path",
        "shard",
        "shard_batches",
    ),
    "foundation": (
        "Average",
        "CollectiveMismatchError",
        "JobAborted",
        "LaunchEnvironmentError",
        "Max",
        "Min",
        "NotInitializedError",
        "Product",
        "RankFinishedError",
        "ReduceOp",
        "StallError",
        "StoreError",
        "StoreEvictedError",
        "StoreTimeout",
        "Sum",
        "TfdpError",
        "TopologyError",
        "TransportError",
    ),
    "gradients": ("Compression",),
    "initialise": ("init",),
    "job": (
        "common_seed",
        "cross_rank",
        "cross_size",
        "is_initialized",
        "local_rank",
        "local_size",
        "on_root",
        "pin_gpu",
        "rank",
        "rank_seed",
        "report",
        "root_first",
        "root_path",
        "seed_by_rank",
        "set_random_seed",
        "shuffle_seed",
        "shutdown",
        "size",
    ),
    "runner": ("Runner", "WorkerError"),
    "start": ("broadcast_state",),
    "training": (
        "DistributedGradientTape",
        "DistributedOptimizer",
        "fit_callbacks",
        "local_schedule",
        "scale_lr",
        "scale_optimizer",
    ),
}
# Reached as in Horovod: `dp.callbacks.MetricAverageCallback()`.
_SUBMODULES = {"callbacks": "training.callbacks"}
_WITHOUT_TENSORFLOW = ("foundation", "initialise", "job", "runner")
_WHERE = {name: room for room, names in _ROOMS.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{_SUBMODULES[name]}")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    room = _WHERE[name]
    if room not in _WITHOUT_TENSORFLOW:
        importlib.import_module("tensorflow")  # what waits for that needs the room
    value = getattr(importlib.import_module(f"{__name__}.{room}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_SUBMODULES})
