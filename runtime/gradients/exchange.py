"""Gradients combined over the ranks: the dense ones in one exchange, the slices of all sparse ones in a second.

That each rank has a gradient for the same variables, and of the same kind, comes out in the first exchange: a variable
without a gradient, or with a sparse one, is an empty tensor there.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import tensorflow as tf

from .. import collective as collectives
from ..foundation import Average, ReduceOp, Sum
from ..job import Job, runs_as_written
from ..transports import Label
from . import slices
from .compression import Compression

# What the vector is called that travels with the gradients.
FINGERPRINT = "fingerprint of the variables"

_HALF = (tf.float16, tf.bfloat16)

# A tensor, tf.IndexedSlices, or None where the target does not depend on the source.
Gradient = Any


class _Count:
    """How often gradients were combined in this process, as Python sees it: once where a function is traced."""

    exchanges = 0


def exchanges() -> int:
    """How many exchanges of gradients were called or traced so far."""
    return _Count.exchanges


def count_exchange() -> None:
    """Once more."""
    _Count.exchanges += 1


class Passenger(Protocol):
    """What travels with dense gradients: a vector, to which each rank adds something."""

    def sent(self, dtype: tf.DType) -> Any:
        """This rank's vector."""

    def received(self, total: Any, ranks: int) -> None:
        """Take all ranks' sum, or their average over `ranks` (1 for a sum)."""


@dataclass(frozen=True)
class Exchange:
    """How gradients are combined; the fields are the arguments of `DistributedGradientTape`."""

    job: Job
    op: ReduceOp
    count: Any
    compression: Any
    predivide: float
    sparse_as_dense: bool
    deduplicate: bool

    @property
    def acts_alone(self) -> bool:
        """Whether there is something to do with one worker too."""
        return self.count is not None or self.sparse_as_dense or self.deduplicate

    def sparse_of(self, pairs: Iterable[tuple[Any, Gradient]]) -> list[Any]:
        """The variables, of pairs of a variable and its gradient, that are updated by slices."""
        slices_of = [each for each, gradient in pairs if isinstance(gradient, tf.IndexedSlices)]
        return [] if self.sparse_as_dense else slices_of

    def alone(self, gradients: Sequence[Gradient]) -> list[Gradient]:
        """The gradients of the only worker."""
        given = [_dense(each) if self.sparse_as_dense else each for each in gradients]
        kept = given if self.count is None else [_kept(each, self.count) for each in given]
        return [self._deduplicated(each) for each in kept]

    def combined(
        self, gradients: Sequence[Gradient], names: Sequence[str], site: str, passenger: Passenger | None = None
    ) -> list[Gradient]:
        """The gradients of several ranks. `names` are those of the sources, for messages."""
        count_exchange()
        given = [_dense(each) if self.sparse_as_dense else each for each in gradients]
        if self.count is not None:
            return self._weighted(given, names, site, passenger)
        scaled = [self._scaled(each, 1 / self.predivide) for each in given]
        op = self.op if self.predivide == 1 else Sum
        dense = self._reduced(scaled, op, names, site, passenger)
        divisor = self.job.topology.size if self.op is Average else 1
        found = [self._scaled(each, self.predivide / divisor) for each in dense]
        return self._with_sparse(found, given, names, site, lambda values: _divided(values, divisor))

    def _scaled(self, gradient: Gradient, factor: float) -> Gradient:
        if self.predivide == 1 or not _is_dense(gradient):
            return gradient
        return gradient * tf.constant(factor, gradient.dtype)

    def _weighted(
        self, given: Sequence[Gradient], names: Sequence[str], site: str, passenger: Passenger | None
    ) -> list[Gradient]:
        """The mean over all examples: the number of them comes with the gradients, which saves an exchange."""
        weighted = [_times(each, self.count) for each in given]
        *sums, total = self._reduced([*weighted, self.count], Sum, [*names, "batch_size"], site, passenger)
        means = [_divided(each, total) if _is_dense(each) else each for each in sums]
        found = self._with_sparse(means, weighted, names, site, lambda values: _divided(values, total))
        return [_as_dtype(mean, each) for mean, each in zip(found, given, strict=True)]

    def _reduced(
        self,
        gradients: Sequence[Gradient],
        op: ReduceOp,
        names: Sequence[str],
        site: str,
        passenger: Passenger | None,
    ) -> list[Gradient]:
        """The dense ones combined, the others as they are."""
        sent = [self.compression.compress(_in_exchange(each)) for each in gradients]
        said = [_said(each, name) for each, name in zip(gradients, names, strict=True)]
        tensors = [collectives.reducible(tensor) for tensor, _ in sent]
        if passenger is not None:  # in the dtype of a gradient: of another it would be a message of its own
            dtype = next((t.dtype for t, each in zip(tensors, gradients, strict=True) if _is_dense(each)), tf.float32)
            tensors, said = [*tensors, passenger.sent(dtype)], [*said, FINGERPRINT]
        received = collectives.exchanged(self.job, tensors, op, Label("gradients", site, tuple(said)))
        if passenger is not None:
            passenger.received(received.pop(), self.job.topology.size if op is Average else 1)
        return [
            _in_its_dtype(self.compression.decompress(tensor, context), each) if _is_dense(each) else each
            for tensor, (_, context), each in zip(received, sent, gradients, strict=True)
        ]

    def _with_sparse(
        self,
        combined: Sequence[Gradient],
        given: Sequence[Gradient],
        names: Sequence[str],
        site: str,
        divided: Callable[[Any], Any],
    ) -> list[Gradient]:
        """`combined`, with all ranks' slices in place of each sparse gradient."""
        sparse = [index for index, each in enumerate(given) if isinstance(each, tf.IndexedSlices)]
        found = list(combined)
        if not sparse:
            return found
        # Horovod sends slices as they are.
        compression = Compression.none if runs_as_written() else self.compression
        sent = [compression.compress(given[index].values) for index in sparse]
        parts = zip(sent, (given[index].indices for index in sparse), strict=True)
        tensors = [tensor for (values, _), rows in parts for tensor in (values, rows)]
        said = [f"{names[index]} ({part})" for index in sparse for part in ("values", "indices")]
        gathered = slices.gather(tensors, self.job, Label("sparse gradients", site, tuple(said)))
        for place, index in enumerate(sparse):
            values = divided(compression.decompress(gathered[2 * place], sent[place][1]))
            every = tf.IndexedSlices(values, gathered[2 * place + 1], given[index].dense_shape)
            found[index] = self._deduplicated(every)
        return found

    def _deduplicated(self, gradient: Gradient) -> Gradient:
        if self.deduplicate and isinstance(gradient, tf.IndexedSlices):
            return slices.deduplicated(gradient)
        return gradient


