"""The gradient tape whose gradients are averaged over all ranks."""

import operator
from typing import Any

import tensorflow as tf

from tfdp.runtime import collectives
from tfdp.runtime.autograph import as_written
from tfdp.runtime.call_site import call_site
from tfdp.runtime.job import current
from tfdp.runtime.ops import Average, ReduceOp, Sum
from tfdp.runtime.same_start import check_same_start
from tfdp.runtime.variables import is_variable

_HALF = (tf.float16, tf.bfloat16)


class DistributedGradientTape:
    """A `tf.GradientTape` whose `gradient` is combined over the ranks; all else is the tape's own.

    Wrap only the tape whose gradients reach the optimizer; those of penalties, adversarial examples or saliency maps
    stay local. With one worker `gradient` returns what the tape returns.
    """

    @as_written
    def __init__(self, tape: Any, *, op: ReduceOp = Average, batch_size: Any = None) -> None:
        """Wrap a tape before, inside or after its `with` block.

        Args:
            tape: a `tf.GradientTape`.
            op: `Average`, for a loss that is a mean over the local batch; `Sum`, for one that is a sum divided by a
                global number.
            batch_size: how many examples this rank's loss is a mean of, where the ranks differ: an int or an integer
                scalar tensor. Gradients then count by local/global examples; those of a rank with 0 count nothing,
                even if they are NaN.

        Raises:
            NotInitializedError: `dp.init()` has not run.
            TypeError: `tape` is no tape, or is wrapped already; `batch_size` is no integer.
            ValueError: another `op`; `batch_size` together with `Sum`, negative, or not one number.
        """
        if isinstance(tape, DistributedGradientTape):
            raise TypeError(f"the tape at {call_site()} is a DistributedGradientTape already: wrap a tape once")
        if not isinstance(tape, tf.GradientTape):
            raise TypeError(f"DistributedGradientTape at {call_site()} takes a tf.GradientTape, not {tape!r}")
        if op not in (Average, Sum):
            raise ValueError(f"op is {op} at {call_site()}: gradients are combined with dp.Average or dp.Sum")
        if batch_size is not None and op is not Average:
            raise ValueError(f"batch_size at {call_site()} makes a weighted mean; it does not go with op={op}")
        self._job = current()
        self._tape = tape
        self._op = op
        self._count = None if batch_size is None else _checked_count(batch_size)

    def __enter__(self) -> "DistributedGradientTape":
        self._tape.__enter__()
        return self

    def __exit__(self, *error: Any) -> Any:
        return self._tape.__exit__(*error)

    def __getattr__(self, name: str) -> Any:
        # Before __init__ has set it, as when a copy is made, the tape itself must not be looked for here.
        if name == "_tape":
            raise AttributeError(name)
        return getattr(self._tape, name)

    @as_written
    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, **options: Any) -> Any:
        """`tf.GradientTape.gradient`, combined over all ranks in one exchange. Every rank calls it.

        Args:
            target: as for the tape.
            sources: variables or watched tensors, in any nested structure. The first time, the variables' values are
                compared over the ranks.
            output_gradients: as for the tape.
            options: `unconnected_gradients`, as for the tape.

        Returns:
            The structure of `sources`; the same bits on every rank. `None` stays `None`. `tf.IndexedSlices` hold all
            ranks' slices one after the other, as one process with all the examples would have them; slices of one row
            are not added up.

        Raises:
            TfdpError: a variable differs between the ranks (in a `tf.function`, `tf.errors.UnknownError` with the
                message).
            CollectiveMismatchError: the ranks' gradients differ in number, shape or dtype.
        """
        local = self._tape.gradient(target, sources, output_gradients, **options)
        flat = tf.nest.flatten(local)
        if self._job.topology.size == 1:
            return local if self._count is None else _packed(local, [_kept(each, self._count) for each in flat])
        with tf.name_scope("distributed_gradient"):
            compared = check_same_start([each for each in tf.nest.flatten(sources) if is_variable(each)], self._job)
            with tf.control_dependencies(compared):
                flat = [None if each is None else _with_values(each, tf.identity(_values(each))) for each in flat]
            return _packed(local, self._combined(flat))

    def jacobian(self, *_: Any, **__: Any) -> Any:
        """Refused: rows of a Jacobian belong to single examples or outputs, and ranks hold different examples."""
        raise NotImplementedError(
            f"jacobian of a DistributedGradientTape at {call_site()}: it is not averaged over ranks, whose targets "
            "differ. Take it from the tf.GradientTape itself, for this rank's examples"
        )

    def batch_jacobian(self, *_: Any, **__: Any) -> Any:
        """Refused, as `jacobian` is."""
        raise NotImplementedError(
            f"batch_jacobian of a DistributedGradientTape at {call_site()}: each row belongs to one example of this "
            "rank. Take it from the tf.GradientTape itself"
        )

    def _combined(self, gradients: list[Any]) -> list[Any]:
        """Dense gradients in one exchange, then each sparse one's rows."""
        if self._count is None:
            dense = [each for each in gradients if _is_dense(each)]
            reduced = iter(collectives.grouped_allreduce(dense, self._op))
            divisor = self._job.topology.size if self._op is Average else 1
            return [next(reduced) if _is_dense(each) else _gathered(each, divisor) for each in gradients]
        weighted = [_weighted(each, self._count) for each in gradients]
        dense = [each for each in weighted if _is_dense(each)]
        # The number of all examples comes with the gradients; dividing afterwards saves an exchange.
        *sums, total = collectives.grouped_allreduce([*dense, self._count], Sum)
        remaining = iter(sums)
        means = [_divided(next(remaining), total) if _is_dense(each) else _gathered(each, total) for each in weighted]
        return [_as_dtype(mean, each) for mean, each in zip(means, gradients, strict=True)]


