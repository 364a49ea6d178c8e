"""The launcher with small scripts that import neither TensorFlow nor NumPy."""

import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import time

import pytest

PATIENCE = 60.0


class Running:
    """A launcher that is running, with the lines it writes."""

    def __init__(self, process):
        self.process = process

    def lines(self, count):
        """The next `count` lines of its stdout."""
        found, rest = [], b""
        while len(found) < count:
            ready, _, _ = select.select([self.process.stdout], [], [], PATIENCE)
            assert ready, f"after {found} and {rest!r} nothing comes any more"
            data = os.read(self.process.stdout.fileno(), 1)
            assert data, f"the output ends after {found} and {rest!r}"
            rest += data
            if data == b"\n":
                found.append(rest.decode().rstrip("\n"))
                rest = b""
        return found

    def end(self):
        """Exit status, the rest of stdout, and stderr."""
        out, err = self.process.communicate(timeout=PATIENCE)
        return self.process.returncode, out.decode(), err.decode()


@pytest.fixture
def start(tmp_path):
    """Start the launcher on a script's text."""
    started = []

    def run(np, script, **environ):
        path = tmp_path / "script.py"
        path.write_text(script)
        base = {name: value for name, value in os.environ.items() if not name.startswith("TFDP_")}
        process = subprocess.Popen(
            [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(np), str(path)],
            env={**base, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        started.append(process)
        return Running(process)

    yield run
    for process in started:
        process.kill()
        process.wait()
        process.stdout.close()
        process.stderr.close()


def cli(*args, **kwargs):
    return subprocess.run(
        [sys.executable, "-m", "tfdp.runtime.launch", *args],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
        **kwargs,
    )


def state(pid):
    """As `ps` shows it, or None when there is no such process."""
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):
        return None


def until(condition):
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        os.sched_yield()


def wait_for_end(pids):
    """Until each has ended; a zombie has, and somebody else has yet to collect it."""
    until(lambda: all(state(pid) in (None, "Z") for pid in pids))


def test_each_line_has_its_rank_and_none_is_torn(launch):
    script = """
import os, sys
rank = os.environ["TFDP_RANK"]
for line in range(2000):
    (sys.stdout, sys.stderr)[line % 2].write(f"line {line} of {rank} " + rank * 80 + "\\n")
sys.stdout.write("the end")
"""
    done = launch(3, script)
    assert done.returncode == 0
    for text, parity in ((done.stdout, 0), (done.stderr, 1)):
        lines = [re.fullmatch(r"\[(\d)\] line (\d+) of \1 \1{80}", line) for line in text.splitlines()]
        found = [(int(line[1]), int(line[2])) for line in lines if line]
        for rank in range(3):
            assert [number for each, number in found if each == rank] == list(range(parity, 2000, 2))
    assert sorted(line for line in done.stdout.splitlines() if "line" not in line) == [
        f"[{r}] the end" for r in range(3)
    ]


def test_output_comes_while_the_script_runs_also_progress_bars(start):
    running = start(
        1,
        r"""
import os, sys, time
sys.stdout.write("\r 1%\r 2%\rdone\r\nnext\n\nlast\r 1%")  # one write, which is read as one
time.sleep(1000)
""",
    )
    # Redrawn states come once a second at most, the last one of each line always, and also where nothing follows.
    assert running.lines(4) == ["[0] done", "[0] next", "[0] ", "[0]  1%"]


def test_a_slow_reader_gets_everything_also_after_the_ranks_have_ended(start, tmp_path):
    marker = tmp_path / "pid"
    # More than one pipe holds and less than two: the rank can end while the launcher has not passed on all of it.
    script = f"""
import os, pathlib
for line in range(100):
    print(line, "x" * 999)
pathlib.Path({str(marker)!r}).write_text(str(os.getpid()) + "\\n")
"""
    running = start(1, script)
    until(lambda: marker.exists() and marker.read_text().endswith("\n"))
    wait_for_end([int(marker.read_text())])
    status, out, _ = running.end()
    assert (status, out.splitlines()) == (0, [f"[0] {line} " + "x" * 999 for line in range(100)])


def test_output_of_a_process_that_left_its_group_is_not_waited_for(start):
    script = """
import subprocess, sys
away = subprocess.Popen(["sleep", "1000"], start_new_session=True)
print(away.pid)
"""
    running = start(1, script)
    status, out, _ = running.end()
    os.kill(int(out.split()[1]), signal.SIGKILL)
    assert status == 0


def test_bytes_that_are_no_text_pass_unchanged(tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import os; os.write(1, bytes(range(128, 256)) + b'\\n')")
    done = subprocess.run(
        [sys.executable, "-m", "tfdp.runtime.launch", "-np", "1", path], capture_output=True, check=True
    )
    assert done.stdout == b"[0] " + bytes(range(128, 256)) + b"\n"


def test_arguments_reach_the_script_as_they_are(launch):
    done = launch(1, "import sys; print(sys.argv[1:])", "--np", "3", "-np", "a b", "--", "")
    assert done.stdout == "[0] ['--np', '3', '-np', 'a b', '--', '']\n"


def test_standard_input_is_empty(launch):
    assert launch(2, "import sys; print(repr(sys.stdin.read()))").stdout.count("''") == 2


def test_commands_and_modules_and_files_without_an_ending_run(tmp_path):
    assert cli("-np", "2", "--", "sh", "-c", "echo $TFDP_RANK of $TFDP_SIZE").stdout.split("\n")[:-1] in (
        ["[0] 0 of 2", "[1] 1 of 2"],
        ["[1] 1 of 2", "[0] 0 of 2"],
    )
    assert cli("-np", "1", "--", "-m", "this").stdout.startswith("[0] The Zen of Python")
    (tmp_path / "train").write_text("print('ran')")
    assert cli("-np", "1", "train", cwd=tmp_path).stdout == "[0] ran\n"


@pytest.mark.parametrize(
    ("args", "status", "message"),
    [
        (["-np", "2"], 2, "tfdp: nothing to run: give a script, as in `tfdp run -np 2 train.py`"),
        (["-np", "0", "x.py"], 2, "tfdp: -np is 0: at least one process is needed"),
        (["-np", "2", "absent.py"], 2, "tfdp: absent.py: no such script in "),
        (["-np", "2", "no-such-command-at-all"], 127, "tfdp: cannot run no-such-command-at-all: No such file"),
        (["-np", "2", "/"], 126, "tfdp: cannot run /: Permission denied"),
        (["-np", "x", "a.py"], 2, "invalid int value"),
    ],
)
def test_what_cannot_be_run(args, status, message):
    done = cli(*args)
    assert done.returncode == status
    assert message in done.stderr
    assert done.stdout == ""


def test_numbers_that_are_none(launch):
    for name in ("TFDP_SHM_BYTES", "TFDP_STORE_BYTES", "TFDP_GRACE_SECONDS"):
        done = launch(1, "", **{name: "much"})
        assert (done.returncode, done.stderr) == (2, f"tfdp: {name} is 'much': a number greater than 0 is needed\n")
    done = launch(2, "", TFDP_SHM_BYTES="100")
    assert done.returncode == 2
    assert "TFDP_SHM_BYTES is 100: 2 ranks need at least 4096 bytes" in done.stderr


def test_the_first_failure_is_the_cause_and_stops_the_others(launch, tmp_path):
    script = """
import os, sys, time
if os.environ["TFDP_RANK"] == "1":
    print("before")
    raise ValueError("no such thing")
time.sleep(1000)
"""
    done = launch(3, script, TFDP_GRACE_SECONDS="0.2")
    assert done.returncode == 1
    *shown, summary, cause = done.stderr.splitlines()
    assert [line for line in shown if "^^^" not in line] == [
        "[1] Traceback (most recent call last):",
        f'[1]   File "{tmp_path}/script.py", line 5, in <module>',
        '[1]     raise ValueError("no such thing")',
        "[1] ValueError: no such thing",
    ]
    assert re.fullmatch(r"tfdp: rank 1 failed first, with exit status 1 after \d+\.\d s", summary)
    assert cause == f"tfdp: ValueError: no such thing (at {tmp_path}/script.py:5)"


@pytest.mark.parametrize(
    ("ending", "status", "said"),
    [
        ("sys.exit(7)", 7, "exit status 7"),
        ("os.kill(os.getpid(), 9)", 137, "signal SIGKILL"),
        ("os.abort()", 134, "signal SIGABRT"),
        ("os._exit(255)", 255, "exit status 255"),
    ],
)
def test_the_exit_status_is_that_of_the_first_failing_rank(launch, ending, status, said):
    done = launch(
        2,
        f"import os, sys, time\nif os.environ['TFDP_RANK'] == '0': {ending}\ntime.sleep(1000)",
        TFDP_GRACE_SECONDS="0.2",
    )
    assert done.returncode == status
    assert f"tfdp: rank 0 failed first, with {said}" in done.stderr


def test_ranks_may_end_at_different_times(launch):
    done = launch(2, "import os, time; time.sleep(int(os.environ['TFDP_RANK']) / 2); print('done')")
    assert (done.returncode, done.stdout, done.stderr) == (0, "[0] done\n[1] done\n", "")


SLEEP = "import signal, sys, time\nprint('ready')\n"


def _needs(number):
    if signal.getsignal(number) is signal.SIG_IGN:
        pytest.skip(f"{number.name} is ignored here, as under nohup or in the background, and so it is by the launcher")


@pytest.mark.parametrize(("number", "status"), [(signal.SIGTERM, 143), (signal.SIGINT, 130), (signal.SIGHUP, 129)])
def test_a_signal_reaches_the_ranks_and_ends_the_job(start, number, status):
    _needs(number)
    running = start(2, SLEEP + "time.sleep(1000)")
    running.lines(2)
    running.process.send_signal(number)
    ended, _, stderr = running.end()
    told, last = stderr.splitlines()  # and no traceback of a KeyboardInterrupt
    assert ended == status
    assert told.startswith(f"tfdp: {number.name}: the 2 ranks have been told")
    assert last.startswith(f"tfdp: stopped by {number.name} after ")


SAVES = """
import atexit, time
class Slow:
    def __del__(self, sleep=time.sleep):
        sleep(1000)
@atexit.register
def save():
    time.sleep(1.2)  # longer than what comes after it may take
    print("saved")
slow = Slow()
print("ready")
time.sleep(1000)
"""


def test_an_interrupted_rank_runs_its_exit_handlers_and_does_not_wait_for_the_rest(start):
    _needs(signal.SIGINT)
    running = start(2, SAVES, TFDP_GRACE_SECONDS="500")
    running.lines(2)
    running.process.send_signal(signal.SIGINT)
    status, out, err = running.end()
    assert (status, sorted(out.splitlines())) == (130, ["[0] saved", "[1] saved"])
    assert len(err.splitlines()) == 2


def test_ranks_that_finish_in_order_on_a_signal_make_the_job_succeed(start):
    script = "import signal, sys\nsignal.signal(signal.SIGTERM, lambda *_: (print('saved'), sys.exit(0)))\n"
    running = start(2, script + "print('ready')\nwhile True: signal.pause()")
    running.lines(2)
    running.process.terminate()
    status, out, err = running.end()
    assert (status, sorted(out.splitlines())) == (0, ["[0] saved", "[1] saved"])
    assert len(err.splitlines()) == 2
    assert err.splitlines()[-1].startswith("tfdp: all ranks finished in order on SIGTERM, after ")


def test_other_signals_are_passed_on_and_end_nothing(start):
    script = """
import signal
signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1])
print("ready")
signal.sigwait([signal.SIGUSR1])
print("heard")
"""
    running = start(2, script)
    running.lines(2)
    running.process.send_signal(signal.SIGUSR1)
    status, out, _ = running.end()
    assert (status, sorted(out.splitlines())) == (0, ["[0] heard", "[1] heard"])


def test_a_stop_from_the_terminal_stops_the_ranks_too(start):
    running = start(2, "import os, signal\nprint(os.getpid())\nsignal.pause()")
    pids = [int(line.split()[1]) for line in running.lines(2)]
    running.process.send_signal(signal.SIGTSTP)
    until(lambda: all(state(pid) == "T" for pid in [running.process.pid, *pids]))
    running.process.send_signal(signal.SIGCONT)
    until(lambda: all(state(pid) == "S" for pid in pids))
    running.process.terminate()
    assert running.end()[0] == 143


DEAF = "import signal, time\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\nprint('ready')\ntime.sleep(1000)"


def test_a_rank_that_does_not_listen_is_killed(start):
    running = start(2, DEAF, TFDP_GRACE_SECONDS="0.3")
    running.lines(2)
    running.process.terminate()
    status, _, stderr = running.end()
    told, ended = stderr.splitlines()
    assert status == 143
    assert told == (
        "tfdp: SIGTERM: the 2 ranks have been told and may take 0.3 s to end; a second signal ends all at once"
    )
    assert re.fullmatch(r"tfdp: stopped by SIGTERM after \S+ s; ranks 0 and 1 did not end and had to be killed", ended)


def test_a_second_signal_ends_the_patience(start):
    _needs(signal.SIGINT)
    told = DEAF.replace("signal.SIG_IGN", "lambda *_: print('told')")
    running = start(2, told, TFDP_GRACE_SECONDS="1000")
    running.lines(2)
    running.process.terminate()
    running.lines(2)  # of two signals that come together the kernel may hand over the second first
    running.process.send_signal(signal.SIGINT)
    assert running.end()[0] == 143


def test_nobody_reads_any_more(start):
    running = start(2, "while True: print('x' * 1000)")
    running.lines(1)
    running.process.stdout.close()
    assert running.process.wait(PATIENCE) == 141
    assert re.fullmatch(rb"tfdp: stopped by SIGPIPE after \S+ s\n", running.process.stderr.read())


FAMILY = """
import os, subprocess, sys, time
child = subprocess.Popen(["sleep", "1000"])
print(os.getpid(), child.pid, flush=True)
"""


def family(running, ranks):
    return [int(pid) for line in running.lines(ranks) for pid in line.split()[1:]]


def test_a_killed_launcher_leaves_nobody_behind(start):
    running = start(2, FAMILY + "time.sleep(1000)")
    pids = family(running, 2)
    running.process.kill()
    wait_for_end(pids)


def test_a_launcher_killed_with_its_process_group_leaves_nobody_behind(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(FAMILY + "time.sleep(1000)")
    process = subprocess.Popen(
        [sys.executable, "-m", "tfdp.runtime.launch", "-np", "2", path],
        stdout=subprocess.PIPE,
        start_new_session=True,
        bufsize=0,
    )
    pids = family(Running(process), 2)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    process.stdout.close()
    wait_for_end(pids)


@pytest.mark.parametrize("ending", ["sys.exit(0)", "sys.exit(3)", "os.kill(os.getpid(), 9)"])
def test_what_a_rank_has_started_ends_with_it(start, ending):
    running = start(2, FAMILY + ending)
    pids = family(running, 2)
    running.end()
    wait_for_end(pids)
