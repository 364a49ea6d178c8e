"""What of the ranks' output is on the screen, and what is in the folder of `--log-dir`: nothing of theirs is lost."""

import os
import subprocess
import sys

import pytest

STARTUP = (
    b"2026-11-24 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN custom operations are on. You may see\n"
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    b"I0000 00:00:1795567134.342890   19504 cpu_feature_guard.cc:227] This TensorFlow binary is optimized to use\n"
    b"To enable the following instructions: AVX2 AVX_VNNI FMA, in other operations, rebuild TensorFlow with the "
    b"appropriate compiler flags.\n"
    b"E0000 00:00:1795567134.251332   19504 cuda_fft.cc:467] Unable to register cuFFT factory: Attempting to\n"
)
OWN_OUT = (
    b"I0000 00:00:1795567134.342890   19504 cpu_feature_guard.cc:227] on stdout it is the script's\n"
    b"WARNING: All log messages before absl::InitializeLog() is called are written to STDERR\n"
    b"\n   indented\n\xff\xfe no text\nCRLF\r\n" + b"long " * 20_000 + b"\nTraceback (most recent call last):\n"
    b"without a line end"
)
OWN_ERR = (
    b"2026-11-24 10:00:00.123456: epoch 1\n"
    b"2026-11-24 10:00:00.123456: I my/trainer.cc:12] mine\n"
    b"2026-11-24 10:00:00.123456: W tensorflow/core/framework/cpu_allocator_impl.cc:83] Allocation exceeds 10%\n"
    b"I0000 00:00:1795567134.342890   19504 my_kernels.cc:12] mine\n"
    b"I0000 of 1000\nE0000\nWARNING: my own\nTo enable the following instructions: read the manual\n"
    b'\t\n  File "data.csv", line 3\n'
    b'Traceback (most recent call last):\n  File "a.py", line 1, in f\nValueError: caught\n'
    b"went on\n\n"
    b"F0000 00:00:1795567134.342890   19504 port.cc:12] Check failed\n"
    b"half a line 2026-11-24 10:00:00.123456: I tensorflow/core/util/port.cc:153] oneDNN\n"
    b"Traceback (most recent call last):\n"
    b"without a line end"
)
WRITES = f"""
import os
for _ in range(2):
    os.write(2, {STARTUP!r})
parts = {OWN_ERR!r}
for at in range(0, len(parts), 50):  # lines arrive in pieces
    os.write(2, parts[at : at + 50])
whole = {OWN_OUT!r}
while whole:
    whole = whole[os.write(1, whole) :]
"""


def run(tmp_path, text, *options, np=1, **environ):
    path = tmp_path / "script.py"
    path.write_text(text)
    base = {name: value for name, value in os.environ.items() if not name.startswith(("TFDP_", "TF_CPP_MIN"))}
    return subprocess.run(
        [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(np), *options, str(path)],
        env={**base, **environ},
        capture_output=True,
        timeout=60,
        check=False,
    )


def marked(data, rank=0):
    text = data.replace(b"\r\n", b"\n").removesuffix(b"\n")
    return b"".join(b"[%d] %b\n" % (rank, line) for line in text.split(b"\n"))


def test_of_the_scripts_own_lines_every_byte_comes_out(tmp_path):
    logs = tmp_path / "some" / "logs"
    done = run(tmp_path, WRITES, "--log-dir", str(logs))
    assert done.returncode == 0
    assert done.stdout == marked(OWN_OUT)
    assert done.stderr == marked(OWN_ERR)
    assert sorted(os.listdir(logs)) == ["rank-0.stderr.log", "rank-0.stdout.log"]
    assert (logs / "rank-0.stdout.log").read_bytes() == OWN_OUT
    assert (logs / "rank-0.stderr.log").read_bytes() == 2 * STARTUP + OWN_ERR

    again = run(tmp_path, WRITES, "--log-dir", str(logs))
    assert (again.returncode, again.stdout) == (2, b"")
    assert b"rank-0.stderr.log is there already, from an earlier run: give another folder" in again.stderr
    no_folder = run(tmp_path, WRITES, "--log-dir", str(tmp_path / "script.py"))
    assert no_folder.returncode == 2
    assert b"script.py: File exists" in no_folder.stderr


