"""From the whole batch to a worker's own rows and back, with gradients.

Three kinds of values meet in a divided call. *Whole* ones are equal on all workers, and so are their gradients. *Own*
ones are a worker's rows: their gradient is N times that of the loss, so that the mean over the workers of what
variables get is the sum over all rows. *Shared* ones, such as variables, are equal on all workers, but each worker's
gradient counts what its own rows did with them: the mean over the workers is the gradient.

Each operation here leads from one kind to another, and its gradient is another of them; so gradients of gradients are
right, too.

| operation | from | to | gradient |
|---|---|---|---|
| `own` | whole | own | `every` / N |
| `every` | own | whole | N x `own` |
| `shared` | whole | shared | mean over the workers |
| `stacked` | own | shared | sum over the workers, of which each takes its part |
| `total` | own | shared | sum over the workers |
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from ..foundation import Average, Sum, TfdpError, call_site
from ..framework import as_written, linked, unrecorded
from ..job import current
from ..transports import Label
from . import apart, gathering, nets, report
from .gathering import Gathering

Tensor = Any


class Split(NamedTuple):
    """A division of rows: how many there are, and how many each worker computes; ints, or int32 scalars in a graph.

    Worker r has the rows from r * own on. Where N does not divide them the last ones begin again with row 0: such rows
    are computed, and count nothing.
    """

    whole: Any
    own: Any

    def times(self, factor: Any) -> Split:
        """The same division of values that have `factor` rows for each."""
        return self if isinstance(factor, int) and factor == 1 else Split(self.whole * factor, self.own * factor)

    @property
    def is_even(self) -> bool:
        """Whether it is known that no row is computed twice."""
        return isinstance(self.whole, int) and self.whole == self.own * current().topology.size

    def is_surely(self, other: Split) -> bool:
        """Whether it is known that the other one divides alike."""
        return all(one is two or (isinstance(one, int) and one == two) for one, two in zip(self, other, strict=True))


_SPLIT = "_tfdp_split"  # of a length that is a tensor: its division


def divided(rows: Any) -> Split:
    """The division of `rows` rows over the workers of the job; of the same tensor the same one."""
    found: Split | None = getattr(rows, _SPLIT, None)
    if found is None:
        found = Split(rows, -(-rows // current().topology.size))
        if tf.is_tensor(rows):
            setattr(rows, _SPLIT, found)
    return found


def length(tensor: Tensor) -> Any:
    """The length of axis 0: an int where it is known."""
    known = gathering.of(tensor)
    if known is not None:
        return known.split.whole
    return tensor.shape[0] if tensor.shape[0] is not None else tf.shape(tensor)[0]


def places(split: Split, rank: int | None = None) -> Tensor:
    """Which rows a worker computes, shape `[own]`; those past the end are padding."""
    rank = current().topology.rank if rank is None else rank
    return rank * split.own + tf.range(split.own)


def taken(tensor: Tensor, split: Split, rank: int | None = None) -> Tensor:
    """A worker's rows of a tensor, without a gradient of its own."""
    if split.is_even:
        start = (current().topology.rank if rank is None else rank) * split.own
        return tensor[start : start + split.own]
    found = tf.gather(tensor, places(split, rank) % split.whole)
    return tf.ensure_shape(found, [split.own if isinstance(split.own, int) else None, *tensor.shape[1:]])


def is_real(split: Split, rank: int | None = None) -> Tensor:
    """Which of a worker's rows are no padding: bool, shape `[own]`."""
    return places(split, rank) < split.whole


@as_written
def own(tensor: Any, split: Split, name: str) -> Tensor:
    """This worker's rows of a whole tensor, shape `[own, …]`. `name` says in messages what it belongs to."""

    def gradient(upstream: Tensor) -> Tensor:
        return own_gradient(upstream, split, name)

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def cut(value: Tensor) -> Any:
        return taken(value, split), gradient

    whole = tf.convert_to_tensor(tensor)
    known = gathering.of(whole)
    if known is None or not known.split.is_surely(split):
        return cut(whole)
    with unrecorded():
        rows = tf.identity(known.rows)
        if isinstance(split.own, int):  # as of what is cut: one row would be taken for what is broadcast to others
            rows.set_shape([split.own, *rows.shape[1:]])
    return linked(rows, whole, gradient)


def own_gradient(upstream: Tensor, split: Split, name: str) -> Tensor:
    """The gradient by a whole tensor, of that by this worker's rows of it."""
    return every(_over(upstream), split, name)


