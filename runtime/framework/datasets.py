"""What datasets are made of."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from .autograph import transparent


def made_of(dataset: Any) -> Iterator[Any]:
    """The `tf.data.Dataset` itself and all that it is made from. Nothing public leads to them."""
    due = [dataset]
    while due:
        each = due.pop()
        yield each
        due += each._inputs()


def around_stages(around: Callable[[Callable[[], Any], str], None]) -> None:
    """Call `around` where a stage of a dataset has its function traced, with what does that, and the stage's name.

    What does it gives the concrete function. Nothing public tells of it.
    """
    from tensorflow.python.data.ops import structured_function

    wrapper = structured_function.StructuredFunctionWrapper
    wrap = wrapper.__init__

    @functools.wraps(wrap)
    def __init__(self: Any, func: Any, transformation_name: str, *arguments: Any, **options: Any) -> None:  # noqa: N807
        def trace() -> Any:
            wrap(self, func, transformation_name, *arguments, **options)
            return self.function

        around(trace, transformation_name)

    wrapper.__init__ = transparent(__init__)
