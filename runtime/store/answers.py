"""What rank 0 has been answered, in order, for ranks that go on with the same answers."""

from __future__ import annotations

import collections
import contextlib
import pickle
import queue
import threading
from collections.abc import Iterator
from typing import NamedTuple

from ..foundation import TfdpError
from .client import Store


class Answer(NamedTuple):
    """place: where in the program the question was asked; said: with what; value: pickled, None where it cannot be."""

    place: bytes
    said: bytes
    is_error: bool
    value: bytes | None


class _Apart(threading.local):
    depth = 0


_apart = _Apart()


@contextlib.contextmanager
def apart() -> Iterator[None]:
    """In here, questions are a rank's own."""
    _apart.depth += 1
    try:
        yield
    finally:
        _apart.depth -= 1


def is_apart() -> bool:
    """Whether the questions of this thread are the rank's own now."""
    return _apart.depth > 0


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

    def __init__(self, store: Store) -> None:
        self._store = store
        self._number = 0
        self._answers: collections.deque[Answer | None] = collections.deque()

    def take(self, place: bytes, what: str) -> Answer:
        """Rank 0's next answer at a place. Those before it were for rank 0 alone.

        The wait has no limit, as rank 0 may be at work: where it waits for this rank meanwhile, its own limit ends it.
        """
        while True:
            while self._answers:
                answer = self._answers.popleft()
                if answer is None:
                    self._answers.append(None)
                    raise TfdpError(f"{what}, and rank 0 has ended without having come there")
                if answer.place == place:
                    return answer
            found = self._store.fetch(_key(self._number), threading.TIMEOUT_MAX, publisher=0)
            # What is unpickled was put there by rank 0 of this job: nobody else can write to the store.
            self._answers.extend(pickle.loads(found))
            self._number += 1


def _key(number: int) -> str:
    return f"answers/{number}"