def _checked_count(batch_size: Any) -> Any:
    """The number of examples as an int64 scalar tensor."""
    if tf.is_tensor(batch_size):
        if not batch_size.dtype.is_integer:
            raise TypeError(f"batch_size at {call_site()} is a tensor of {batch_size.dtype.name}: int64 is needed")
        if batch_size.shape.rank not in (0, None):
            raise ValueError(f"batch_size at {call_site()} has shape {batch_size.shape}: one number is needed")
        return tf.cast(batch_size, tf.int64)
    try:
        value = operator.index(batch_size)
    except TypeError:
        raise TypeError(f"batch_size is {batch_size!r} at {call_site()}: a number of examples is needed") from None
    if value < 0:
        raise ValueError(f"batch_size is {value} at {call_site()}: it cannot be negative")
    return tf.constant(value, tf.int64)


def _is_dense(gradient: Any) -> bool:
    return gradient is not None and not isinstance(gradient, tf.IndexedSlices)


def _packed(structure: Any, flat: list[Any]) -> Any:
    return tf.nest.pack_sequence_as(structure, flat)


def _with_values(gradient: Any, values: Any) -> Any:
    if isinstance(gradient, tf.IndexedSlices):
        return tf.IndexedSlices(values, gradient.indices, gradient.dense_shape)
    return values


def _values(gradient: Any) -> Any:
    return gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient


def _kept(gradient: Any, count: Any) -> Any:
    """The gradient, or zeros where there are no examples."""
    if gradient is None:
        return None
    values = _values(gradient)
    return _with_values(gradient, tf.where(count > 0, values, tf.zeros_like(values)))


def _weighted(gradient: Any, count: Any) -> Any:
    """The gradient times the number of examples, of which half precision has no room."""
    kept = _kept(gradient, count)
    if kept is None:
        return None
    values = _values(kept)
    values = tf.cast(values, tf.float32) if values.dtype in _HALF else values
    return _with_values(kept, values * tf.cast(count, values.dtype))


def _divided(values: Any, total: Any) -> Any:
    return tf.math.divide_no_nan(values, tf.cast(total, values.dtype))


def _gathered(gradient: Any, divisor: Any) -> Any:
    """All ranks' slices, their values divided."""
    if gradient is None:
        return None
    values = _divided(collectives.allgather(gradient.values), divisor)
    return tf.IndexedSlices(values, collectives.allgather(gradient.indices), gradient.dense_shape)


def _as_dtype(gradient: Any, like: Any) -> Any:
    return None if gradient is None else _with_values(gradient, tf.cast(_values(gradient), _values(like).dtype))
