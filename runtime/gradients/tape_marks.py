"""Which variables' gradients a DistributedGradientTape has averaged: a DistributedOptimizer must not do it again.

The mean of equal numbers would be right, if slow; but a sum would count N times, and so would each slice of a sparse
gradient. What happened to the gradients in between (clipping) leaves no trace on them: so it is the variables that are
remembered, until the optimizer is asked for them.
"""

import weakref
from collections.abc import Iterable
from typing import Any

from ..framework import is_variable

# By the id of the variable's handle, which a Keras 3 variable and the tf.Variable inside it share.
_marked: dict[int, weakref.ref[Any]] = {}


def mark(sources: Iterable[Any]) -> None:
    """A distributed tape has given averaged gradients for these."""
    _marked.update((id(each.handle), weakref.ref(each.handle)) for each in sources if is_variable(each))


def forget_marks() -> None:
    """What was averaged so far went to other optimizers: a distributed one is made only now."""
    _marked.clear()


def refuse_marked(variables: Iterable[Any], site: str) -> None:
    """Raise TypeError if a distributed tape has averaged gradients of one of these."""
    if taken_back(variables):
        raise TypeError(
            f"the gradients at {site} were averaged by a DistributedGradientTape, and would be once more by the "
            "DistributedOptimizer: use the tf.GradientTape itself, or the optimizer itself"
        )


def taken_back(variables: Iterable[Any]) -> bool:
    """Whether a distributed tape has averaged gradients of one of these; from now on it has not."""
    found = any(_is_marked(each.handle) for each in variables if is_variable(each))
    if found:
        _marked.clear()
    return found


def _is_marked(handle: Any) -> bool:
    # An id is used again once its object is gone.
    reference = _marked.get(id(handle))
    return reference is not None and reference() is handle
