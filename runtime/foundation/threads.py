"""What a thread is, and is doing."""

import contextlib
import threading
from collections.abc import Iterator


class Inside(threading.local):
    """Whether this thread is inside something."""

    depth = 0

    def __bool__(self) -> bool:
        return self.depth > 0

    @contextlib.contextmanager
    def entered(self) -> Iterator[None]:
        """What is done in the block is inside."""
        self.depth += 1
        try:
            yield
        finally:
            self.depth -= 1


def is_elsewhere() -> bool:
    """Whether this is another thread than the main one."""
    return threading.current_thread() is not threading.main_thread()
