"""The functions by which Python and TensorFlow ask the machine, or change it."""

from __future__ import annotations

import atexit
import builtins
import functools
import gc
import inspect
import os
import resource
import shutil
import socket
import subprocess
import sys
import time
import types
import urllib.request
import uuid
from collections.abc import Callable, Iterator
from typing import Any

from ..foundation import is_of_script
from ..job import current, watch_shown
from .asking import ASKS, answer, answered, begin, end, place_of_question
from .databases import share_databases, share_hdf5
from .dates import share_dates
from .entries import Entry, Listing
from .files import shared_descriptor, shared_open
from .processes import Popen, popen, share_number
from .temporary import share_folders, share_names
from .tensorflow_files import share_tensorflow_files

_FILES = "access getxattr listdir listxattr lstat readlink stat statvfs"
_CHANGES = (
    "chmod chown lchown link makedirs mkdir mkfifo remove removedirs removexattr rename renames replace rmdir setxattr "
    "symlink truncate unlink utime"
)
_COMMANDS = "posix_spawn posix_spawnp spawnl spawnle spawnlp spawnlpe spawnv spawnve spawnvp spawnvpe system waitpid"
_MACHINE, _CHANCE = "cpu_count getloadavg sched_getaffinity times uname", "getrandom urandom"
_TREES = "chown copy copy2 copyfile copymode copystat copytree make_archive move rmtree unpack_archive"
_RUN = "call check_call check_output getoutput getstatusoutput run"
_CLOCKS = (
    "asctime clock_gettime clock_gettime_ns ctime gmtime localtime monotonic monotonic_ns perf_counter perf_counter_ns "
    "process_time process_time_ns strftime thread_time thread_time_ns time time_ns"
)
_NAMES_A_CLOCK = "timeit"  # `default_timer`
_IMMUTABLE = 1 << 8  # of a class that is not written in Python
_TO_FILE = "file://"
_ours: dict[int, tuple[Any, Any]] = {}  # by the original's `id`: the original, and what stands in its place


def share_machine() -> None:
    """From now on files, folders, commands, clocks and what is shown are rank 0's for the script.

    Not seen: what packages write by code of their own.
    """
    if not begin():
        return
    if current().topology.rank > 0:
        watch_shown()
    asked = (os, f"{_FILES} {_COMMANDS} {_MACHINE}"), (shutil, "disk_usage which"), (subprocess, _RUN)
    for changes, functions in ((False, asked), (True, ((os, _CHANGES), (shutil, _TREES)))):
        for owner, names in functions:
            for name in filter(functools.partial(hasattr, owner), names.split()):
                _put(owner, name, answered(getattr(owner, name), f"{owner.__name__}.{name}", changes=changes))
    _put(urllib.request, "urlretrieve", answered(urllib.request.urlretrieve, "urllib.request.urlretrieve"))
    for name in _CHANCE.split():
        _put(os, name, answered(getattr(os, name), f"os.{name}", by_packages=False))
    for name in _CLOCKS.split():
        _put(time, name, answered(getattr(time, name), f"time.{name}", only_by_script=True))
    _put(os, "fstat", answered(os.fstat, "os.fstat", whatever_is_said=True))
    _put(os, "open", shared_descriptor(os.open, builtins.open))
    _put(os, "scandir", _scandir(os.scandir))
    _put(os, "popen", popen)
    _put(subprocess, "Popen", Popen)
    _put(builtins, "open", shared_open(builtins.open))
    _put(resource, "getrusage", answered(resource.getrusage, "resource.getrusage", only_by_script=True))
    _put(socket, "gethostname", answered(socket.gethostname, "socket.gethostname", only_by_script=True))
    for name in ("getnode", "uuid1"):
        _put(uuid, name, answered(getattr(uuid, name), f"uuid.{name}", by_packages=False))
    share_number(_put)
    share_names()
    share_folders(_put)
    share_dates()
    share_databases(_put)
    _rebind()
    _rebind_open()


