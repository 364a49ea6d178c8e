"""The options that `DistributedGradientTape` and `DistributedOptimizer` have in common."""

from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from ..foundation import Average, Sum, call_site


def check_options(op: Any, compression: Any, factor: Any) -> None:
    """Raise ValueError or TypeError, with the place of the call, for what cannot be done or does not go together."""
    if op not in (Average, Sum):
        raise ValueError(f"op is {op} at {call_site()}: gradients are combined with dp.Average or dp.Sum")
    if not callable(getattr(compression, "compress", None)) or not callable(getattr(compression, "decompress", None)):
        raise TypeError(
            f"compression is {compression!r} at {call_site()}: it must be dp.Compression.none, dp.Compression.fp16 or "
            "dp.Compression.bf16"
        )
    if not isinstance(factor, (int, float)) or not 0 < factor < float("inf"):
        raise ValueError(f"gradient_predivide_factor is {factor!r} at {call_site()}: a number greater than 0 is needed")
    if factor != 1 and op is not Average:
        raise ValueError(
            f"gradient_predivide_factor at {call_site()} splits the division of an average; it does not go with op={op}"
        )


def check_kinds(gradients: Sequence[Any], names: Sequence[str], site: str) -> None:
    """Raise TypeError for a gradient that is neither a tensor nor IndexedSlices nor None."""
    for gradient, name in zip(gradients, names, strict=True):
        if gradient is not None and not isinstance(gradient, (tf.Tensor, tf.IndexedSlices)):
            raise TypeError(
                f"the gradient for {name} at {site} is a {type(gradient).__name__}, which cannot be combined over the "
                "ranks: take the gradient for its parts, such as ragged.flat_values"
            )