@pytest.mark.parametrize(
    ("options", "level", "shown"),
    [
        (["--tf-log", "all"], "2", True),
        ([], "0", True),
        (["--tf-log", "quiet"], "0", False),
        ([], "1", False),
    ],
)
def test_start_up_lines_are_shown_to_who_asks_for_them(tmp_path, options, level, shown):
    done = run(tmp_path, WRITES, *options, TF_CPP_MIN_LOG_LEVEL=level)
    assert done.stderr == marked(2 * STARTUP * shown + OWN_ERR)


ALIKE = """
import atexit, os, signal, sys, time
print("own", file=sys.stderr)
def inner():
    return os.path.getsize("/no/such/file")
if os.environ["TFDP_RANK"] == "2":
    ended = [os.open(f"{os.environ['PIPES']}/{rank}", os.O_RDONLY) for rank in (0, 1)]
    for pipe in ended:
        os.read(pipe, 1)  # until the rank that has it open is gone
    os.kill(os.getpid(), signal.SIGTERM)
    signal.pause()
atexit.register(lambda: print("at exit", file=sys.stderr))
held = os.open(f"{os.environ['PIPES']}/{os.environ['TFDP_RANK']}", os.O_WRONLY)  # once rank 2 is there
inner()
"""


def pipes(tmp_path, number):
    """A folder of pipes: opening one waits for a reader and a writer, and its end comes when the writer ends.

    So a rank is stopped for another's failure only when it has said all that it had to, on however slow a machine.
    """
    folder = tmp_path / "pipes"
    folder.mkdir()
    for each in range(number):
        os.mkfifo(folder / str(each))
    return str(folder)


def test_one_traceback_for_all_with_libraries_folded_and_own_lines_kept(tmp_path):
    patient = {"PIPES": pipes(tmp_path, 2), "TFDP_GRACE_SECONDS": "100"}
    done = run(tmp_path, ALIKE, "--log-dir", str(tmp_path / "logs"), np=3, **patient)
    lines = done.stderr.decode().splitlines()
    assert sorted(line[4:] for line in lines if line.endswith((" own", "at exit"))) == ["at exit"] * 2 + ["own"] * 3
    assert sum("Traceback" in line for line in lines) == 1
    assert sum(line.endswith("  … 1 frame in python …") for line in lines) == 1
    assert lines[-2].startswith("tfdp: rank ")
    assert lines[-2].endswith(("rank 0 ended with the same traceback", "rank 1 ended with the same traceback"))
    assert lines[-1] == (
        "tfdp: FileNotFoundError: [Errno 2] No such file or directory: '/no/such/file' "
        f"(at {tmp_path / 'script.py'}:5, in inner)"
    )
    assert b"genericpath" in (tmp_path / "logs" / "rank-1.stderr.log").read_bytes()

    full = run(tmp_path, ALIKE, "--traceback", "full", np=3, **patient).stderr.decode()
    assert full.count("genericpath") == 2
    assert full.splitlines()[-1] == lines[-1]


KILLS = """
import os, signal, sys, time, ctypes
if os.environ["TFDP_RANK"] == "0":
    print("last words", file=sys.stderr)
    {}
time.sleep(1000)
"""


def test_what_a_signal_hints_at(tmp_path):
    def ends(ending):
        return run(tmp_path, KILLS.format(ending), np=2, TFDP_GRACE_SECONDS="0.2").stderr.decode().splitlines()

    said = ends("os.kill(os.getpid(), signal.SIGKILL)")
    assert said[0] == "[0] last words"
    assert said[-2].startswith("tfdp: rank 0 failed first, with signal SIGKILL after ")
    assert "out-of-memory killer" in said[-1]
    said = ends("ctypes.string_at(0)")
    assert "tfdp: rank 0 failed first, with signal SIGSEGV after " in said[-2]
    assert said[-1] == (
        "tfdp: native code crashed (TensorFlow, a driver, or an extension module); "
        f"Python was at {tmp_path / 'script.py'}:5"
    )
    assert len(said) < 12
    said = ends("sys.exit('no data: give --data')")
    assert said[-3] == "[0] no data: give --data"
    assert said[-2].startswith("tfdp: rank 0 failed first, with exit status 1 after ")
    assert said[-1] == "tfdp: the last line of its stderr: no data: give --data"


