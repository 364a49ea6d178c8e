"""What a look may change, and how it is put back."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from ..framework import functions_run, has_value
from .names import Restored, put_back


class Kept(NamedTuple):
    """What a look may change, and puts back: variables, attributes of objects; and which variables a call may write.

    needed: variables that must have values for it. Those that a `tf.function` makes get them after its first trace.
    """

    needed: Sequence[Any]
    variables: Sequence[Any]
    before: Sequence[Restored]
    writable: Sequence[Any]


@contextlib.contextmanager
def as_before(kept: Kept) -> Iterator[list[Any]]:
    """Written variables and attributes are put back; handles of what was written go into the list it gives."""
    made = filter(has_value, kept.variables)  # of those that the function that is traced makes there is none yet
    values = {id(each.handle): (each, tf.identity(tf.convert_to_tensor(each))) for each in made}
    written: list[Any] = []
    try:
        with functions_run(eagerly=True):
            yield written
    finally:
        for handle in {id(each) for each in (*written, *(each.handle for each in kept.writable))}:
            if handle in values:
                values[handle][0].assign(values[handle][1])
        put_back(kept.before)
