"""A fork becomes the Python process that was asked for: what exec and Python's own start would do."""

import atexit
import builtins
import faulthandler
import gc
import inspect
import io
import os
import runpy
import signal
import subprocess
import sys
import tempfile
import threading
import traceback
import types
from dataclasses import dataclass
from typing import Any

# Read by each process when it needs them, or by Python itself, which has started: not while TensorFlow is imported.
_OWN = {"OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "TF_NUM_INTEROP_THREADS", "TF_NUM_INTRAOP_THREADS"}
_OWN |= {"PYTEST_CURRENT_TEST", "PYTHONFAULTHANDLER", "PYTHONHASHSEED", "PYTHONUNBUFFERED", "TMPDIR"}
_HOOKS = os.path.join("runtime", "launch", "at_start")  # tfdp itself is not to be imported here
_POPEN = subprocess.Popen
# The starter's streams: what it has yet to write is for it to write.
_KEPT: list[Any] = []
_SIGNATURE = inspect.signature(subprocess.Popen._execute_child)
# What a fork can do for its caller; other arguments of Popen must be at these values.
_PLAIN = {"executable": None, "close_fds": True, "startupinfo": None, "creationflags": 0, "shell": False}
_PLAIN |= {"gid": None, "gids": None, "uid": None, "umask": -1, "process_group": -1}


def at_import(environ: dict[str, str]) -> dict[str, str]:
    """The variables that may decide about what importing TensorFlow does: not what a launcher gives its ranks."""
    folders = [each for each in environ.get("PYTHONPATH", "").split(os.pathsep) if each and not each.endswith(_HOOKS)]
    found = {**environ, "PYTHONPATH": os.pathsep.join(folders)}
    return {name: value for name, value in found.items() if name not in _OWN and not name.startswith("TFDP_")}


@dataclass(frozen=True)
class Program:
    """A command line of this Python. way: `-m`, `-c`, or empty for a script. what: the module, code or file."""

    way: str
    what: str
    args: list[str]
    unbuffered: bool
    environ: dict[str, str]
    cwd: str
    new_session: bool

    @property
    def starts_others(self) -> bool:
        """Whether it is a launcher: what is started so. All else may run TensorFlow, and is not to be forked then."""
        return self.way == "-m"

    def run(self) -> None:
        """Run it as `__main__`."""
        main = types.ModuleType("__main__")
        main.__dict__["__builtins__"] = builtins
        sys.modules["__main__"] = main
        sys.argv = [self.what if not self.way else self.way, *self.args]
        if self.way == "-m":
            sys.path[0] = self.cwd
            runpy.run_module(self.what, run_name="__main__", alter_sys=True)
        elif self.way == "-c":
            sys.path[0] = ""
            exec(compile(self.what, "<string>", "exec", dont_inherit=True), main.__dict__)
        else:
            sys.path[0] = os.path.dirname(os.path.realpath(self.what))
            main.__dict__.update({"__file__": os.path.abspath(self.what), "__cached__": None})
            with open(self.what, "rb") as file:
                code = compile(file.read(), self.what, "exec", dont_inherit=True)
            exec(code, main.__dict__)


def asked(call: dict[str, Any]) -> Program | None:
    """The program that these arguments of `Popen._execute_child` ask for, None where exec has to start it."""
    command, environ = call["args"], dict(os.environ if call["env"] is None else call["env"])
    plain = all(call.get(name, value) == value for name, value in _PLAIN.items())
    if not plain or not isinstance(command, list) or command[0] != sys.executable:
        return None
    words = [os.fspath(word) for word in command[1:]]
    unbuffered = "-u" in words[:1]
    words = words[unbuffered:]
    way = words.pop(0) if words[:1] in (["-m"], ["-c"]) else ""
    if not words or (not way and words[0].startswith("-")):
        return None
    cwd = os.getcwd() if call["cwd"] is None else os.fspath(call["cwd"])
    unbuffered = unbuffered or bool(environ.get("PYTHONUNBUFFERED"))
    return Program(way, words[0], words[1:], unbuffered, environ, cwd, bool(call["start_new_session"]))


def arguments(popen: subprocess.Popen, args: tuple[Any, ...]) -> dict[str, Any]:
    """Arguments of `Popen._execute_child` by name: it has others in each version of Python."""
    return dict(_SIGNATURE.bind(popen, *args).arguments)


def streams(call: dict[str, Any]) -> list[int]:
    """The file descriptors that the program is to have as 0, 1 and 2."""
    wanted = (call["p2cread"], call["c2pwrite"], call["errwrite"])
    return [number if fd == -1 else fd for number, fd in enumerate(wanted)]


def started(popen: subprocess.Popen, call: dict[str, Any], pid: int) -> None:
    """What remains to be done in the starter."""
    popen.pid, popen._child_created = pid, True
    names = ("p2cread", "p2cwrite", "c2pread", "c2pwrite", "errread", "errwrite")
    popen._close_pipe_fds(*(call[name] for name in names))


@dataclass(frozen=True)
class Origin:
    """The state that every fork starts from: of a process that has imported TensorFlow and nothing else.

    environ: the variables that it was given. started, imported: those that Python's start and the import have set.
    """

    environ: dict[str, str]
    started: dict[str, str]
    imported: dict[str, str]
    modules: frozenset[str]

    def forks(self, program: Program) -> bool:
        """Whether a fork of this process would be like a process of its own."""
        return self._decides(program.environ) == self._decides(self.environ) and len(os.listdir("/proc/self/task")) == 1

    def _decides(self, environ: dict[str, str]) -> dict[str, str]:
        """Without what is set in either case, and a launcher has passed on."""
        return dict(at_import(environ).items() - {**self.started, **self.imported}.items())


def forking_in(origin: Origin) -> type[subprocess.Popen]:
    """`subprocess.Popen` for a forked program that starts others, as a launcher does its ranks."""

    class Popen(_POPEN):
        def _execute_child(self, *args: Any) -> None:
            call = arguments(self, args)
            program = asked(call)
            if program is None or not origin.forks(program):
                super()._execute_child(*args)
                return
            pid = os.fork()
            if pid == 0:
                become(program, origin, streams(call), call["pass_fds"], call["preexec_fn"])
            started(self, call, pid)

    return Popen


def become(program: Program, origin: Origin, fds: list[int], kept: Any = (), prepare: Any = None) -> None:
    """Run the program in this process, a fork, and end it: the frames of who forked must never go on here."""
    status = 1
    try:
        _settle(program, origin, fds, kept, prepare)
        status = _status(program)
        threading._shutdown()
        atexit._run_exitfuncs()
        sys.stdout.flush()
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(status)


def _settle(program: Program, origin: Origin, fds: list[int], kept: Any, prepare: Any) -> None:
    # What the starter has is not ours to finalize: its file descriptors may soon be others'.
    gc.freeze()
    for number, fd in enumerate([os.dup(fd) for fd in fds]):
        os.dup2(fd, number)
    os.chdir(program.cwd)
    signal.set_wakeup_fd(-1)
    for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    if signal.getsignal(signal.SIGINT) == signal.SIG_DFL:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if program.new_session and os.getsid(0) != os.getpid():
        os.setsid()
    if prepare is not None:
        prepare()
    for fd in map(int, os.listdir("/proc/self/fd")):
        if fd > 2 and fd not in kept:
            try:
                os.close(fd)
            except OSError:  # that of the listing itself
                continue
    for fd in kept:
        os.set_inheritable(fd, True)
    for name in set(os.environ) - set(program.environ):
        del os.environ[name]
    os.environ.update(program.environ)
    os.environ.update(origin.started)
    if not program.starts_others:
        os.environ.update(origin.imported)
    _refresh(program, origin)


def _refresh(program: Program, origin: Origin) -> None:
    """What Python's start and a first import would have made anew."""
    for name in set(sys.modules) - origin.modules:
        del sys.modules[name]
    tempfile.tempdir = None
    if os.environ.get("PYTHONFAULTHANDLER"):
        faulthandler.enable(2)
    sys.modules["numpy"].random.seed()  # the other generators that have a state see to it themselves, or have none yet
    _KEPT.extend((sys.stdin, sys.stdout, sys.stderr))
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        whole = program.unbuffered and number > 0
        file = open(number, "wb" if number else "rb", 0 if whole else -1, closefd=False)  # noqa: SIM115 - kept
        known = getattr(sys, f"__{name}__")
        stream = io.TextIOWrapper(file, known.encoding, known.errors, None, number == 2, whole)
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
    subprocess.Popen = forking_in(origin) if program.starts_others else _POPEN


def _status(program: Program) -> int:
    """Run it; its exit status, with its last words said."""
    try:
        program.run()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return (end.code or 0) & 0xFF
        print(end.code, file=sys.stderr)
        return 1
    except BaseException as error:
        lines = error.__traceback__
        while lines is not None and lines.tb_frame.f_code.co_filename == __file__:
            lines = lines.tb_next
        error.with_traceback(lines)
        sys.excepthook(type(error), error, lines)
        return 1
    return 0
