"""What rank 0 has been answered, in order, for ranks that go on with the same answers."""

from __future__ import annotations

import collections
import contextlib
import itertools
import pickle
import queue
import threading
from collections.abc import Callable
from typing import NamedTuple

from ..foundation import Inside, TfdpError
from .client import Store

# What rank 0 was answered alone, and may have kept for later.
_MOST, _LARGEST = 10_000, 1 << 12
# So long another rank sees rank 0 wait for it before it takes that for an answer.
_LOOKS, _LOOK_SECONDS = 3, 0.5


class Answer(NamedTuple):
    """place: where in the program the question was asked; said: which, and with what; value: pickled, None where it
    cannot be."""

    place: bytes
    said: bytes
    is_error: bool
    value: bytes | None


_apart = Inside()


def apart() -> contextlib.AbstractContextManager[None]:
    """In here, questions are a rank's own."""
    return _apart.entered()


def is_apart() -> bool:
    """Whether the questions of this thread are the rank's own now."""
    return bool(_apart)


class Given:
    """Rank 0's side: never waits for anybody. A thread of its own sends all that has come up meanwhile at once."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._answers: queue.SimpleQueue[Answer | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._send, name="tfdp answers", daemon=True)
        self._thread.start()

    def put(self, answer: Answer) -> None:
        """The others will find it after those before it."""
        self._answers.put(answer)

    def _send(self) -> None:
        number = 0
        while True:
            found = [self._answers.get()]
            with contextlib.suppress(queue.Empty):
                while found[-1] is not None:
                    found.append(self._answers.get_nowait())
            with contextlib.suppress(OSError):  # whoever keeps the store is gone, and this process ends
                self._store.publish(_key(number), pickle.dumps(found, protocol=pickle.HIGHEST_PROTOCOL))
            number += 1
            if found[-1] is None:
                return

    def end(self) -> None:
        """There will be no more; all have been sent when it returns."""
        if self._thread.is_alive():
            self._answers.put(None)
            self._thread.join()


class Taken:
    """Another rank's side."""

    def __init__(self, store: Store, is_awaited: Callable[[], bool]) -> None:
        """is_awaited: whether rank 0 is where it cannot go on without this rank."""
        self._store, self._is_awaited = store, is_awaited
        self._answers: collections.deque[Answer] = collections.deque()
        self._has_ended = False
        self._passed: collections.OrderedDict[bytes, Answer] = collections.OrderedDict()
        self._arrived: queue.SimpleQueue[list[Answer | None] | TfdpError] = queue.SimpleQueue()
        # A thread, and no wait with a limit: what is sent just as that ends would be lost.
        threading.Thread(target=self._receive, name="tfdp answers", daemon=True).start()

    def take(self, place: bytes, said: bytes) -> Answer | None:
        """Rank 0's next answer at a place. Those before it were for rank 0 alone.

        Where rank 0 does not come there, but waits for this rank or has ended, it has asked before, alone, and kept
        the answer: its next one to the same words, else its last; or it never has: None.
        """
        looked_at = waits = 0
        while waits < _LOOKS:
            for number, answer in enumerate(itertools.islice(self._answers, looked_at, None), looked_at):
                if answer.place == place:
                    for _ in range(number):
                        self._pass(self._answers.popleft())
                    return self._answers.popleft()
            looked_at = len(self._answers)
            if self._has_ended:
                break
            try:
                found = self._arrived.get(timeout=_LOOK_SECONDS)
            except queue.Empty:
                waits = waits + 1 if self._is_awaited() else 0
                continue
            if isinstance(found, TfdpError):
                self._arrived.put(found)
                raise found
            self._has_ended = found[-1] is None
            self._answers.extend(answer for answer in found if answer is not None)
            waits = 0
        # None is dropped: this rank may yet come to their places.
        return next((answer for answer in self._answers if answer.said == said), self._passed.get(said))

    def _receive(self) -> None:
        found: list[Answer | None] = []
        for number in itertools.count():
            if found and found[-1] is None:
                return
            try:
                sent = self._store.fetch(_key(number), threading.TIMEOUT_MAX, publisher=0)
            except TfdpError as error:
                self._arrived.put(error)
                return
            # What is unpickled was put there by rank 0 of this job: nobody else can write to the store.
            found = pickle.loads(sent)
            self._arrived.put(found)

    def _pass(self, answer: Answer) -> None:
        if answer.value is None or len(answer.value) > _LARGEST:
            return
        self._passed[answer.said] = answer
        self._passed.move_to_end(answer.said)
        if len(self._passed) > _MOST:
            self._passed.popitem(last=False)


def _key(number: int) -> str:
    return f"answers/{number}"
