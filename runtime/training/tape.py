"""The gradient tape whose gradients are averaged over all ranks."""

import operator
from typing import Any

import tensorflow as tf

from ..foundation import Average, ReduceOp, call_site
from ..framework import as_written, is_variable, name_of, transparent
from ..gradients import Compression, Exchange, check_kinds, check_options, mark
from ..job import current, shards_calls
from ..start import watched


class DistributedGradientTape:
    """A `tf.GradientTape` whose `gradient` is combined over the ranks; all else is the tape's own.

    Wrap only the tape whose gradients reach the optimizer; those of penalties, adversarial examples or saliency maps
    stay local. With one worker `gradient` returns what the tape returns.
    """

    @as_written
    def __init__(
        self,
        tape: Any,
        *,
        op: ReduceOp = Average,
        batch_size: Any = None,
        compression: Any = Compression.none,
        gradient_predivide_factor: float = 1.0,
        sparse_as_dense: bool = False,
        deduplicate: bool = False,
    ) -> None:
        """Wrap a tape before, inside or after its `with` block.

        Args:
            tape: a `tf.GradientTape`.
            op: `Average`, for a loss that is a mean over the local batch; `Sum`, for one that is a sum divided by a
                global number.
            batch_size: how many examples this rank's loss is a mean of, where the ranks differ: an int or an integer
                scalar tensor. Gradients then count by local/global examples; those of a rank with 0 count nothing,
                even if they are NaN. Not together with `compression` or `gradient_predivide_factor`.
            compression: `dp.Compression.none`, `.fp16` or `.bf16`: what gradients are rounded to before they are sent.
                They come back in their own dtype. Changes the result.
            gradient_predivide_factor: dense gradients are divided by it before they are added up, and by size()/factor
                afterwards, against overflow in low precision. With `Average` only. Changes the last bits.
            sparse_as_dense: turn `tf.IndexedSlices` into dense tensors first. Changes what an optimizer does with
                rows that have no example, and with several slices of one row.
            deduplicate: add up slices of one row. Changes what an optimizer does with several slices of one row. The
                last two hold with one worker too.

        Raises:
            NotInitializedError: `dp.init()` has not run.
            TypeError: `tape` is no tape, or is wrapped already; `batch_size` is no integer; `compression` can not
                compress.
            ValueError: another `op`; arguments that do not go together; `batch_size` negative, or not one number; a
                factor that is not greater than 0.
        """
        if isinstance(tape, DistributedGradientTape):
            raise TypeError(f"the tape at {call_site()} is a DistributedGradientTape already: wrap a tape once")
        if not isinstance(tape, tf.GradientTape):
            raise TypeError(f"DistributedGradientTape at {call_site()} takes a tf.GradientTape, not {tape!r}")
        check_options(op, compression, gradient_predivide_factor)
        _check_weighted(op, batch_size, compression, gradient_predivide_factor)
        if shards_calls() and op is not Average:
            raise ValueError(
                f"op={op} at {call_site()}: with sharded calls every worker computes the whole loss, so that gradients "
                "are averaged. Leave op out"
            )
        self._job = current()
        self._tape = tape
        self._exchange = Exchange(
            self._job,
            op,
            None if batch_size is None else _checked_count(batch_size),
            compression,
            float(gradient_predivide_factor),
            sparse_as_dense,
            deduplicate,
        )

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

    @transparent
    def gradient(self, target: Any, sources: Any, output_gradients: Any = None, **options: Any) -> Any:
        """`tf.GradientTape.gradient`, combined over all ranks in one exchange. Every rank calls it.

        Args:
            target: as for the tape.
            sources: variables or watched tensors, in any nested structure. The first time, the variables' values are
                compared over the ranks.
            output_gradients: as for the tape.
            options: `unconnected_gradients`, as for the tape.

        Returns:
            The structure of `sources`; the same bits on every rank. `None` stays `None`, and must be on all ranks.
            `tf.IndexedSlices` hold all ranks' slices one after the other, as one process with all the examples would
            have them; slices of one row are not added up.

        Raises:
            TfdpError: a variable differs between the ranks, or they come in another order (in a `tf.function`,
                `tf.errors.UnknownError` with the message).
            CollectiveMismatchError: the ranks' gradients differ in number, shape, dtype or kind (dense, sparse, None);
                the message names the variable.
            TypeError: a gradient of a dtype or kind that cannot be combined, such as complex numbers or ragged tensors.
        """
        local = self._tape.gradient(target, sources, output_gradients, **options)
        flat = tf.nest.flatten(local)
        if self._job.topology.size == 1 or shards_calls():  # then the tape's own gradients are averaged already
            return tf.nest.pack_sequence_as(local, self._exchange.alone(flat)) if self._exchange.acts_alone else local
        given, site = tf.nest.flatten(sources), call_site()
        names = [_name(each, index) for index, each in enumerate(given)]
        check_kinds(flat, names, site)
        mark(given)
        with tf.name_scope("distributed_gradient"):
            held = [(each, gradient) for each, gradient in zip(given, flat, strict=True) if is_variable(each)]
            watch = watched([each for each, _ in held], self._exchange.sparse_of(held), self._job)
            # Also what is sent for a gradient that is none, and depends on nothing, comes after the comparison.
            with tf.control_dependencies(watch.compared(flat) if watch else []):
                return tf.nest.pack_sequence_as(local, self._exchange.combined(flat, names, site, watch))

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


def _check_weighted(op: Any, batch_size: Any, compression: Any, factor: Any) -> None:
    if batch_size is None:
        return
    if op is not Average:
        raise ValueError(f"batch_size at {call_site()} makes a weighted mean; it does not go with op={op}")
    if factor != 1 or compression is not Compression.none:
        raise ValueError(
            f"batch_size at {call_site()} makes a weighted mean, whose terms are sums over examples: it does not go "
            "with compression or gradient_predivide_factor"
        )


def _name(source: Any, index: int) -> str:
    return name_of(source) if is_variable(source) else f"source {index}"


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
