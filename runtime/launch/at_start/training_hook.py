"""Notices that a process of a job of several is about to train without having joined the job, and ends it.

Loaded by its file, in any Python of a rank: it imports nothing but the standard library. It costs nothing until
TensorFlow or Keras is imported; then it puts a look in front of what every training goes through. `dp.init` removes it.

Training is: an optimizer that applies gradients; a variable that the script's own code changes or sets, or that adding
or subtracting changes, after a gradient has been taken for it; a session that runs operations which apply gradients.
The first two are seen while a `tf.function` is traced, before it first runs. A gradient alone is none (saliency maps),
nor is a variable that a framework sets (a checkpoint that is loaded), nor a plain `tf.Variable` that is changed by its
gradient where the tape has watched others too, whose gradients nobody asked for (an input that is attacked, and a
model). All these may be training: that gradients are taken again is told to the launcher, for a word at the end.
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
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from types import FrameType, ModuleType
from typing import Any, NoReturn

UNJOINED = "TFDP_UNJOINED"
_NOT_THE_SCRIPTS = ("<", sysconfig.get_path("stdlib") + os.sep, __file__)
_INSTALLED = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}", "__autograph_generated_file")
_AUTOGRAPH = f"{os.sep}autograph{os.sep}"  # which calls for a function of the script
_CHANGES = ("assign", "assign_add", "assign_sub")
_APPLIES = ("Apply", "ResourceApply", "SparseApply", "ResourceSparseApply")  # TensorFlow's operations that train
_KERAS = ("keras.", "tf_keras.")


class Finder(importlib.abc.MetaPathFinder):
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

    def __init__(self, train: Callable[[], None], repeats: Callable[[], None] = lambda: None) -> None:
        """`train` is called when the process is about to train, `repeats` when it takes gradients again, once."""
        self._train, self._repeats = train, repeats
        self._gradients = 0
        self._asked: weakref.WeakKeyDictionary[Any, dict[int, Any]] = weakref.WeakKeyDictionary()  # of each tape
        self._safe: weakref.WeakSet[Any] = weakref.WeakSet()
        self._replaced: list[tuple[type, str, Any]] = []
        self._with_gradients: dict[int, weakref.ref[Any]] = {}
        self.finder = Finder({"tensorflow": self.tensorflow, "keras": self.keras, "tf_keras": self.keras})

    def tensorflow(self, tf: Any) -> None:
        """TensorFlow has been imported."""
        self._before(tf.GradientTape, "gradient", self._gradient)
        self._before(_graph_gradients(), "_GradientsHelper", self._gradient_of_graph)
        for name in _CHANGES:
            for kind in _kinds_of_variables():
                self._before(kind, name, functools.partial(self._changed, name))

        def applied(*_: Any, **__: Any) -> None:
            if _at_once():
                self._train()

        self._before(tf.compat.v1.train.Optimizer, "apply_gradients", applied)

        def runs(session: Any, fetches: Any, *_: Any, **__: Any) -> None:
            self._runs([_operation(session, fetch) for fetch in tf.nest.flatten(fetches, expand_composites=True)])

        for kind in (tf.compat.v1.Session, tf.compat.v1.InteractiveSession):
            self._before(kind, "run", runs)

    def keras(self, keras: Any) -> None:
        """A Keras has been imported: 2, 3 or tf-keras."""
        legacy = getattr(keras.optimizers, "legacy", None)
        for optimizer in (keras.optimizers.Optimizer, getattr(legacy, "Optimizer", None)):
            for name in ("apply", "apply_gradients"):
                self._before(optimizer, name, self._applied)
        for name in _CHANGES:
            self._before(getattr(keras, "Variable", None), name, functools.partial(self._changed, name))
        for kind in (getattr(getattr(keras, "layers", None), "Layer", None), getattr(keras, "Model", None)):
            self._before(kind, "set_weights", self._set)

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

    def _gradient(self, tape: Any, _target: Any, sources: Any = None, *_: Any, **__: Any) -> None:
        variables = [source for source in _leaves(sources) if getattr(source, "trainable", False)]
        asked = self._asked.setdefault(tape, {})
        asked.update((id(variable), variable) for variable in variables)
        others = any(v.trainable and id(v) not in asked for v in tape.watched_variables())
        distributed = any(hasattr(variable, "values") for variable in variables)  # the tape watches their parts
        self._note(asked.values() if not others or distributed else filter(_is_of_keras, variables))
        self._gradients += 1
        if self._gradients == 2:
            self._repeats()

    def _gradient_of_graph(self, _targets: Any, sources: Any, *_: Any, **__: Any) -> None:
        self._note(source for source in _leaves(sources) if getattr(source, "trainable", False))

    def _note(self, variables: Iterable[Any]) -> None:
        for variable in variables:
            self._with_gradients[id(variable)] = weakref.ref(variable)

    def _runs(self, operations: list[Any]) -> None:
        """A session runs these, and what they need."""
        while operations:
            operation = operations.pop()
            if operation is None or operation in self._safe:
                continue
            if operation.type.startswith(_APPLIES):
                self._train()
            self._safe.add(operation)
            operations += [*(tensor.op for tensor in operation.inputs), *operation.control_inputs]

    def _applied(self, *_: Any, **__: Any) -> None:
        self._train()

    def _changed(self, how: str, variable: Any, *_: Any, **__: Any) -> None:
        known = self._with_gradients.get(id(variable))
        if known is not None and known() is variable and _at_once() and (how != "assign" or _asked_by_the_script()):
            self._train()

    def _set(self, layer: Any, *_: Any, **__: Any) -> None:
        for variable in layer.trainable_weights:
            self._changed("assign", variable)


def _kinds_of_variables() -> list[Any]:
    """The classes whose methods change variables. They have no public names: `tf.Variable` is above them."""
    module = sys.modules.get("tensorflow.python.ops.resource_variable_ops")
    return [getattr(module, name, None) for name in ("BaseResourceVariable", "ResourceVariable")]


def _graph_gradients() -> Any:
    """The module of the function through which all that `tf.gradients` gives goes. It has no public name."""
    return sys.modules.get("tensorflow.python.ops.gradients_util")


def _at_once() -> bool:
    """Whether what is built runs as the script comes to it: it does not where it is for a session of TensorFlow 1."""
    tf = sys.modules.get("tensorflow")
    return tf is None or tf.compat.v1.executing_eagerly_outside_functions()


def _operation(session: Any, fetch: Any) -> Any:
    """What a session is asked for; None for what it will not know."""
    with suppress(TypeError, ValueError, KeyError):
        element = session.graph.as_graph_element(fetch)
        return getattr(element, "op", element)
    return None


def _is_of_keras(variable: Any) -> bool:
    return type(variable).__module__.startswith(_KERAS)


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
    return _script(), 0


def _script() -> str:
    """The one that this Python runs."""
    return getattr(sys.modules.get("__main__"), "__file__", None) or ""


def _tell(what: str, path: str = "", line: int = 0) -> None:
    """Tell the launcher: `trains`, `gradients` or `joined`, where, and in which script. Raises OSError."""
    launcher = os.open(_launcher, os.O_WRONLY | os.O_NONBLOCK)
    try:
        os.write(launcher, json.dumps([int(_rank), what, path, line, _script()]).encode() + b"\n")
    finally:
        os.close(launcher)


def _end() -> NoReturn:
    """Tell the launcher, which speaks for all ranks, and end: an exception could be caught, and training go on."""
    path, line = _site()
    with suppress(OSError, ValueError):
        sys.stdout.flush()
    try:
        _tell("trains", path, line)
    except OSError as error:
        print(f"tfdp: {path} trains without dp.init(), and `tfdp run` cannot be told ({error})", file=sys.stderr)
    with suppress(OSError, ValueError):
        sys.stderr.flush()
    os._exit(1)


def _repeats() -> None:
    with suppress(OSError):  # the launcher is gone, and with it whoever would be told
        _tell("gradients", *_site())


_rank, _, _launcher = os.environ.get(UNJOINED, "").partition(" ")  # the script may change its environment
_hook = Hook(_end, _repeats)


def remove() -> None:
    """The process has joined the job."""
    _hook.remove()
    with suppress(OSError):
        _tell("joined")


def install(_: str) -> None:
    """Wait for the import of TensorFlow or Keras."""
    sys.meta_path.insert(0, _hook.finder)
