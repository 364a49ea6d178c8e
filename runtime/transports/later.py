"""A transport that is there when the script has imported TensorFlow."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from ..foundation import import_now, when_imported
from ._protocol import Transport


class Later:
    """In place of a transport until TensorFlow, which it needs, has been imported; afterwards it passes all on.

    Connected before anything else is done: TensorFlow takes processes into its cluster before its first operation only.
    """

    def __init__(self, connect: Callable[[], Transport]) -> None:
        self._connect = connect
        self._connected: Transport | None = None
        self._lock = threading.RLock()
        when_imported(self._get)

    def _get(self) -> Transport:
        with self._lock:
            if self._connected is None:
                import_now()
            if self._connected is None:
                self._connected = self._connect()
            return self._connected

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._get(), name)

    def is_awaited(self) -> bool:
        """Not before there is any."""
        return self._connected is not None and self._connected.is_awaited()

    def ended(self) -> AbstractContextManager[None]:
        """Nobody waits before there is any."""
        return nullcontext() if self._connected is None else self._connected.ended()

    def close(self) -> None:
        """If it has been used."""
        if self._connected is not None:
            self._connected.close()
