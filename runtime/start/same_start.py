"""Before the first exchange of gradients: do all ranks hold the same variables, in the same order?"""

import hashlib
import itertools
import weakref
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from ..foundation import TfdpError, call_site
from ..framework import Variable, in_python, name_of
from ..job import Job
from ..transports import Label
from .state import creation_ordinals


class _Lists:
    """Lists of variables by identity, with a number for each."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._known: dict[tuple[int, ...], tuple[int, tuple[weakref.ref[Variable], ...]]] = {}

    def number(self, variables: Sequence[Variable]) -> int:
        identity = tuple(map(id, variables))
        number, references = self._known.get(identity, (-1, ()))
        # An id is used again once its object is gone.
        if number < 0 or any(ref() is not each for ref, each in zip(references, variables, strict=True)):
            number = next(self._numbers)
            self._known[identity] = number, tuple(map(weakref.ref, variables))
        return number

    def living(self) -> Iterator[tuple[str, Variable]]:
        """All variables that are still there, each once, with a key that is the same on all ranks."""
        seen: set[int] = set()
        for number, references in self._known.values():
            for place, reference in enumerate(references):
                variable = reference()
                if variable is not None and id(variable) not in seen:
                    seen.add(id(variable))
                    yield f"{number}/{place}", variable


_lists = _Lists()


def list_number(variables: Sequence[Variable]) -> int:
    """The number of this list of variables in this process, the same each time."""
    return _lists.number(variables)


def known_variables() -> Iterator[tuple[str, Variable]]:
    """All variables of lists that have a number, as far as they are still there, with a key that is common to ranks."""
    return _lists.living()


def compare(variables: Sequence[Variable], job: Job) -> Any:
    """Compare all values and the order of the variables over the ranks, in one small exchange.

    Returns:
        A bool tensor, which later operations of a graph must wait for.

    Raises:
        TfdpError: a variable differs; on every rank.
    """
    names, site, places = [name_of(each) for each in variables], call_site(), _places(variables)

    def look(all_numbers: Any, counts: Any) -> Any:
        if (counts != counts[0]).any():
            raise TfdpError(_other_number(names, job.topology.rank, site))
        numbers = np.reshape(all_numbers, (job.topology.size, 2, len(names)))
        _refuse_other_order(names, numbers[:, 0], job.topology.rank, site)
        by_rank = numbers[:, 1]
        differs = by_rank != by_rank[0]
        if differs.any():
            raise TfdpError(_message(names, differs, site))
        return np.True_

    said = in_python(digests, [tf.convert_to_tensor(each) for each in variables], tf.int64, [len(names)])
    said = tf.concat([tf.constant(places, tf.int64), said], 0)
    gathered, counts = job.transport.allgather(said, Label("values of variables before their first gradient", site))
    return in_python(look, [gathered, counts], tf.bool, [])


def _other_number(names: Sequence[str], rank: int, site: str) -> str:
    return (
        f"the ranks hold different numbers of variables before their first gradient at {site}; rank {rank} holds "
        f"{len(names)}: {', '.join(names)}. Build the same models and optimizers on all ranks, and restore checkpoints "
        "on all of them"
    )


def _places(variables: Sequence[Variable]) -> list[int]:
    """Of each variable, how many others in the list were created before it; -1 where that is not known.

    Ranks agree in this, whatever else one of them alone has created, as long as they list the variables in one order.
    """
    ordinals = creation_ordinals()
    created = [ordinals.get(id(each.handle), -1) for each in variables]
    order = {ordinal: place for place, ordinal in enumerate(sorted({*created} - {-1}))}
    return [order.get(ordinal, -1) for ordinal in created]


def _refuse_other_order(names: Sequence[str], by_rank: Any, rank: int, site: str) -> None:
    known = (by_rank >= 0).all(axis=0)
    differs = known & (by_rank != by_rank[0]).any(axis=0)
    if not differs.any():
        return
    column = int(np.argmax(differs))
    ranks = np.flatnonzero(by_rank[:, column] != by_rank[0, column]).tolist()
    raise TfdpError(
        f"the variables come in another order on rank(s) {', '.join(map(str, ranks))} than on rank 0 at {site}: number "
        f"{column + 1} is {names[column]} on rank {rank}. Gradients of different variables would be averaged. A set "
        "has another order in each process: use a list or a dict"
    )


def ranks_and_names(names: Sequence[str], differs: Any) -> str:
    """Which variables differ where, for messages. `differs`: bools by rank and name, from rank 0's."""
    columns = differs.any(axis=0)
    column = int(np.argmax(columns))
    ranks = np.flatnonzero(differs[:, column]).tolist()
    others = int(columns.sum()) - 1
    more = f" and {others} more variable{'s' if others > 1 else ''} differ" if others else " differs"
    return f"{names[column]}{more} on rank(s) {', '.join(map(str, ranks))} from rank 0's"


def _message(names: Sequence[str], differs: Any, site: str) -> str:
    return (
        f"{ranks_and_names(names, differs)} before the first gradient at {site}: the ranks would train different "
        "models. Call dp.broadcast_state(model, optimizer) before the training loop and after restoring a checkpoint, "
        "and build the same models in the same order on all ranks"
    )


def digests(*arrays: Any) -> Any:
    """64 bits of each array's bytes, as int64."""
    hashed = (hashlib.blake2b(np.ascontiguousarray(array).tobytes(), digest_size=8).digest() for array in arrays)
    return np.array([int.from_bytes(digest, "little", signed=True) for digest in hashed], np.int64)
