"""Notices that a process of a job of several is about to train without having joined the job, and ends it.

Loaded by its file, in any Python of a rank: it imports nothing but the standard library. It costs nothing until
TensorFlow or Keras is imported; then it puts a look in front of what every training goes through. `dp.init` removes it.

Training is: an optimizer that applies gradients; a variable that is changed by the script's own code, or by adding or
subtracting, after a tape has given a gradient for it. Both are seen while a `tf.function` is traced, before it first
runs. A gradient alone is none (saliency maps), nor is a variable that a framework sets (a checkpoint that is loaded).
"""

import functools
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import sys
import sysconfig
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from types import FrameType, ModuleType
from typing import Any, NoReturn

UNJOINED = "TFDP_UNJOINED"
_NOT_THE_SCRIPTS = ("<", sysconfig.get_path("stdlib") + os.sep, __file__)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}", "__autograph_generated_file")
_AUTOGRAPH = f"{os.sep}autograph{os.sep}"  # which calls for a function of the script
_CHANGES = ("assign", "assign_add", "assign_sub")


class _Finder(importlib.abc.MetaPathFinder):
    """Finds nothing itself: it has a function called when a package has been imported."""

    def __init__(self, imported: dict[str, Callable[[ModuleType], None]]) -> None:
        self._imported = imported

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        imported = self._imported.get(fullname)
        if imported is None:
            return None
        for finder in sys.meta_path:
            find = None if finder is self else getattr(finder, "find_spec", None)
            spec = None if find is None else find(fullname, path, target)
            if spec is not None:
                if spec.loader is not None:
                    _after(spec.loader, imported)
                return spec  # type: ignore[no-any-return]
        return None


def _after(loader: Any, imported: Callable[[ModuleType], None]) -> None:
    execute = loader.exec_module

    def exec_module(module: ModuleType) -> None:
        del loader.exec_module
        execute(module)
        imported(module)

    loader.exec_module = exec_module


class Hook:
    """What is put in front of the methods that train, until it is removed."""

    def __init__(self, train: Callable[[], None]) -> None:
        """`train` is called when the process is about to train."""
        self._train = train
        self._replaced: list[tuple[type, str, Any]] = []
        self._with_gradients: dict[int, weakref.ref[Any]] = {}
        self.finder = _Finder({"tensorflow": self.tensorflow, "keras": self.keras, "tf_keras": self.keras})

    def tensorflow(self, tf: Any) -> None:
        """TensorFlow has been imported."""
        self._before(tf.GradientTape, "gradient", self._gradient)
        for name in _CHANGES:
            for kind in _kinds_of_variables():
                self._before(kind, name, functools.partial(self._changed, name))

        def applied(*_: Any, **__: Any) -> None:
            if tf.compat.v1.executing_eagerly_outside_functions():  # else a graph is built, for whatever session
                self._train()

        self._before(tf.compat.v1.train.Optimizer, "apply_gradients", applied)

    def keras(self, keras: Any) -> None:
        """A Keras has been imported: 2, 3 or tf-keras."""
        legacy = getattr(keras.optimizers, "legacy", None)
        for optimizer in (keras.optimizers.Optimizer, getattr(legacy, "Optimizer", None)):
            for name in ("apply", "apply_gradients"):
                self._before(optimizer, name, self._applied)
        for name in _CHANGES:
            self._before(getattr(keras, "Variable", None), name, functools.partial(self._changed, name))

    def remove(self) -> None:
        """Leave all as it was."""
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        for owner, name, own in reversed(self._replaced):
            if own is None:
                delattr(owner, name)
            else:
                setattr(owner, name, own)
        self._replaced.clear()

    def _before(self, owner: Any, name: str, look: Callable[..., None]) -> None:
        method = getattr(owner, name, None)
        if not callable(method):
            return

        @functools.wraps(method)
        def looked_at(*args: Any, **kwargs: Any) -> Any:
            if self._replaced:
                look(*args, **kwargs)
            return method(*args, **kwargs)

        self._replaced.append((owner, name, vars(owner).get(name)))
        setattr(owner, name, looked_at)

    def _gradient(self, _tape: Any, _target: Any, sources: Any = None, *_: Any, **__: Any) -> None:
        for source in _leaves(sources):
            if getattr(source, "trainable", False):
                self._with_gradients[id(source)] = weakref.ref(source)

    def _applied(self, *_: Any, **__: Any) -> None:
        self._train()

    def _changed(self, how: str, variable: Any, *_: Any, **__: Any) -> None:
        known = self._with_gradients.get(id(variable))
        if known is not None and known() is variable and (how != "assign" or _asked_by_the_script()):
            self._train()


def _kinds_of_variables() -> list[Any]:
    """The classes whose methods change variables. They have no public names: `tf.Variable` is above them."""
    module = sys.modules.get("tensorflow.python.ops.resource_variable_ops")
    return [getattr(module, name, None) for name in ("BaseResourceVariable", "ResourceVariable")]


def _leaves(sources: Any) -> Iterator[Any]:
    if isinstance(sources, dict):
        sources = list(sources.values())
    if isinstance(sources, (list, tuple)):
        for source in sources:
            yield from _leaves(source)
    else:
        yield sources


def _is_scripts(path: str) -> bool:
    return not path.startswith(_NOT_THE_SCRIPTS) and not any(part in path for part in _INSTALLED)


def _frames() -> Iterator[FrameType]:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _asked_by_the_script() -> bool:
    """Whether the innermost call that is not ours, or TensorFlow's way to call the script's functions, is its own."""
    for frame in _frames():
        path = frame.f_code.co_filename
        if path != __file__ and _AUTOGRAPH not in path:
            return _is_scripts(path) or "__autograph_generated_file" in path
    return False


def _site() -> tuple[str, int]:
    """The file and line of the script that train; no line where only the script is known."""
    for frame in _frames():
        if _is_scripts(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
    return getattr(sys.modules.get("__main__"), "__file__", None) or "", 0


def _end() -> NoReturn:
    """Tell the launcher, which speaks for all ranks, and end: an exception could be caught, and training go on."""
    path, line = _site()
    rank = int(os.environ["TFDP_RANK"])
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    try:
        launcher = os.open(os.environ[UNJOINED], os.O_WRONLY | os.O_NONBLOCK)
        os.write(launcher, json.dumps([rank, path, line]).encode() + b"\n")
    except OSError as error:
        print(f"tfdp: {path} trains without dp.init(), and `tfdp run` cannot be told ({error})", file=sys.stderr)
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(1)


_hook = Hook(_end)
remove = _hook.remove


def install(_launcher: str) -> None:
    """Wait for the import of TensorFlow or Keras."""
    sys.meta_path.insert(0, _hook.finder)