@as_written
def every(tensor: Any, split: Split, name: str) -> Tensor:
    """All workers' rows in the order of the batch, shape `[whole, …]`; in a graph gathered where they are asked for."""
    _refuse_pfor(name)
    rows = tf.convert_to_tensor(tensor)
    later = Gathering(rows, split) if gathering.is_possible() else None
    shape = [split.whole if isinstance(split.whole, int) else None, *rows.shape[1:]]

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def gathered(value: Tensor) -> Any:
        def whole() -> Tensor:
            report.gathered(name, value)
            return tf.ensure_shape(_gathered(value, name)[: split.whole], shape)

        def gradient(upstream: Tensor) -> Tensor:
            if gathering.of(upstream) is None:
                nets.note(f"the gradient of what {name} gives", upstream)
            return _times(_without_padding(own(upstream, split, name), split))

        return (later.place(whole, shape) if later else whole()), gradient

    found = gathered(rows)
    return later.mark(found) if later else found


@as_written
def shared(tensor: Any, name: str) -> Tensor:
    """A whole tensor that a divided call uses as it is."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def used(value: Tensor) -> Any:
        return tf.identity(value), lambda upstream: mean(upstream, name)

    return used(tf.convert_to_tensor(tensor))


@as_written
def mean(tensor: Any, name: str) -> Tensor:
    """The mean of all workers' tensors: what `shared` does to a gradient."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def averaged(value: Tensor) -> Any:
        label = _label("mean over the workers", name)
        found = _exchanged(lambda: current().transport.allreduce([value], Average, label))[0]
        return found, lambda upstream: shared(upstream, name)

    return averaged(tf.convert_to_tensor(tensor))


@as_written
def stacked(tensor: Any, name: str) -> Tensor:
    """All workers' tensors, shape `[N, …]`."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def put(value: Tensor) -> Any:
        _refuse_pfor(name)
        found = _gathered(value[None], name)
        return tf.ensure_shape(found, [current().topology.size, *value.shape]), lambda upstream: _part(upstream, name)

    return put(tf.convert_to_tensor(tensor))


@as_written
def _part(tensor: Any, name: str) -> Tensor:
    """This worker's part of the sum of all workers' tensors of shape `[N, …]`: what `stacked` does to a gradient."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def summed(value: Tensor) -> Any:
        return _sum(value, name)[current().topology.rank], lambda upstream: stacked(upstream, name)

    return summed(tf.convert_to_tensor(tensor))


@as_written
def total(tensor: Any, name: str) -> Tensor:
    """A tensor with the gradient of the sum of all workers': its value is this worker's, and of no interest."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def passed(value: Tensor) -> Any:
        return tf.identity(value), lambda upstream: _summed(upstream, name)

    return passed(tf.convert_to_tensor(tensor))


@as_written
def _summed(tensor: Any, name: str) -> Tensor:
    """The sum of all workers' tensors, which is its own gradient."""

    @tf.custom_gradient  # type: ignore[untyped-decorator]
    def summed(value: Tensor) -> Any:
        return _sum(value, name), lambda upstream: _summed(upstream, name)

    return summed(tf.convert_to_tensor(tensor))


def _sum(tensor: Tensor, name: str) -> Tensor:
    label = _label("sum over the workers", name)
    return _exchanged(lambda: current().transport.allreduce([tensor], Sum, label))[0]


def _gathered(tensor: Tensor, name: str) -> Tensor:
    label = _label("rows", name)
    return _exchanged(lambda: current().transport.allgather(tensor, label)[:1])[0]


def _exchanged(exchange: Callable[[], Sequence[Tensor]]) -> list[Tensor]:
    if not tf.executing_eagerly():
        gathering.ask_outside()
    return list(exchange())


_NUMBER = "_tfdp_rows_exchanged"  # of a graph: how many exchanges have been built into it


def _label(what: str, name: str) -> Label:
    """Workers that come to different exchanges of rows must see it, though these are of the same shape."""
    if tf.executing_eagerly():
        return Label(f"{what} of {name}", name)
    graph = tf.compat.v1.get_default_graph()
    number = getattr(graph, _NUMBER, 0) + 1
    setattr(graph, _NUMBER, number)
    return Label(f"{what} of {name} ({number})", name)


def _refuse_pfor(name: str) -> None:
    if apart.is_mapping():
        raise TfdpError(
            f"{name} is differentiated inside tf.vectorized_map at {call_site()}, which knows no other workers. "
            "Take the gradient in a loop, or outside of it"
        )


def _over(tensor: Tensor) -> Tensor:
    return tensor / tf.cast(current().topology.size, tensor.dtype)


def _times(tensor: Tensor) -> Tensor:
    return tensor * tf.cast(current().topology.size, tensor.dtype)


def _without_padding(tensor: Tensor, split: Split) -> Tensor:
    if split.is_even:
        return tensor
    real = tf.reshape(is_real(split), [-1] + [1] * (tensor.shape.rank - 1))
    return tf.where(real, tensor, tf.zeros_like(tensor))
