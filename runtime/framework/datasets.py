"""What datasets are made of."""

from collections.abc import Iterator
from typing import Any


def made_of(dataset: Any) -> Iterator[Any]:
    """The `tf.data.Dataset` itself and all that it is made from. Nothing public leads to them."""
    due = [dataset]
    while due:
        each = due.pop()
        yield each
        due += each._inputs()
