"""The ranks' output on the launcher's, line by line, each line with its rank in front."""

import collections
import os
import select
import selectors
import threading
from collections.abc import Callable, Sequence

from .children import Child

_READ_BYTES = 2**16
_LINE_BYTES = 2**20
_TAIL_LINES = 20


class Lines:
    """Cuts a stream into lines.

    A bare carriage return ends a line too: a progress bar that redraws itself would otherwise be shown only at its end.
    """

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The lines that are complete with `data`, without their ends."""
        text = self._rest + data
        # A carriage return at the very end may be half of a line end.
        held = b"\r" if text.endswith(b"\r") else b""
        text = text[: len(text) - len(held)].replace(b"\r\n", b"\n")
        *pieces, rest = text.split(b"\n")
        lines = [line for piece in pieces for line in _redrawn(piece)]
        *redrawn, rest = rest.split(b"\r")
        lines += [line for line in redrawn if line]
        self._rest = rest + held
        if len(self._rest) > _LINE_BYTES:
            lines.append(self._rest)
            self._rest = b""
        return lines

    def end(self) -> list[bytes]:
        """What is left at the end of the stream."""
        rest, self._rest = self._rest.rstrip(b"\r"), b""
        return [rest] if rest else []


def _redrawn(line: bytes) -> list[bytes]:
    if b"\r" not in line:
        return [line]
    return [piece for piece in line.split(b"\r") if piece]


class Output:
    """Reads the pipes of all ranks on a thread of its own and writes prefixed lines."""

    def __init__(self, children: Sequence[Child], stdout: int, stderr: int, broken: Callable[[], None]) -> None:
        """`stdout` and `stderr` are the file descriptors to write to; `broken` is called when nobody reads them."""
        self._targets = (stdout, stderr)
        self._broken = broken
        self._unread = False
        self._selector = selectors.DefaultSelector()
        self._lines: dict[int, Lines] = {}
        self._tails = [collections.deque[bytes](maxlen=_TAIL_LINES) for _ in children]
        self._ended = threading.Event()
        self._wake_in, self._wake_out = os.pipe()
        self._selector.register(self._wake_in, selectors.EVENT_READ)
        for child in children:
            for which, pipe in enumerate((child.process.stdout, child.process.stderr)):
                assert pipe is not None
                self._selector.register(pipe, selectors.EVENT_READ, (child.rank, which))
                self._lines[pipe.fileno()] = Lines()
        self._thread = threading.Thread(target=self._run, name="tfdp-output", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until all that the ranks wrote has been written; call it after they have ended.

        What a process that has left its rank's process group writes from now on is not waited for.
        """
        self._ended.set()
        os.write(self._wake_out, b"!")
        self._thread.join()
        for end in (self._wake_in, self._wake_out):
            os.close(end)

    def tail(self, rank: int) -> list[str]:
        """The last lines of the rank's stderr."""
        return [line.decode("utf-8", "replace") for line in self._tails[rank]]

    def _run(self) -> None:
        while True:
            # What the ranks wrote before they ended is in the pipes and ready.
            ready = self._selector.select(0 if self._ended.is_set() else None)
            pipes = [key for key, _ in ready if key.fd != self._wake_in]
            for key in pipes:
                self._pass_on(key)
            if not pipes and self._ended.is_set():
                break
            if self._ended.is_set() and self._wake_in in self._selector.get_map():
                self._selector.unregister(self._wake_in)
        for key in list(self._selector.get_map().values()):
            if key.fd != self._wake_in:
                self._end(key)
        self._selector.close()

    def _pass_on(self, key: selectors.SelectorKey) -> None:
        data = os.read(key.fd, _READ_BYTES)
        if data:
            self._say(key, self._lines[key.fd].feed(data))
        else:
            self._end(key)

    def _end(self, key: selectors.SelectorKey) -> None:
        self._say(key, self._lines[key.fd].end())
        self._selector.unregister(key.fileobj)
        key.fileobj.close()  # type: ignore[union-attr]

    def _say(self, key: selectors.SelectorKey, lines: Sequence[bytes]) -> None:
        rank, which = key.data
        if which == 1:
            self._tails[rank].extend(lines)
        self._write(self._targets[which], b"".join(b"[%d] %b\n" % (rank, line) for line in lines))

    def _write(self, target: int, data: bytes) -> None:
        # One writer for both streams of all ranks: lines cannot be torn, also where both go to one terminal.
        if self._unread:
            return  # still read what the ranks write: a full pipe would stop them before the signal does
        view = memoryview(data)
        try:
            while view:
                try:
                    view = view[os.write(target, view) :]
                except BlockingIOError:  # somebody has made our stdout non-blocking
                    select.select([], [target], [])
        except OSError:
            self._unread = True
            self._broken()
