"""Which line of the script is at work: through TensorFlow, Keras, the proof and what AutoGraph makes of the script."""

import sys
from collections.abc import Iterator
from types import FrameType
from typing import Any

KERAS = ("keras", "tf_keras")
INSIDE = ("tensorflow", *KERAS)
_GENERATED = "__autograph_generated_file"
# Where the runtime counts the batches that a loop takes: between the loop and the iterator.
_COUNTING = "tfdp.runtime.data.loops"


def frames(frame: FrameType | None = None) -> Iterator[FrameType]:
    """`frame` and those that called it; those of the caller without one. Where the runtime counts is left out."""
    frame = frame or sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") != _COUNTING:
            yield frame
        frame = frame.f_back


def inside(frame: FrameType) -> bool:
    """Whether a frame belongs to one of these libraries."""
    name = frame.f_globals.get("__name__") or ""
    package = name.split(".")[0]
    if _GENERATED in frame.f_code.co_filename:
        return False
    return package in INSIDE or name.startswith("tfdp.migrate.verify")


class Lines:
    """Line numbers of the script."""

    def __init__(self, script: str) -> None:
        self._script = script
        self._origins: dict[tuple[str, int], int] = {}

    def install(self) -> None:
        """Remember which line of the script each line of AutoGraph's is made from."""
        # The map that TensorFlow's own error messages use; 2.15 to 2.21 have the name.
        from tensorflow.python.autograph.impl import api

        convert = api._convert_actual

        def converted(entity: Any, context: Any) -> Any:
            made = convert(entity, context)
            for place, origin in getattr(made, "ag_source_map", {}).items():
                if origin.loc.filename == self._script:
                    self._origins[place.filename, place.lineno] = origin.loc.lineno
            return made

        api._convert_actual = converted

    def here(self) -> str:
        """The innermost line of the script that is running, empty where none is."""
        return next((str(line) for line in map(self._line, frames()) if line), "")

    def origin(self, path: str, line: int) -> int | None:
        """The script's line from which AutoGraph made a line of its own."""
        return self._origins.get((path, line))

    def _line(self, frame: FrameType) -> int | None:
        path = frame.f_code.co_filename
        return frame.f_lineno if path == self._script else self.origin(path, frame.f_lineno)
