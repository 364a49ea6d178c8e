"""Python that runs once more than in one process, and is not seen to."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator

from .muted import muted
from .names import Restored, put_back


@contextlib.contextmanager
def unseen(before: Iterable[Restored]) -> Iterator[None]:
    """What is printed and changed in Python inside is not: `before` is put back."""
    with muted():
        yield
    put_back(before)
