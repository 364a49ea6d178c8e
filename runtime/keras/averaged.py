"""Which optimizers are averaged."""

from typing import Any

from .optimizers import inner_of

# In the dictionary of the instance, not by setattr: optimizers keep what they hold by setattr in their checkpoints.
KEY = "_tfdp_averaging"


def averaging_of(optimizer: Any) -> Any:
    """The `Averaging` that was put on the optimizer itself; None for any other object."""
    return getattr(optimizer, "__dict__", {}).get(KEY)


def is_averaged(optimizer: Any) -> bool:
    """Whether its gradients are averaged: its own, or those of the one inside a LossScaleOptimizer."""
    return averaging_of(optimizer) is not None or averaging_of(inner_of(optimizer)) is not None
