"""What datasets are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from .autograph import as_written


def made_of(dataset: Any) -> Iterator[Any]:
    """The `tf.data.Dataset` itself and all that it is made from. Nothing public leads to them."""
    due = [dataset]
    while due:
        each = due.pop()
        yield each
        due += each._inputs()


def when_staged(hear: Callable[[Any], None]) -> None:
    """Call `hear` with each concrete function that a stage of a dataset has had traced. Nothing public tells of it."""
    from tensorflow.python.data.ops import structured_function

    wrapper = structured_function.StructuredFunctionWrapper
    wrap = wrapper.__init__

    @functools.wraps(wrap)
    def __init__(self: Any, *arguments: Any, **options: Any) -> None:  # noqa: N807
        wrap(self, *arguments, **options)
        hear(self.function)

    wrapper.__init__ = as_written(__init__)
