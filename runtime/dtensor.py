"""DTensor's words on one device, for scripts whose weights are replicated and whose batches are sharded.

Every worker runs the whole script on a mesh of one device, whole batches included, and sharded calls divide the model's
(`dp.init(shard_calls=True)`): so a layout splits nothing here, and one that shards weights is refused.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from .foundation import TfdpError, call_site

UNSHARDED = "unsharded"
MATCH = "match"
_LAYOUT = "layout"


class Mesh:
    """A mesh of one device, whatever was asked for; `dim_names` are those of the script."""

    def __init__(self, dim_names: Sequence[str], name: str = "") -> None:
        self.dim_names = list(dim_names)
        self.name = name

    def __getattr__(self, name: str) -> Any:
        raise TfdpError(
            f"mesh.{name} at {call_site()}: each worker has a mesh of one device here, with the whole batch, so that a "
            "number of devices would change what is trained. Write the number that is meant"
        )

    def local_device_locations(self) -> list[dict[str, int]]:
        """Where this process's device stands in the mesh."""
        return [dict.fromkeys(self.dim_names, 0)]


class Layout:
    """What a script says of each axis of a tensor; nothing is split."""

    def __init__(self, sharding_specs: Sequence[str], mesh: Mesh) -> None:
        """Raises ValueError for a dimension that the mesh has not."""
        self.sharding_specs, self.mesh = list(sharding_specs), mesh
        for spec in self.sharding_specs:
            if spec not in (UNSHARDED, MATCH, *mesh.dim_names):
                raise ValueError(f"the mesh has no dimension {spec!r}: it has {', '.join(mesh.dim_names)}")

    @classmethod
    def replicated(cls, mesh: Mesh, rank: int) -> Layout:
        """Each device has the whole."""
        return cls([UNSHARDED] * rank, mesh)

    @classmethod
    def batch_sharded(cls, mesh: Mesh, batch_dim: str, rank: int, axis: int = 0) -> Layout:
        """The batch's axis is sharded."""
        return cls([batch_dim if number == axis % rank else UNSHARDED for number in range(rank)], mesh)

    @property
    def rank(self) -> int:
        """The number of axes."""
        return len(self.sharding_specs)

    @property
    def shape(self) -> list[int]:
        """The parts of each axis: 1."""
        return [1] * self.rank

    def num_shards(self, idx: int) -> int:
        """The parts of one axis: 1."""
        return self.shape[idx]

    def delete(self, dims: Sequence[int]) -> Layout:
        """Without these axes."""
        return Layout([spec for number, spec in enumerate(self.sharding_specs) if number not in dims], self.mesh)

    def is_fully_replicated(self) -> bool:
        """Whether no axis is sharded."""
        return all(spec == UNSHARDED for spec in self.sharding_specs)


def create_mesh(mesh_dims: Any = None, mesh_name: str = "", *_: Any, **__: Any) -> Mesh:
    """A mesh of one device with the names of these dimensions: pairs of a name and a size, or names."""
    return Mesh([each if isinstance(each, str) else each[0] for each in mesh_dims or ("x",)], mesh_name)


create_distributed_mesh = create_mesh


def _with_layout(tensor: Any, layout: Layout | None) -> Any:
    if layout is not None and hasattr(tensor, "numpy"):
        setattr(tensor, _LAYOUT, layout)
    return tensor


def DVariable(initial_value: Any, *args: Any, layout: Layout | None = None, **options: Any) -> tf.Variable:  # noqa: N802
    """A variable, with the layout of its initial value as `layout`.

    Raises:
        TfdpError: the layout shards it.
    """
    value = initial_value() if callable(initial_value) else initial_value
    known = layout or getattr(value, _LAYOUT, None)
    if known is not None and not known.is_fully_replicated():
        raise TfdpError(
            f"the variable at {call_site()} is sharded ({', '.join(known.sharding_specs)}): weights are "
            "replicated here, on all workers. Give its axes dtensor.UNSHARDED"
        )
    variable = tf.Variable(value, *args, **options)
    variable.layout = known
    return variable


def call_with_layout(fn: Callable[..., Any], layout: Layout | None, *args: Any, **kwargs: Any) -> Any:
    """What the function gives, with the layout."""
    return _with_layout(fn(*args, **kwargs), layout)


def pack(tensors: Any, layout: Layout) -> Any:
    """The part of the only device. Raises ValueError for more parts."""
    parts = list(tensors) if isinstance(tensors, list | tuple) else [tensors]
    if len(parts) != 1:
        raise ValueError(f"dtensor.pack at {call_site()} has {len(parts)} parts, and the mesh one device")
    return _with_layout(tf.identity(parts[0]), layout)


def unpack(tensor: Any) -> list[Any]:
    """The tensor, as the only part."""
    return [tf.identity(tensor)]


def fetch_layout(tensor: Any) -> Layout | None:
    """The layout that a tensor or variable was given; None where it was given none."""
    found: Layout | None = getattr(tensor, _LAYOUT, None)
    return found


def relayout(tensor: Any, layout: Layout, name: str | None = None) -> Any:
    """The tensor; of a variable its value now."""
    return _with_layout(tf.identity(tensor, name=name), layout)


def copy_to_mesh(tensor: Any, layout: Layout, *_: Any) -> Any:
    """The tensor; of a variable its value now."""
    return _with_layout(tf.identity(tensor), layout)


@contextlib.contextmanager
def run_on(mesh_or_layout: Any) -> Iterator[None]:
    """Nothing changes: there is one device."""
    del mesh_or_layout
    yield


default_mesh = run_on


def initialize_accelerator_system(*_: Any, **__: Any) -> str:
    """`dp.init()` has done what there is to do."""
    return "CPU"


initialize_multi_client = initialize_accelerator_system


def shutdown_accelerator_system() -> None:
    """The workers leave their job by themselves."""


def num_clients() -> int:
    """1: each worker runs the whole script."""
    return 1


def client_id() -> int:
    """0: each worker runs the whole script."""
    return 0


def __getattr__(name: str) -> Any:
    raise AttributeError(
        f"{name} is not in tfdp.runtime.dtensor, which has DTensor's words for replicated weights alone"
    )
