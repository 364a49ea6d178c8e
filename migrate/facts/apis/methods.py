"""What methods do, by the names that Python, NumPy, TensorFlow and Keras give them."""

from __future__ import annotations

CALLED = ("__call__", "call")
"""What runs where an object is called."""

ASSIGNS = frozenset({"assign", "assign_add", "assign_sub"})
"""Give a variable a value."""

CHANGES_VARIABLE = ASSIGNS | {"scatter_add", "scatter_sub"}
"""Change a variable, or rows of it."""

MAKES_WEIGHT = frozenset({"add_weight", "add_variable"})
"""Make a variable of a layer, or a slot of an optimizer."""

MAKES_VARIABLE = MAKES_WEIGHT | {"Variable", "variable"}
"""Make a variable, by whatever name."""

COUNTS_STEPS = frozenset({"iterations", "global_step"})
"""Attributes of optimizers: how many steps there were."""

DESCRIBES = frozenset({"shape", "ndim", "dtype"})
"""Attributes of tensors and arrays that are alike for all batches."""

SETS_WEIGHTS = ("set_weights", "load_weights")
"""Give a model or a layer other weights."""

APPLIES_GRADIENTS = ("apply_gradients", "apply")
"""Give an optimizer gradients."""

READS_NUMBER = frozenset({"numpy", "value", "read_value", "item"})
"""Give the number that a tensor or variable holds."""

PUTS_IN = frozenset({"append", "extend", "insert", "add", "update", "appendleft", "setdefault"})
"""Put something into a container."""

KERAS_LOSS = frozenset({"compiled_loss", "compute_loss"})
"""Keras' own loss, in a training step of a model."""

LINEAR_METHODS = frozenset({"numpy", "item", "mean", "sum", "copy"})
"""Give something in proportion to the numbers of their object."""
