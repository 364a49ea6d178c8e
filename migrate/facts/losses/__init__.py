"""How losses reduce the batch: means, sums, and what is neither."""

from __future__ import annotations

from .batch_uses import BatchUses
from .batch_values import Reduction
from .keras_losses import KerasLosses
from .keras_reductions import KerasReductions
from .loss import Losses
from .noise import Noise
from .shared_totals import SharedTotals
from .tape_reductions import Reductions

__all__ = ["BatchUses", "KerasLosses", "KerasReductions", "Losses", "Noise", "Reduction", "Reductions", "SharedTotals"]