def _is_dense(gradient: Gradient) -> bool:
    return gradient is not None and not isinstance(gradient, tf.IndexedSlices)


def _in_exchange(gradient: Gradient) -> Any:
    """The gradient, of complex numbers by their parts; or an empty tensor that says which kind it has instead."""
    if gradient is None:
        return tf.zeros([0])
    if isinstance(gradient, tf.IndexedSlices):
        return tf.zeros([0, *(size or 0 for size in gradient.values.shape[1:])], gradient.values.dtype)
    return tf.bitcast(gradient, gradient.dtype.real_dtype) if gradient.dtype.is_complex else gradient


def _in_its_dtype(received: Any, gradient: Any) -> Any:
    return tf.bitcast(received, gradient.dtype) if gradient.dtype.is_complex else received


def _said(gradient: Gradient, name: str) -> str:
    if gradient is None:
        return f"{name} (no gradient)"
    return f"{name} (sparse)" if isinstance(gradient, tf.IndexedSlices) else name


def _dense(gradient: Gradient) -> Gradient:
    return tf.convert_to_tensor(gradient) if isinstance(gradient, tf.IndexedSlices) else gradient


def values_of(gradient: Gradient) -> Any:
    """The numbers of a gradient, dense or sparse; None of none."""
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _with_values(gradient: Gradient, values: Any) -> Gradient:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return values


def _kept(gradient: Gradient, count: Any) -> Gradient:
    """The gradient, or zeros where there are no examples."""
    if gradient is None:
        return None
    values = values_of(gradient)
    return _with_values(gradient, tf.where(count > 0, values, tf.zeros_like(values)))


def _times(gradient: Gradient, count: Any) -> Gradient:
    """The gradient times the number of examples, of which half precision has no room."""
    kept = _kept(gradient, count)
    if kept is None:
        return None
    values = values_of(kept)
    values = tf.cast(values, tf.float32) if values.dtype in _HALF else values
    return _with_values(kept, values * tf.cast(count, values.dtype))


def _divided(values: Any, total: Any) -> Any:
    return tf.math.divide_no_nan(values, tf.cast(total, values.dtype))


def _as_dtype(gradient: Gradient, like: Gradient) -> Gradient:
    return None if gradient is None else _with_values(gradient, tf.cast(values_of(gradient), values_of(like).dtype))
