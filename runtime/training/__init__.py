"""What a migrated script trains with: tapes, optimizers, callbacks, learning rates."""

from __future__ import annotations

from .averaging import Averaging
from .callbacks import (
    BroadcastGlobalVariablesCallback,
    LearningRateScheduleCallback,
    LearningRateWarmupCallback,
    MetricAverageCallback,
)
from .fitting import fit_callbacks
from .learning_rate import local_schedule, scale_lr, scale_optimizer
from .optimizer import DistributedOptimizer
from .tape import DistributedGradientTape

__all__ = [
    "Averaging",
    "BroadcastGlobalVariablesCallback",
    "DistributedGradientTape",
    "DistributedOptimizer",
    "LearningRateScheduleCallback",
    "LearningRateWarmupCallback",
    "MetricAverageCallback",
    "fit_callbacks",
    "local_schedule",
    "scale_lr",
    "scale_optimizer",
]
