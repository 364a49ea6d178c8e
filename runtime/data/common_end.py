"""Streams of batches that each rank reads for itself: the same batches everywhere, and one common end.

Before a group of batches is trained on, every rank says over the store whether it has it, and what it holds. That is no
collective: tf.data calls Python on threads of its own, where a collective could come between two of a training step.
"""

import contextlib
import json
from typing import NamedTuple

from ..foundation import TfdpError, say_once
from ..job import Job

_ENDED, _LEFT = -1, -2


class Place(NamedTuple):
    """A group of batches: in which pass over the data, which group of it, and how many batches were read so far."""

    passed: int
    group: int
    batches: int


class CommonEnd:
    """What the ranks say about one stream; rank 0 hears all and answers all."""

    def __init__(self, job: Job, site: str, stream: str) -> None:
        self._job, self._site, self._stream = job, site, f"batches/{stream}"

    def go_on(self, place: Place, content: int | None) -> bool:
        """Whether all ranks have this group; False as soon as one has come to its end. Every rank asks.

        Args:
            place: the group, by the same numbers on all ranks.
            content: a hash of all batches so far, at least 0; None at the end of this rank's data.

        Raises:
            TfdpError: another rank's batches have another hash; on every rank.
        """
        topology, store = self._job.topology, self._job.store
        key = f"{self._stream}/{place.passed}/{place.group}"
        mine = _ENDED if content is None else content
        if topology.rank > 0:
            store.publish(f"{key}/{topology.rank}", str(mine).encode(), readers=1)
            ended, differ = json.loads(store.fetch(key, publisher=0))
        else:
            others = [int(store.fetch(f"{key}/{rank}", publisher=rank)) for rank in range(1, topology.size)]
            ended, differ = _judged([mine, *others])
            store.publish(key, json.dumps([ended, differ]).encode())
            if ended and len(ended) < topology.size and _LEFT not in others:
                self._say(place, ended)
        if differ:
            self._refuse(place, differ)
        return not ended

    def leave(self, place: Place) -> None:
        """Tell the others that this rank will not ask for this group; nobody waits.

        A prefetching rank may be ahead of one that has stopped in the middle, and wait for it.
        """
        topology, store = self._job.topology, self._job.store
        key = f"{self._stream}/{place.passed}/{place.group}"
        # At the end of the process there may be nobody to be told.
        with contextlib.suppress(Exception):
            if topology.rank > 0:
                store.publish(f"{key}/{topology.rank}", str(_LEFT).encode(), readers=1)
            else:
                store.publish(key, json.dumps([[0], []]).encode())

    def _say(self, place: Place, ended: list[int]) -> None:
        ranks = ", ".join(map(str, ended))
        say_once(
            f"{self._site}: the batches of rank(s) {ranks} end after {place.group} step(s) of pass {place.passed}, and "
            "the others' do not: all ranks end there"
        )

    def _refuse(self, place: Place, differ: list[int]) -> None:
        ranks = ", ".join(map(str, differ))
        raise TfdpError(
            f"the batches given to dp.shard_batches at {self._site} differ on rank(s) {ranks} from rank 0's: batch "
            f"{place.batches - 1} of pass {place.passed}, or one since the group before. Each rank must read the same "
            "batches in the same order: draw shuffles and augmentation from generators seeded alike on all ranks "
            "(dp.shuffle_seed()), or, if they differ on purpose, say dp.shard_batches(…, order_check=False)"
        )


def _judged(said: list[int]) -> tuple[list[int], list[int]]:
    """Which ranks have ended, and which of them all hold other batches than rank 0."""
    ended = [rank for rank, each in enumerate(said) if each in (_ENDED, _LEFT)]
    return ended, [] if ended else [rank for rank, each in enumerate(said) if each != said[0]]
