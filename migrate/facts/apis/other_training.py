"""What trains by other means than a gradient tape or Keras' fit."""

from __future__ import annotations

import re

OTHER_STARTS = re.compile(r"(horovod|smdistributed|byteps)\b.*\.init$")
"""Start a system that distributes training."""

GRAPH_OPTIMIZERS = re.compile(
    r"tensorflow\.(compat\.v1\.)?(train\.\w*Optimizer|estimator\.(\w*Estimator|\w*Classifier|\w*Regressor))$"
    r"|keras\.estimator\.model_to_estimator$"
)
"""Train a graph of TensorFlow 1."""

GRAPH_TRAINING = re.compile(
    r"(tf_slim|tensorflow\.contrib\.slim|tensorflow\.contrib)\.(learning|training)\.(train|create_train_op)$"
    r"|tensorflow\.contrib\.(layers\.optimize_loss|opt\.\w+)$"
)
"""Run the training of a graph."""

GRAPH_GRADIENTS = re.compile(r"tensorflow\.(compat\.v1\.)?gradients$")
"""Gradients in a graph."""

GRAPH_ASSIGNS = re.compile(r"tensorflow\.(compat\.v1\.)?assign(_add|_sub)?$")
"""Give a variable of a graph a value."""

PROBABILITY = re.compile(
    r"tensorflow_probability\.(math\.minimize(_stateless)?|vi\.fit_surrogate_posterior(_stateless)?"
    r"|optimizer\.(\w+_minimize)|sts\.fit_\w+|experimental\.\w+\.fit_\w+)$"
)
"""Train by TensorFlow Probability."""

SCIPY = re.compile(
    r"scipy\.optimize\.(minimize|fmin\w*|least_squares|leastsq|root|basinhopping|shgo|dual_annealing"
    r"|differential_evolution)$"
)
"""Minimize by SciPy."""
