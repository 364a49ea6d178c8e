"""Files that TensorFlow writes: rank 0 does, whoever calls it, and the others go on when they are written."""

from __future__ import annotations

import contextlib
import functools
import os
from collections.abc import Callable
from typing import Any

from ..foundation import Inside
from ..job import current
from ..store import apart
from .asking import answer, begun, is_echo, place_of_question
from .databases import new_folder
from .paths import PATHS
from .written import ends_with_root, mark, new_number

_nowhere = Inside()
_FILE_CALLS = (
    "atomic_write_string_to_file copy create_dir delete_file delete_recursively recursive_create_dir rename "
    "write_string_to_file"
)


def share_tensorflow_files(put: Callable[[Any, str, Any], None]) -> None:
    """From now on checkpoints, saved models, records and summaries are rank 0's for the script."""
    import tensorflow as tf

    _write_nowhere()
    for kind, names in ((tf.train.Checkpoint, ("save", "write")), (tf.train.CheckpointManager, ("save",))):
        for name in names:
            save = getattr(kind, name)
            setattr(kind, name, _saved(save, f"tf.train.{save.__qualname__}"))
    put(tf.saved_model, "save", _saved(tf.saved_model.save, "tf.saved_model.save", lambda _: os.curdir))
    put(tf.io, "write_graph", _done_once(tf.io.write_graph, "tf.io.write_graph"))
    put(tf.io, "write_file", _done_once(tf.io.write_file, "tf.io.write_file", tf.no_op))
    tf.data.Dataset.cache = _cached(tf.data.Dataset.cache)
    tf.data.Dataset.save = _of_dataset(tf.data.Dataset.save)
    tf.data.experimental.TFRecordWriter.write = _of_dataset(tf.data.experimental.TFRecordWriter.write)
    _share_writer(tf.io.TFRecordWriter, "tf.io.TFRecordWriter", lambda *_, **__: True, ("close", "__exit__"))
    _share_writer(tf.io.gfile.GFile, "tf.io.gfile.GFile", _file_is_written, ("close",))
    if current().topology.rank > 0:
        for summary in (tf.summary, tf.compat.v2.summary):  # Keras 2 knows the latter, another module of that name
            put(summary, "create_file_writer", _no_writer(summary.create_file_writer))


def _write_nowhere() -> None:
    """Make what saves able to do all but write: TensorFlow has no public function below it that does."""
    from tensorflow.python.checkpoint import functional_saver
    from tensorflow.python.lib.io import file_io
    from tensorflow.python.saved_model import fingerprinting_utils

    for owner, name in (
        (functional_saver.MultiDeviceSaver, "save"),
        (fingerprinting_utils, "write_fingerprint"),
        *((file_io, name) for name in _FILE_CALLS.split()),
    ):
        setattr(owner, name, _unless_nowhere(getattr(owner, name)))


def _unless_nowhere(original: Any) -> Any:
    @functools.wraps(original)
    def called(*arguments: Any, **options: Any) -> Any:
        # A saved model has the operations that save it in a graph of its own.
        return None if _nowhere and _is_eager() else original(*arguments, **options)

    return called


def _is_eager() -> bool:
    import tensorflow as tf

    return bool(tf.executing_eagerly())


def _folder(arguments: tuple[Any, ...]) -> Any:
    """Where something is saved, which may be told otherwise."""
    return arguments[0] if arguments and isinstance(arguments[0], PATHS) else os.curdir


def _saved(original: Any, name: str, folder: Callable[[tuple[Any, ...]], Any] = _folder) -> Any:
    """What saves the object that it is given first: others do all of it but write, so that they count and keep what
    rank 0 does, and the script's Python counts and draws there where it is traced."""

    @functools.wraps(original)
    def saved(*arguments: Any, **options: Any) -> Any:
        place = place_of_question(name, only_by_script=False) if _is_eager() and not _nowhere else None
        save = functools.partial(original, *arguments, **options)
        if place is None:
            with _nowhere.entered() if is_echo(folder(arguments[1:])) else contextlib.nullcontext():
                return save()
        is_here, found = begun(place, name, save, (arguments[1:], options))
        if not is_here:
            with _nowhere.entered(), apart():
                save()
        return found

    return saved


