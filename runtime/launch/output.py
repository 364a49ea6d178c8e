"""The ranks' output on the launcher's, line by line, each line with its rank in front."""

import collections
import os
import select
import selectors
import threading
import time
from collections.abc import Callable, Container, Sequence
from dataclasses import dataclass

from . import startup
from .children import Child
from .held import Held
from .lines import Lines, Pace
from .logs import Logs

_READ_BYTES = 2**16
_TAIL_LINES = 400
_STDOUT, _STDERR = 0, 1
_OWN = b"tfdp: "


@dataclass(frozen=True)
class Shown:
    """What of the ranks' lines is shown as they come, and where everything is kept.

    startup_lines: whether those of TensorFlow's C++ code are.
    last_words: whether what may be a rank's last words is, instead of being held until the job has ended.
    folds_echoes: whether what ranks write that rank 0 writes, too, is not.
    """

    startup_lines: bool
    last_words: bool
    folds_echoes: bool
    logs: Logs | None


class _Stream:
    """One stream of one rank."""

    def __init__(self, rank: int, which: int, pace: Pace) -> None:
        self.rank, self.which = rank, which
        self.lines = Lines(pace)


class Output:
    """Reads the pipes of all ranks on a thread of its own and writes prefixed lines."""

    def __init__(
        self,
        children: Sequence[Child],
        targets: tuple[int, int],
        shown: Shown,
        *,
        echoes: Container[int],
        broken: Callable[[], None],
        ending: Callable[[], bool],
    ) -> None:
        """`targets` are the file descriptors to write to.

        echoes: ranks that are known by now to write what rank 0 writes, too: of them only what they have to say
        themselves is shown.
        broken: called when nobody reads them.
        ending: whether a rank has failed, or a signal has come.
        """
        self._targets = targets
        self._shown = shown
        self._echoes = echoes
        self._broken = broken
        self._unread = False
        self._selector = selectors.DefaultSelector()
        self._tails = {child.rank: collections.deque[bytes](maxlen=_TAIL_LINES) for child in children}
        self._held = {child.rank: Held(ending) for child in children}
        self._streams: list[_Stream] = []
        self._last: tuple[int, int] | None = None
        self._ended = threading.Event()
        self._wake_in, self._wake_out = os.pipe()
        self._selector.register(self._wake_in, selectors.EVENT_READ)
        for child in children:
            pace = Pace()
            for which, pipe in enumerate((child.process.stdout, child.process.stderr)):
                assert pipe is not None
                self._streams.append(_Stream(child.rank, which, pace))
                self._selector.register(pipe, selectors.EVENT_READ, self._streams[-1])
        self._thread = threading.Thread(target=self._run, name="tfdp-output", daemon=True)
        self._thread.start()

    def finish(self) -> None:
        """Wait until all that the ranks wrote has been written, or is held; call it after they have ended.

        What a process that has left its rank's process group writes from now on is not waited for.
        """
        self._ended.set()
        os.write(self._wake_out, b"!")
        self._thread.join()
        for end in (self._wake_in, self._wake_out):
            os.close(end)
        if self._shown.logs is not None:
            self._shown.logs.close()

    def held(self, rank: int) -> list[bytes]:
        """The lines of the rank's stderr that have not been shown: `show` is to be called with those that shall be."""
        return self._held[rank].release()

    def tail(self, rank: int) -> list[bytes]:
        """The last lines of the rank's stderr that have been shown."""
        return list(self._tails[rank])

    def ends_with(self, rank: int) -> bool:
        """Whether the last line on the screen is one of the rank's stderr."""
        return self._last == (rank, _STDERR)

    def show(self, rank: int, lines: Sequence[bytes]) -> None:
        """Write lines of the rank's stderr; after `finish` on any thread."""
        self._tails[rank].extend(lines)
        self._put(rank, _STDERR, lines)

    def pass_on(self, rank: int, lines: Sequence[bytes]) -> None:
        """The same of a rank that has not failed, or of what it wrote before it did."""
        if rank not in self._echoes:
            self.show(rank, lines)
            return
        self._tails[rank].extend(lines)
        self._put(rank, _STDERR, [line for line in lines if line.startswith(_OWN)])

    def _run(self) -> None:
        while True:
            # What the ranks wrote before they ended is in the pipes and ready.
            ready = self._selector.select(0 if self._ended.is_set() else self._timeout())
            pipes = [key for key, _ in ready if key.fd != self._wake_in]
            for key in pipes:
                self._read(key)
            if not pipes and self._ended.is_set():
                break
            if self._ended.is_set() and self._wake_in in self._selector.get_map():
                self._selector.unregister(self._wake_in)
            self._look()
        for key in list(self._selector.get_map().values()):
            if key.fd != self._wake_in:
                self._end(key)
        self._selector.close()

    def _timeout(self) -> float | None:
        times = [each.lines.due for each in self._streams] + [each.due for each in self._held.values()]
        due = [at for at in times if at is not None]
        return max(0.0, min(due) - time.monotonic()) if due else None

    def _look(self) -> None:
        """What is to be shown now although nothing more has come."""
        now = time.monotonic()
        for stream in self._streams:
            self._say(stream, stream.lines.look(now), now)
        if not self._ended.is_set():
            for rank, held in self._held.items():
                self.pass_on(rank, held.look(now))

    def _read(self, key: selectors.SelectorKey) -> None:
        data, now = os.read(key.fd, _READ_BYTES), time.monotonic()
        if not data:
            self._end(key)
            return
        if self._shown.logs is not None:
            self._shown.logs.write(key.data.rank, key.data.which, data)
        self._say(key.data, key.data.lines.feed(data, now), now)

    def _end(self, key: selectors.SelectorKey) -> None:
        now = time.monotonic()
        self._say(key.data, key.data.lines.end(now), now)
        self._selector.unregister(key.fileobj)
        key.fileobj.close()  # type: ignore[union-attr]

    def _say(self, stream: _Stream, lines: Sequence[bytes], now: float) -> None:
        if stream.which == _STDOUT:
            if stream.rank not in self._echoes:
                self._put(stream.rank, _STDOUT, lines)
            return
        if not self._shown.startup_lines:
            lines = [line for line in lines if not startup.is_startup(line)]
        if not self._shown.last_words:
            lines = self._held[stream.rank].feed(lines, now)
        self.pass_on(stream.rank, lines)

    def _put(self, rank: int, which: int, lines: Sequence[bytes]) -> None:
        if lines:
            self._last = (rank, which)
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
