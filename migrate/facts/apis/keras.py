"""How Keras names what its own training takes and calls."""

from __future__ import annotations

import re

_ARGUMENTS = (
    "x y batch_size epochs verbose callbacks validation_split validation_data shuffle class_weight sample_weight "
    "initial_epoch steps_per_epoch validation_steps validation_batch_size validation_freq"
)
POSITIONS = {name: place for place, name in enumerate(_ARGUMENTS.split())}
"""The arguments of `fit`, alike in Keras 2 and 3, and where they stand."""

EXAMPLES = ("x", "y", "sample_weight")
"""Those of them that hold examples, also of `train_on_batch`."""

FITS = ("fit", "fit_generator")
"""Methods that train a model on all its data."""


CALLBACKS = "keras.callbacks."
"""How the names of callbacks begin."""

SCHEDULER = "keras.callbacks.LearningRateScheduler"
"""The callback that sets the learning rate by a function of the epoch."""

OF_FUNCTIONS = "keras.callbacks.LambdaCallback"
"""The callback that is given its methods one by one."""

EACH_STEP = re.compile(r"on_(train_)?batch_(begin|end)$")
"""Methods of callbacks that are called at each step."""


RATES = frozenset({"learning_rate", "lr", "_learning_rate", "_lr"})
"""Attributes of optimizers that are their learning rate."""
