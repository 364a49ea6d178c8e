"""The job's key-value store, as a rank reaches it, and how a rank ends; nothing here imports TensorFlow."""

from __future__ import annotations

from .client import (
    ABORT,
    CANCEL,
    FETCH,
    FINISHED,
    FRAME,
    GONE,
    GOODBYE,
    HELLO,
    LAST_WORDS,
    MET,
    PUBLISH,
    REFUSED,
    VALUE,
    WELCOME,
    Frame,
    SocketStore,
    SoloStore,
    Store,
    end_without_launcher,
    parsed,
)
from .ending import speak_at_the_end

__all__ = [
    "ABORT",
    "CANCEL",
    "FETCH",
    "FINISHED",
    "FRAME",
    "GONE",
    "GOODBYE",
    "HELLO",
    "LAST_WORDS",
    "MET",
    "PUBLISH",
    "REFUSED",
    "VALUE",
    "WELCOME",
    "Frame",
    "SocketStore",
    "SoloStore",
    "Store",
    "end_without_launcher",
    "parsed",
    "speak_at_the_end",
]