def share_gfile() -> None:
    """The same of TensorFlow's own functions; all of them as they are where AutoGraph compiles what calls them."""
    import tensorflow as tf

    from ..framework import transparent

    for owner in (tf.io.gfile, tf.compat.v1.gfile):
        for name, function in list(vars(owner).items()):
            if isinstance(function, types.FunctionType) and name not in ("join", "get_registered_schemes"):
                found = _walk(function) if name.lower() == "walk" else function
                _put(owner, name, answered(found, f"{owner.__name__}.{name}"))
    _put(tf.train, "latest_checkpoint", answered(tf.train.latest_checkpoint, "tf.train.latest_checkpoint"))
    _put(tf, "timestamp", answered(tf.timestamp, "tf.timestamp"))
    share_tensorflow_files(_put)
    if (hdf5 := sys.modules.get("h5py")) is not None:  # which Keras imports
        share_hdf5(hdf5)
    if current().topology.rank > 0:
        _put(tf, "print", _printed(tf.print))
    _rebind()
    for _, function in _ours.values():
        transparent(function)
    atexit.register(end)  # once more, to come before what ranks do together at the end


def _printed(original: Any) -> Any:
    """`tf.print`, which rank 0 alone does to a file, wherever in a graph it is."""

    @functools.wraps(original)
    def printed(*inputs: Any, **options: Any) -> Any:
        if str(options.get("output_stream", "")).startswith(_TO_FILE):
            options["output_stream"] = _TO_FILE + os.devnull
        return original(*inputs, **options)

    return printed


_API = "tensorflow._api.v2."  # where the modules are of which TensorFlow has the names


def _put(owner: Any, name: str, function: Any) -> None:
    original = getattr(owner, name)
    _ours[id(original)] = original, function
    setattr(owner, name, function)
    path = owner.__name__
    if path.startswith(_API):  # else `import tensorflow.summary` would make another one, and put it in this one's place
        sys.modules.setdefault(f"tensorflow.{path.removeprefix(_API)}", owner)


def _walk(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def walk(*arguments: Any, **options: Any) -> list[Any]:
        return list(function(*arguments, **options))

    return walk


def _scandir(original: Any) -> Any:
    def entries(*arguments: Any) -> list[Entry]:
        with original(*arguments) as found:
            return [Entry(each) for each in found]

    @functools.wraps(original)
    def scandir(*arguments: Any, **options: Any) -> Any:
        place = place_of_question("os.scandir", only_by_script=False)
        if place is None:
            return original(*arguments, **options)
        words = (arguments, options)
        return Listing(answer(place, "os.scandir", functools.partial(entries, *arguments, **options), words))

    return scandir


def _rebind() -> None:
    """Where the script, or Python's library, has taken a function by its name before: `from os import listdir`."""
    for owner in (*_modules(), *_others()):
        for name, value in list(vars(owner).items()):
            plain = value.__func__ if isinstance(value, staticmethod) else value
            _, found = _ours.get(id(plain), (None, None))
            if found is not None:
                is_method = not inspect.isclass(owner) or isinstance(value, types.FunctionType)
                setattr(owner, name, found if is_method else staticmethod(found))
            elif isinstance(plain, types.FunctionType) and plain.__defaults__:
                plain.__defaults__ = tuple(_ours.get(id(given), (None, given))[1] for given in plain.__defaults__)


def _rebind_open() -> None:
    """Where packages keep it: under a name, or in a table, as NumPy does for `savetxt`. Who asks is seen when it is
    called."""
    original, found = next(each for each in _ours.values() if each[1] is builtins.open)
    for holder in gc.get_referrers(original):
        names = [name for name, value in holder.items() if value is original] if isinstance(holder, dict) else []
        for name in names:
            if name != "__wrapped__":  # of the one that has taken its place
                holder[name] = found


def _modules() -> Iterator[Any]:
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(module, types.ModuleType) and isinstance(path, str) and is_of_script(path):
            yield module


def _others() -> Iterator[Any]:
    """Modules of Python that have done so, `random` for `secrets`, and classes in them, as of `glob` or `pathlib`."""
    for name, module in list(sys.modules.items()):
        if name.partition(".")[0] in ASKS or name == _NAMES_A_CLOCK:
            yield module
            yield from (each for each in list(vars(module).values()) if inspect.isclass(each) and _is_pythons(each))


def _is_pythons(kind: type[Any]) -> bool:
    return not kind.__flags__ & _IMMUTABLE and kind.__module__.partition(".")[0] in ASKS
