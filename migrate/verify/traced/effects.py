"""The files this process writes or removes in the run's directory, whether Python or TensorFlow opens them."""

import functools
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import tensorflow as tf

from ..record import EFFECTS_FILE, WRITING, Effect, EffectKind, effect_line, own_copy
from .frames import Lines

Find: TypeAlias = Callable[..., Any]
Guard: TypeAlias = Callable[[Callable[[], None]], None]
# What the writer of summaries adds to its directory, in part: time, host and process.
_SUMMARIES = "events.out.tfevents"


class Watch:
    """Appends each effect to the trace as it happens."""

    def __init__(
        self, folder: Path, roots: tuple[Path, Path, Path], lines: Lines, step: Callable[[], int], guard: Guard
    ) -> None:
        """folder: the trace of this process. roots: the tree that shows the user's files; the run's directory, and that
        of the script, by the names that they have in life."""
        self._tree, *self._roots = map(os.path.realpath, roots)
        self._guard = guard
        self._lines = lines
        self._step = step
        self._file = os.open(folder / EFFECTS_FILE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        self._seen: set[tuple[EffectKind, str]] = set()

    def install(self) -> None:
        """Watch from now on."""
        sys.addaudithook(self._audit)
        from tensorflow.python.lib.io import _pywrap_file_io as files
        from tensorflow.python.ops import gen_dataset_ops, gen_io_ops, gen_summary_ops, io_ops

        self._watch(files, "WritableFile", _at(0), self._writes)
        self._watch(files, "CopyFile", _at(1), self._writes)
        self._watch(files, "RenameFile", _at(1), self._writes)
        self._watch(files, "DeleteFile", _at(0), self._removes)
        self._watch(files, "DeleteRecursively", _at(0), self._removes)
        self._watch(io_ops, "save_v2", _at(0, "prefix"), self._tensor)
        self._watch(gen_io_ops, "merge_v2_checkpoints", _at(1, "destination_prefix"), self._tensor)
        self._watch(gen_summary_ops, "create_summary_file_writer", _at(1, "logdir"), self._summaries)
        self._watch(gen_dataset_ops, "cache_dataset_v2", _at(1, "filename"), self._tensor)
        self._watch(tf.io, "write_file", _at(0, "filename"), self._tensor)
        self._watch(tf.io.TFRecordWriter, "__init__", _at(1, "path"), self._writes)
        if "h5py" in sys.modules:
            self._watch(sys.modules["h5py"].File, "__init__", _hdf5, self._writes)

    def _watch(self, owner: Any, name: str, find: Find, noted: Callable[[Any], None]) -> None:
        """Have `noted` called with the path among the arguments of a function, before the function is."""
        function = getattr(owner, name)

        @functools.wraps(function, updated=())
        def watched(*args: Any, **options: Any) -> Any:
            path = find(*args, **options)
            if path is not None:
                self._guard(lambda: noted(path))
            return function(*args, **options)

        setattr(owner, name, tf.autograph.experimental.do_not_convert(watched))

    def note(self, kind: EffectKind, path: Any) -> None:
        """Write an effect down, if it is one on the run's directory."""
        try:
            full = os.path.abspath(os.fsdecode(path))
        except TypeError:
            return
        # The links in the run's directory stay links: what matters is the name by which the script knows the file.
        full = os.path.join(os.path.realpath(os.path.dirname(full)), os.path.basename(full))
        if full.startswith(self._tree + os.sep):
            if kind == "writes":
                own_copy(full, self._tree)
            full = full.removeprefix(self._tree)
        elif full.startswith(os.path.dirname(self._tree) + os.sep):
            return  # the proof's own
        root = next((root for root in self._roots if full.startswith(root + os.sep)), None)
        if root is None or "__pycache__" in full or (kind, full) in self._seen:
            return
        self._seen.add((kind, full))
        name = os.path.relpath(full, root) if root == self._roots[0] else full
        os.write(self._file, effect_line(Effect(kind, name, int(self._lines.here() or 0) or None, self._step())))

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = arguments
            writes = any(letter in mode for letter in "wax+") if isinstance(mode, str) else bool((flags or 0) & WRITING)
            if writes:
                self.note("writes", path)
        elif event == "os.rename":
            self.note("writes", arguments[1])
        # With the descriptor of a folder, the path is one inside it: a part of what `rmtree` says as a whole.
        elif event in {"os.remove", "shutil.rmtree"} and arguments[1:] in {(), (-1,), (None,)}:
            self.note("removes", arguments[0])

    def _writes(self, path: Any) -> None:
        self.note("writes", path)

    def _removes(self, path: Any) -> None:
        self.note("removes", path)

    def _tensor(self, path: Any) -> None:
        """A path that is given to an operation. In a graph, one that is computed there is not known."""
        known = tf.get_static_value(tf.convert_to_tensor(path))
        name = None if known is None else np.asarray(known, object).item()
        # The parts of a checkpoint are merged into one place later.
        if name and b"_temp/part" not in name:
            self.note("writes", name)

    def _summaries(self, folder: Any) -> None:
        """The file's name has its time, host and process in it."""
        self._tensor(tf.strings.join([folder, f"/{_SUMMARIES}"]))


def _at(position: int, keyword: str = "") -> Find:
    return lambda *args, **options: args[position] if position < len(args) else options.get(keyword)


def _hdf5(_: Any, name: Any, mode: str = "r", *args: Any, **options: Any) -> Any:  # noqa: ARG001
    return None if mode == "r" else name
