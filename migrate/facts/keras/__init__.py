"""What Keras' own training runs: fit, train_on_batch, compile, callbacks."""

from __future__ import annotations

from ..apis import POSITIONS
from .averaged import Given
from .averaging import KerasAveraging
from .fit_data import FitData, batch_size_of, given_to, has_callbacks, held_out_by
from .fits import ON_BATCH, Compile, Fit
from .fitted import Fitted
from .hooks import Hooks, is_fitted_model
from .named_optimizers import is_name, unmade_optimizer
from .stepping import KerasStepping
from .xla import Xla

__all__ = [
    "ON_BATCH",
    "POSITIONS",
    "Compile",
    "Fit",
    "FitData",
    "Fitted",
    "Given",
    "Hooks",
    "KerasAveraging",
    "KerasStepping",
    "Xla",
    "batch_size_of",
    "given_to",
    "has_callbacks",
    "held_out_by",
    "is_fitted_model",
    "is_name",
    "unmade_optimizer",
]