HANDLED = """
import os, subprocess, sys, time, traceback
try:
    int("handled")
except ValueError:
    traceback.print_exc()
print("going on", file=sys.stderr)
{}
"""
CHAINED = """
try:
    int("x")
except ValueError as error:
    raise RuntimeError("first\\n\\nTraceback (most recent call last):\\n  second") from error
"""


def test_only_what_a_rank_has_ended_by_is_its_cause_and_goes_with_a_like_one(tmp_path):
    folder = pipes(tmp_path, 1)

    def ends(ending, grace="100"):
        done = run(tmp_path, HANDLED.format(ending), np=2, PIPES=folder, TFDP_GRACE_SECONDS=grace)
        return done.stderr.decode().splitlines()

    said = ends("sys.exit('wrong rate: -1')")
    assert sum("ValueError: invalid literal" in line for line in said) == 2
    assert said[-1] == "tfdp: the last line of its stderr: wrong rate: -1"
    pipe = "open(os.environ['PIPES'] + '/0'"  # that of rank 0 opens once rank 1 has come as far
    first = f"if os.environ['TFDP_RANK'] == '0':\n    {pipe})\n    os._exit(7)\n"
    said = ends(f"{first}{pipe}, 'w')\ntime.sleep(1000)", grace="0.2")
    assert sum("ValueError: invalid literal" in line for line in said) == 2
    assert said[-1].startswith("tfdp: rank 0 failed first, with exit status 7 after ")
    assert "same traceback" not in said[-1]
    said = ends("subprocess.run([sys.executable, '-c', 'None.child'])\nsys.exit(5)")
    assert sum("has no attribute 'child'" in line for line in said) == 2
    assert said[-1].startswith("tfdp: rank ")
    assert "same traceback" not in said[-1]
    said = ends(CHAINED)
    headers = sum(line.endswith("Traceback (most recent call last):") for line in said)
    assert headers == 5  # handled twice; two of one chain; one in its message
    assert sum(line.endswith("  second") for line in said) == 1
    assert "ended with the same traceback" in said[-2]
    assert said[-1].startswith("tfdp: RuntimeError: first (at ")


ECHOES = """
import atexit, logging, sys
import tfdp.runtime as dp

dp.init(shard_calls=True)
print("once")
print("a line of stderr", file=sys.stderr)
logging.warning("logged")
sys.stderr.write("Traceback (most recent call last):\\n  caught, and printed\\n")
print("tfdp: of rank", dp.rank(), file=sys.stderr)
dp.barrier()  # one that fails ends the job
if len(sys.argv) > 1 and dp.rank() == int(sys.argv[1]):
    raise ValueError("of one rank")
"""


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("failing", [None, 0, 1])
def test_what_every_worker_writes_is_shown_once(tmp_path, failing):
    text = (
        ECHOES if failing is None else ECHOES.replace("len(sys.argv) > 1 and", "").replace("sys.argv[1]", str(failing))
    )
    logs = tmp_path / "logs"
    done = run(tmp_path, text, "--log-dir", str(logs), np=2)
    assert done.returncode == (failing is not None)
    assert done.stdout == b"[0] once\n"
    for line in (b"a line of stderr", b"WARNING:root:logged", b"  caught, and printed"):
        assert done.stderr.count(line) == 1, done.stderr
        assert b"[0] " + line in done.stderr
    for rank in (0, 1):
        assert b"[%d] tfdp: of rank %d\n" % (rank, rank) in done.stderr
        assert (logs / f"rank-{rank}.stdout.log").read_bytes() == b"once\n"
        assert b"caught, and printed" in (logs / f"rank-{rank}.stderr.log").read_bytes()
    assert done.stderr.count(b"ValueError: of one rank") == 2 * (failing is not None)  # with the last line


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("option", ["-v", "--traceback=full"])
def test_all_that_every_worker_writes_is_shown_where_it_is_asked_for(tmp_path, option):
    done = run(tmp_path, ECHOES, option, np=2)
    assert sorted(done.stdout.splitlines()) == [b"[0] once", b"[1] once"]
    assert b"[1] a line of stderr" in done.stderr


def test_what_one_process_of_a_sharded_input_writes_is_shown(tmp_path):
    done = run(tmp_path, ECHOES.replace("shard_calls=True", ""), np=2)
    assert sorted(done.stdout.splitlines()) == [b"[0] once", b"[1] once"]
