"""Cuts a stream of a rank into lines, and shows what is redrawn only now and then."""

import re

_LINE_BYTES = 2**20
_REDRAWN_SECONDS = 1.0
# Keras goes back over what it wrote before it returns to the begin of the line.
_REDRAW = re.compile(rb"\x08*\r")


class Pace:
    """When a rank's redrawn lines may be shown again; one for both of its streams."""

    def __init__(self) -> None:
        self.next = 0.0

    def shown(self, now: float) -> None:
        """A state has been shown."""
        self.next = now + _REDRAWN_SECONDS


class Lines:
    """Cuts a stream into lines.

    A line that carriage returns draw again and again, as progress bars do, is shown at its first state, at most once
    a second from then on, and at its last state. Everything else comes out as it is.
    """

    def __init__(self, pace: Pace) -> None:
        self._pace = pace
        self._rest = b""
        self._redrawn = False
        self._latest = b""  # the newest state of a redrawn line
        self._shown = b""  # the one that was shown
        self.due: float | None = None

    def feed(self, data: bytes, now: float) -> list[bytes]:
        """The lines to show once `data` has come at the time `now`, without their ends."""
        text = self._rest + data
        # A carriage return at the very end may be half of a line end.
        held = b"\r" if text.endswith(b"\r") else b""
        *whole, rest = text[: len(text) - len(held)].replace(b"\r\n", b"\n").split(b"\n")
        found = [line for piece in whole for line in self._whole(piece, now)]
        *states, rest = _REDRAW.split(rest)
        if states:
            self._redrawn = True
            self._latest = _last(states) or self._latest
            if self._latest != self._shown and now >= self._pace.next:
                found.append(self._show(now))
        self._rest = rest + held
        self._set_due(now)
        if len(self._rest) > _LINE_BYTES:
            found.append(self._rest)
            self._rest = b""
        return found

    def look(self, now: float) -> list[bytes]:
        """The state to show although nothing more has come."""
        if self.due is None or now < self.due:
            return []
        self._latest = _last([self._latest, self._rest.rstrip(b"\r")])
        self.due = None
        return [self._show(now)] if self._latest != self._shown else []

    def end(self, now: float) -> list[bytes]:
        """What is left at the end of the stream."""
        rest, self._rest = self._rest.rstrip(b"\r"), b""
        return self._whole(rest, now) if rest or self._redrawn else []

    def _whole(self, piece: bytes, now: float) -> list[bytes]:
        """What to show of a line that has come to its end."""
        states = _REDRAW.split(piece)
        if len(states) == 1 and not self._redrawn:
            return [piece]
        final = _last([self._latest, *states])
        repeated = final == self._shown
        self._redrawn, self._latest, self._shown, self.due = False, b"", b"", None
        if repeated:
            return []
        self._pace.shown(now)
        return [final]

    def _show(self, now: float) -> bytes:
        self._pace.shown(now)
        self._shown = self._latest
        return self._latest

    def _set_due(self, now: float) -> None:
        """When to show the newest state, should nothing more come: what has come of it may not be all yet."""
        waits = self._redrawn and _last([self._latest, self._rest.rstrip(b"\r")]) != self._shown
        if not waits:
            self.due = None
        elif self.due is None:
            self.due = max(self._pace.next, now + _REDRAWN_SECONDS)


def _last(states: list[bytes]) -> bytes:
    """The last of the states in which something is drawn."""
    return next((state for state in reversed(states) if state.strip()), b"")
