"""What a migrated script imports: `import tfdp.runtime as dp`.

Importing this package imports neither TensorFlow nor NumPy; each name is loaded when it is first used.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tfdp.runtime.array_shares import held_out as held_out
    from tfdp.runtime.arrays import dealt_length as dealt_length
    from tfdp.runtime.arrays import even_batch_size as even_batch_size
    from tfdp.runtime.arrays import global_batch_size as global_batch_size
    from tfdp.runtime.arrays import local_batches as local_batches
    from tfdp.runtime.arrays import local_rows as local_rows
    from tfdp.runtime.batches import shard_batches as shard_batches
    from tfdp.runtime.collectives import allgather as allgather
    from tfdp.runtime.collectives import allreduce as allreduce
    from tfdp.runtime.collectives import barrier as barrier
    from tfdp.runtime.collectives import broadcast as broadcast
    from tfdp.runtime.collectives import broadcast_object as broadcast_object
    from tfdp.runtime.collectives import broadcast_variables as broadcast_variables
    from tfdp.runtime.collectives import grouped_allreduce as grouped_allreduce
    from tfdp.runtime.compression import Compression as Compression
    from tfdp.runtime.data import count_examples as count_examples
    from tfdp.runtime.data import local_batch_size as local_batch_size
    from tfdp.runtime.data import local_steps as local_steps
    from tfdp.runtime.data import rank_path as rank_path
    from tfdp.runtime.data import shard as shard
    from tfdp.runtime.decisions import agree as agree
    from tfdp.runtime.decisions import average_value as average_value
    from tfdp.runtime.decisions import metric_result as metric_result
    from tfdp.runtime.devices import pin_gpu as pin_gpu
    from tfdp.runtime.errors import CollectiveMismatchError as CollectiveMismatchError
    from tfdp.runtime.errors import JobAborted as JobAborted
    from tfdp.runtime.errors import LaunchEnvironmentError as LaunchEnvironmentError
    from tfdp.runtime.errors import NotInitializedError as NotInitializedError
    from tfdp.runtime.errors import RankFinishedError as RankFinishedError
    from tfdp.runtime.errors import StallError as StallError
    from tfdp.runtime.errors import StoreError as StoreError
    from tfdp.runtime.errors import StoreEvictedError as StoreEvictedError
    from tfdp.runtime.errors import StoreTimeout as StoreTimeout
    from tfdp.runtime.errors import TfdpError as TfdpError
    from tfdp.runtime.errors import TopologyError as TopologyError
    from tfdp.runtime.errors import TransportError as TransportError
    from tfdp.runtime.fitting import fit_callbacks as fit_callbacks
    from tfdp.runtime.global_batch import global_mean as global_mean
    from tfdp.runtime.global_batch import global_sum as global_sum
    from tfdp.runtime.job import cross_rank as cross_rank
    from tfdp.runtime.job import cross_size as cross_size
    from tfdp.runtime.job import init as init
    from tfdp.runtime.job import is_initialized as is_initialized
    from tfdp.runtime.job import local_rank as local_rank
    from tfdp.runtime.job import local_size as local_size
    from tfdp.runtime.job import rank as rank
    from tfdp.runtime.job import shutdown as shutdown
    from tfdp.runtime.job import size as size
    from tfdp.runtime.learning_rate import local_schedule as local_schedule
    from tfdp.runtime.learning_rate import scale_lr as scale_lr
    from tfdp.runtime.learning_rate import scale_optimizer as scale_optimizer
    from tfdp.runtime.ops import Average as Average
    from tfdp.runtime.ops import Max as Max
    from tfdp.runtime.ops import Min as Min
    from tfdp.runtime.ops import Product as Product
    from tfdp.runtime.ops import ReduceOp as ReduceOp
    from tfdp.runtime.ops import Sum as Sum
    from tfdp.runtime.optimizer import DistributedOptimizer as DistributedOptimizer
    from tfdp.runtime.root import on_root as on_root
    from tfdp.runtime.root import report as report
    from tfdp.runtime.root import root_first as root_first
    from tfdp.runtime.root import root_path as root_path
    from tfdp.runtime.seeds import common_seed as common_seed
    from tfdp.runtime.seeds import rank_seed as rank_seed
    from tfdp.runtime.seeds import seed_by_rank as seed_by_rank
    from tfdp.runtime.seeds import set_random_seed as set_random_seed
    from tfdp.runtime.seeds import shuffle_seed as shuffle_seed
    from tfdp.runtime.state import broadcast_state as broadcast_state
    from tfdp.runtime.tape import DistributedGradientTape as DistributedGradientTape

_MODULES = {
    "array_shares": ("held_out",),
    "arrays": (
        "dealt_length",
        "even_batch_size",
        "global_batch_size",
        "local_batches",
        "local_rows",
    ),
    "batches": ("shard_batches",),
    "collectives": (
        "allgather",
        "allreduce",
        "barrier",
        "broadcast",
        "broadcast_object",
        "broadcast_variables",
        "grouped_allreduce",
    ),
    "compression": ("Compression",),
    "data": (
        "count_examples",
        "local_batch_size",
        "local_steps",
        "rank_path",
        "shard",
    ),
    "decisions": (
        "agree",
        "average_value",
        "metric_result",
    ),
    "devices": ("pin_gpu",),
    "errors": (
        "CollectiveMismatchError",
        "JobAborted",
        "LaunchEnvironmentError",
        "NotInitializedError",
        "RankFinishedError",
        "StallError",
        "StoreError",
        "StoreEvictedError",
        "StoreTimeout",
        "TfdpError",
        "TopologyError",
        "TransportError",
    ),
    "fitting": ("fit_callbacks",),
    "global_batch": ("global_mean", "global_sum"),
    "job": (
        "cross_rank",
        "cross_size",
        "init",
        "is_initialized",
        "local_rank",
        "local_size",
        "rank",
        "shutdown",
        "size",
    ),
    "learning_rate": (
        "local_schedule",
        "scale_lr",
        "scale_optimizer",
    ),
    "ops": (
        "Average",
        "Max",
        "Min",
        "Product",
        "ReduceOp",
        "Sum",
    ),
    "optimizer": ("DistributedOptimizer",),
    "root": (
        "on_root",
        "report",
        "root_first",
        "root_path",
    ),
    "seeds": (
        "common_seed",
        "rank_seed",
        "seed_by_rank",
        "set_random_seed",
        "shuffle_seed",
    ),
    "state": ("broadcast_state",),
    "tape": ("DistributedGradientTape",),
}
# Reached as in Horovod: `dp.callbacks.MetricAverageCallback()`.
_SUBMODULES = ("callbacks",)
_WHERE = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> Any:
    if name in _SUBMODULES:
        return importlib.import_module(f"{__name__}.{name}")
    if name not in _WHERE:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(f"{__name__}.{_WHERE[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_WHERE, *_SUBMODULES})
