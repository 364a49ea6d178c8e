"""The functions of `horovod.keras`, in its order of arguments."""

from __future__ import annotations

from typing import Any

import tensorflow as tf

from .. import collective, training
from ..foundation import ReduceOp
from ..gradients import Compression
from . import collectives


def allreduce(  # noqa: PLR0917 - Horovod's order
    value: Any,
    name: str | None = None,
    average: bool | None = None,
    prescale_factor: float = 1.0,
    postscale_factor: float = 1.0,
    op: ReduceOp | None = None,
    compression: Any = Compression.none,
) -> Any:
    """The value combined over all ranks, as a tensor."""
    scales = {"prescale_factor": prescale_factor, "postscale_factor": postscale_factor}
    given = tf.convert_to_tensor(value)
    return collectives.allreduce(given, average, compression=compression, op=op, name=name, **scales)  # type: ignore[arg-type]


def allgather(value: Any, name: str | None = None) -> Any:
    """All ranks' rows one after the other, in the order of the ranks."""
    return collective.allgather(value, name)


def broadcast(value: Any, root_rank: int, name: str | None = None) -> Any:
    """The root's value, on every rank."""
    return collective.broadcast(value, root_rank, name)


def load_model(
    filepath: Any,
    custom_optimizers: Any = None,
    custom_objects: dict[str, Any] | None = None,
    compression: Any = Compression.none,
    legacy_opts: bool = False,
) -> Any:
    """A saved model, whose optimizer averages its gradients over the ranks."""
    del legacy_opts
    named = {cls.__name__: cls for cls in custom_optimizers or ()}
    model = tf.keras.models.load_model(filepath, custom_objects={**named, **(custom_objects or {})})
    if model.optimizer is not None:
        training.DistributedOptimizer(model.optimizer, compression=compression)
    return model
