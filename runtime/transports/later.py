"""A transport that is there when it is first used."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from ..foundation import import_now
from ._protocol import Transport


class Later:
    """In place of a transport until TensorFlow, which it needs, has been imported; afterwards it passes all on."""

    def __init__(self, connect: Callable[[], Transport]) -> None:
        self._connect = connect
        self._connected: Transport | None = None
        self._lock = threading.RLock()

    def _get(self) -> Transport:
        with self._lock:
            if self._connected is None:
                import_now()  # what waits for that may be the first to use it
            if self._connected is None:
                self._connected = self._connect()
            return self._connected

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self._get(), name)

    def close(self) -> None:
        """If it has been used."""
        if self._connected is not None:
            self._connected.close()