def _done_once(original: Any, name: str, in_graph: Callable[[], Any] | None = None) -> Any:
    """in_graph: what others do in a graph."""

    @functools.wraps(original)
    def done(*arguments: Any, **options: Any) -> Any:
        eagerly = _is_eager()
        if in_graph is not None and not eagerly:
            return in_graph() if current().topology.rank > 0 else original(*arguments, **options)
        place = place_of_question(name, only_by_script=False) if eagerly else None
        if place is None:
            return None if eagerly and is_echo(os.curdir) else original(*arguments, **options)

        def do() -> Any:
            value = original(*arguments, **options)
            return value if isinstance(value, (str, type(None))) else None

        return answer(place, name, do, (arguments, options))

    return done


def _of_dataset(original: Any) -> Any:
    """A method that writes the elements of a dataset: others only take them."""
    name = f"tf.data.{original.__qualname__}"

    @functools.wraps(original)
    def write(self: Any, *arguments: Any, **options: Any) -> Any:
        place = place_of_question(name, only_by_script=False) if _is_eager() else None
        if place is None:
            return original(self, *arguments, **options)

        def do() -> None:
            original(self, *arguments, **options)

        is_here, _ = begun(place, name, do, ((), {}))
        if not is_here:
            for _ in next(each for each in (self, *arguments, *options.values()) if hasattr(each, "element_spec")):
                pass
        return None

    return write


def _cached(original: Any) -> Any:
    """`cache(file)`: one that is not there yet each worker fills for itself, in a file of its own; rank 0's stays."""
    own = functools.cache(lambda path: os.path.join(new_folder(), os.path.basename(path)))

    @functools.wraps(original)
    def cache(self: Any, filename: Any = "", *arguments: Any, **options: Any) -> Any:
        is_named = isinstance(filename, PATHS) and len(os.fspath(filename)) > 0
        place = place_of_question("tf.data.Dataset.cache", False, filename) if is_named else None
        if place is not None:
            path = os.fsdecode(filename)
            is_there = answer(
                place, "tf.data.Dataset.cache", lambda: os.path.exists(f"{path}.index"), ((filename,), {})
            )
            filename = filename if is_there or current().topology.rank == 0 else own(path)
        return original(self, filename, *arguments, **options)

    return cache


def _share_writer(kind: Any, name: str, writes: Callable[..., bool], ends: tuple[str, ...]) -> None:
    """A class whose objects write a file: those of others write to the null device, and end when rank 0's has.

    writes: whether one that is made with such arguments after the path does.
    """
    begin = kind.__init__

    @functools.wraps(begin)
    def opened(self: Any, path: Any, *arguments: Any, **options: Any) -> None:
        is_written = writes(*arguments, **options)
        place = place_of_question(name, False, path) if is_written else None
        if place is None:
            begin(self, os.devnull if is_written and is_echo(path) else path, *arguments, **options)
            return

        def start() -> int:
            begin(self, path, *arguments, **options)
            return new_number()

        is_here, number = begun(place, name, start, ((path, *arguments), options))
        if not is_here:
            begin(self, os.devnull, *arguments, **options)
        mark(self, number)

    kind.__init__ = opened
    for end in ends:
        setattr(kind, end, ends_with_root(getattr(kind, end)))


def _file_is_written(mode: Any = "r") -> bool:
    return isinstance(mode, str) and not set(mode).isdisjoint("wa+")


def _no_writer(original: Any) -> Any:
    @functools.wraps(original)
    def create(*arguments: Any, **options: Any) -> Any:
        import tensorflow as tf

        is_shared = place_of_question("tf.summary.create_file_writer", only_by_script=False) is not None
        return tf.summary.create_noop_writer() if is_shared else original(*arguments, **options)

    return create
