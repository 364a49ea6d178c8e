"""Horovod's tape and optimizer, in its order of arguments. Devices, names, locks and groups mean nothing here."""

from __future__ import annotations

from typing import Any

from .. import training
from ..foundation import Average, ReduceOp
from ..gradients import Compression
from .options import global_process_set, refuse_process_set


class DistributedGradientTape(training.DistributedGradientTape):
    """A tape whose gradients are averaged over the ranks, or added up."""

    def __init__(  # noqa: PLR0917 - Horovod's order
        self,
        gradtape: Any,
        device_dense: str = "",
        device_sparse: str = "",
        compression: Any = Compression.none,
        sparse_as_dense: bool = False,
        op: ReduceOp = Average,
        gradient_predivide_factor: float = 1.0,
        num_groups: int = 0,
        groups: Any = None,
        process_set: Any = global_process_set,
        scale_local_gradients: bool = True,
    ) -> None:
        """As `dp.DistributedGradientTape`."""
        del device_dense, device_sparse, num_groups, groups, scale_local_gradients
        refuse_process_set(process_set)
        super().__init__(
            gradtape,
            op=op,
            compression=compression,
            gradient_predivide_factor=gradient_predivide_factor,
            sparse_as_dense=sparse_as_dense,
        )

    def gradient(
        self, target: Any, sources: Any, output_gradients: Any = None, use_generic_names: bool = False, **options: Any
    ) -> Any:
        """As the tape's own; `use_generic_names` is about names of Horovod's operations."""
        del use_generic_names
        return super().gradient(target, sources, output_gradients, **options)

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        """For `isinstance(tape, tf.GradientTape)`: Horovod's tape is of a class that derives from the tape's."""
        return type(self._tape)


def DistributedOptimizer(  # noqa: N802, PLR0917 - Horovod's name and order
    optimizer: Any,
    name: str | None = None,
    use_locking: bool = False,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    backward_passes_per_step: int = 1,
    op: ReduceOp = Average,
    gradient_predivide_factor: float = 1.0,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: Any = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """An optimizer of this one's configuration, without its state, as Horovod makes it, whose gradients are averaged
    over the ranks, or added up. The arguments in the order of `horovod.tensorflow`.
    """
    del name, use_locking, device_dense, device_sparse, num_groups, groups, scale_local_gradients
    refuse_process_set(process_set)
    return training.DistributedOptimizer(
        _made_anew(optimizer),
        op=op,
        compression=compression,
        backward_passes_per_step=backward_passes_per_step,
        average_aggregated_gradients=average_aggregated_gradients,
        gradient_predivide_factor=gradient_predivide_factor,
        sparse_as_dense=sparse_as_dense,
    )


def _made_anew(optimizer: Any) -> Any:
    """Another optimizer of the same configuration; the one itself where it cannot be made of that."""
    try:
        return type(optimizer).from_config(optimizer.get_config())
    except Exception:
        return optimizer


def DistributedKerasOptimizer(  # noqa: N802, PLR0917 - Horovod's order
    optimizer: Any,
    name: str | None = None,
    device_dense: str = "",
    device_sparse: str = "",
    compression: Any = Compression.none,
    sparse_as_dense: bool = False,
    gradient_predivide_factor: float = 1.0,
    op: ReduceOp = Average,
    backward_passes_per_step: int = 1,
    average_aggregated_gradients: bool = False,
    num_groups: int = 0,
    groups: Any = None,
    process_set: Any = global_process_set,
    scale_local_gradients: bool = True,
) -> Any:
    """The same in the order of `horovod.keras` and `horovod.tensorflow.keras`."""
    return DistributedOptimizer(
        optimizer,
        name,
        False,
        device_dense,
        device_sparse,
        compression,
        sparse_as_dense,
        backward_passes_per_step,
        op,
        gradient_predivide_factor,
        average_aggregated_gradients,
        num_groups,
        groups,
        process_set,
        scale_local_gradients,
    )
