"""What the command is as a process: its streams, its colours, its signals, what it imports."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "tfdp.migrate"]


@pytest.mark.parametrize(
    "args", [["--help"], ["--version"], ["migrate", "--help"], ["run", "--help"], ["verify", "--help"], ["migrate"]]
)
def test_help_imports_neither_tensorflow_nor_libcst(args: list[str]) -> None:
    probe = """
import sys
from tfdp.migrate.cli import main
try:
    main(sys.argv[1:], prog_name="tfdp")
except SystemExit:
    heavy = {"tensorflow", "keras", "libcst", "rich", "numpy"} & sys.modules.keys()
    sys.exit(f"imported: {heavy}" if heavy else 0)
"""
    done = subprocess.run([sys.executable, "-c", probe, *args], capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()


def test_no_command_but_run_needs_tensorflow(tmp_path: Path, script: bytes) -> None:
    (tmp_path / "train.py").write_bytes(script)
    probe = """
import sys
sys.modules["tensorflow"] = sys.modules["keras"] = sys.modules["numpy"] = None
from tfdp.migrate.cli import main
main(sys.argv[1:], prog_name="tfdp")
"""
    for args in (["rules"], ["explain", "TFDP010"], ["facts", "train.py"], ["migrate", "train.py"]):
        done = subprocess.run([sys.executable, "-c", probe, *args], cwd=tmp_path, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr.decode()


def test_console_script_is_the_same_command() -> None:
    script = Path(sys.executable).with_name("tfdp")
    if not script.exists():
        pytest.skip("tfdp is not installed as a console script")
    done = subprocess.run([str(script), "--version"], capture_output=True, check=True)
    assert done.stdout == subprocess.run([*COMMAND, "--version"], capture_output=True, check=True).stdout


def on_a_terminal(args: list[str], folder: Path, env: dict[str, str]) -> bytes:
    """What a command prints when stdout and stderr are one terminal."""
    ours, theirs = pty.openpty()
    try:
        process = subprocess.Popen(
            [*COMMAND, *args], cwd=folder, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs, env=env
        )
    finally:
        os.close(theirs)
    printed = b""
    try:
        while block := os.read(ours, 65536):
            printed += block
    except OSError:  # EIO: Linux's way to say that the other side is closed
        pass
    finally:
        os.close(ours)
        process.wait()
    return printed


@pytest.mark.long(keeps=2)
@pytest.mark.parametrize(
    ("variables", "coloured"),
    [({}, True), ({"NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False), ({"NO_COLOR": "1", "FORCE_COLOR": "1"}, False)],
)
def test_colour_on_a_terminal(tmp_path: Path, script: bytes, variables: dict[str, str], coloured: bool) -> None:
    (tmp_path / "train.py").write_bytes(script)
    env = {"PATH": os.environ["PATH"], "TERM": "xterm", **variables}
    for args in (["migrate", "--diff", "train.py"], ["explain", "TFDP010"]):
        assert (b"\x1b[" in on_a_terminal(args, tmp_path, env)) == coloured


def test_colour_in_a_pipe_only_when_forced(tfdp, tmp_path: Path, script: bytes) -> None:
    (tmp_path / "train.py").write_bytes(script)
    plain = tfdp("migrate", "--diff", "train.py")
    forced = tfdp("migrate", "--diff", "train.py", env={"FORCE_COLOR": "1"})
    assert b"\x1b[" not in plain.out
    assert "\x1b[" not in plain.err
    assert b"\x1b[32m+" in forced.out
    assert "\x1b[1m" in forced.err


@pytest.mark.long(keeps=2)
@pytest.mark.parametrize(
    "args", [["rules"], ["migrate", "--diff", "train.py"], ["facts", "train.py"], ["migrate", "-o-", "train.py"]]
)
def test_a_reader_that_has_gone_is_no_error_message(tfdp, tmp_path: Path, script: bytes, args: list[str]) -> None:
    (tmp_path / "train.py").write_bytes(script)
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = tfdp(*args, stdout=writing)
    finally:
        os.close(writing)
    assert done.code == 128 + signal.SIGPIPE
    assert done.err == ""


@pytest.mark.long(keeps=2)
@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    ("args", "said"),
    [
        (["rules"], "tfdp: error: No space left on device\n"),
        (["migrate", "--diff", "train.py"], "train.py: error: No space left on device\n1 file failed\n"),
        (["migrate", "-o-", "train.py"], "train.py: error: No space left on device\n1 file failed\n"),
    ],
)
def test_a_full_disk_is_an_error(tfdp, tmp_path: Path, script: bytes, args: list[str], said: str) -> None:
    (tmp_path / "train.py").write_bytes(script)
    with open("/dev/full", "wb") as full:
        done = tfdp(*args, stdout=full)
    assert (done.code, done.err) == (2, said)


def test_a_message_nobody_can_be_given_ends_in_an_error(tfdp, tmp_path: Path, script: bytes) -> None:
    (tmp_path / "train.py").write_bytes(script)
    with open(os.devnull, "rb") as unwritable:
        assert tfdp("migrate", "--check", "train.py", stderr=unwritable).code == 2


def test_closed_streams(tmp_path: Path, script: bytes) -> None:
    (tmp_path / "train.py").write_bytes(script)
    shell = f'exec "{sys.executable}" -m tfdp.migrate "$@"'
    for args, code in ((["rules"], 2), (["migrate", "--diff", "train.py"], 2), (["migrate", "train.py"], 0)):
        command = ["sh", "-c", shell + " >&-", "sh", *args]
        done = subprocess.run(command, cwd=tmp_path, stderr=subprocess.PIPE, check=False)
        assert done.returncode == code, done.stderr.decode()
    done = subprocess.run(["sh", "-c", shell + " <&-", "sh", "migrate", "-"], stderr=subprocess.PIPE, check=False)
    assert done.returncode == 2
    assert b"<stdin>: error: standard input is closed" in done.stderr


def test_ctrl_c_ends_the_process_by_the_signal(tmp_path: Path, script: bytes) -> None:
    (tmp_path / "train.py").write_bytes(script)
    # The signal is raised where the command waits for its input. Sent from here it could come between CPython's last
    # look at its signals and the system call, and the read would go on waiting: nothing that a program can prevent.
    # A background job is started with SIGINT ignored, and hands that down.
    start = """
import runpy, signal, sys, types
def wait_for_input():
    signal.raise_signal(signal.SIGINT)
    return b"# the read was not interrupted"
signal.signal(signal.SIGINT, signal.default_int_handler)
sys.stdin = types.SimpleNamespace(buffer=types.SimpleNamespace(read=wait_for_input))
runpy.run_module("tfdp.migrate")
"""
    done = subprocess.run(
        [sys.executable, "-c", start, "migrate", "train.py", "-"],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    assert done.returncode == -signal.SIGINT
    assert done.stdout == b""
    assert b"train.py: migrated" in done.stderr
    assert done.stderr.splitlines()[-1] == b"interrupted; each file is as it was, or migrated as a whole"


def test_a_poor_locale_does_not_break_the_output(tfdp, tmp_path: Path) -> None:
    env = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0", "PYTHONIOENCODING": "ascii"}
    assert tfdp("explain", "TFDP010", env=env).code == 0
    assert tfdp("explain", "é", env=env).code == 2
    (tmp_path / "é.py").write_bytes(b"import tensorflow\nx = (\n")
    assert tfdp("migrate", ".", env=env).code == 0
    assert tfdp("migrate", "é.py", env=env).code == 2
