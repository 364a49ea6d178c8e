"""The folder of `--log-dir`: what each rank wrote, byte by byte."""

import contextlib
import os
from collections.abc import Sequence

from .command import CommandError

_STREAMS = ("stdout", "stderr")


class Logs:
    """Files `rank-0.stdout.log`, `rank-0.stderr.log`, … in a folder."""

    def __init__(self, folder: str, ranks: Sequence[int]) -> None:
        """Make the folder, if it is not there, and the files.

        Raises:
            CommandError: the folder holds logs already, or cannot be written to.
        """
        self._files: dict[tuple[int, int], int] = {}
        self.failed = ""
        try:
            os.makedirs(folder, exist_ok=True)
            earlier = sorted(name for name in os.listdir(folder) if name.startswith("rank-") and name.endswith(".log"))
            if earlier:
                raise CommandError(
                    f"--log-dir {folder}: {earlier[0]} is there already, from an earlier run: give another folder, or "
                    "remove the logs in this one"
                )
            for rank in ranks:
                for which, name in enumerate(_STREAMS):
                    path = os.path.join(folder, f"rank-{rank}.{name}.log")
                    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                    self._files[rank, which] = os.open(path, flags, 0o666)
        except OSError as error:
            self.close()
            raise CommandError(f"--log-dir {folder}: {error.filename}: {error.strerror}") from error

    def write(self, rank: int, which: int, data: bytes) -> None:
        """Keep what the rank wrote to stdout (0) or stderr (1). After an error, as of a full disk, nothing is kept."""
        if self.failed:
            return
        view = memoryview(data)
        try:
            while view:
                view = view[os.write(self._files[rank, which], view) :]
        except OSError as error:
            self.failed = f"the logs of --log-dir are not complete: rank-{rank}.{_STREAMS[which]}.log: {error.strerror}"

    def close(self) -> None:
        """Nothing more is written."""
        for file in self._files.values():
            with contextlib.suppress(OSError):
                os.close(file)
        self._files.clear()
