"""Sharded calls: whose answers the script gets of its machine, in scripts as users write them."""

import os
import pathlib
import shutil
import subprocess

import pytest
from parallel.conftest import launch_environment

import tfdp.runtime

# Needs neither TensorFlow nor NumPy, which are not there for all Pythons.
WITHOUT = """
import glob, os, pathlib, secrets, shutil, subprocess, sys, tempfile, time, uuid
from datetime import date, datetime
from os import listdir

import tfdp.runtime as dp

dp.init(shard_calls=True)

from tfdp.runtime.job import current
from tfdp.runtime.store import apart

store = current().store
with apart():
    if dp.rank() == 0:
        place = tempfile.mkdtemp()
        store.publish("place", place.encode())
    else:
        place = store.fetch("place").decode()
        store.fetch("removed")  # rank 0 is through, and nothing is there any more
place = pathlib.Path(place)
said = []
for _ in range(3):
    run = place / f"run{len(listdir(place))}"
    run.mkdir()
    said += [run.name, glob.glob(f"{place}/run*"), glob.glob("*", root_dir=place), list(place.glob("*"))]
    said += [list(place.rglob("*")), list(place.iterdir()), list(os.walk(place))]
    said += [each.name for each in os.scandir(place)]
    said += [run.exists(), run.is_dir(), run.is_file(), run.stat().st_mtime_ns, (place / "none").exists()]
said += [uuid.uuid4(), secrets.token_hex(3), os.urandom(3), time.time(), time.strftime("%X")]
said += [datetime.now(), datetime.today(), datetime.utcnow(), date.today(), os.getpid(), uuid.uuid1()]
echo = subprocess.Popen(["sh", "-c", f"echo a >> {place}/log; echo b"], stdout=subprocess.PIPE, text=True)
said += [list(echo.stdout), echo.wait(), os.stat(place / "log").st_size]
try:
    os.mkdir(place / "run0")
except FileExistsError as error:
    said.append(error)
if dp.rank() == 0:
    shutil.rmtree(place)
    store.publish("removed", b"")
# Which rank 0 removes when the others are through with it.
with tempfile.TemporaryDirectory() as own, tempfile.NamedTemporaryFile(dir=own) as beside:
    said += [own, beside.name, os.listdir(own)]
every = store.gather("said", repr(said).encode())
assert len(set(every)) == 1, every
assert "tensorflow" not in sys.modules
print(said[0], said[-5], *said[-7], end="")
"""
IMPORTS = """
import os
import pathlib
from os import listdir, mkdir, scandir
from subprocess import Popen
from time import time
import timeit

import tensorflow as tf
import tfdp.runtime as dp

from beside import count

dp.init(shard_calls=True)
"""
HELPER = """

import logging


def logger(path):
    found = logging.getLogger("helper")
    found.setLevel(logging.INFO)
    found.addHandler(logging.FileHandler(path))
    return found
"""
BESIDE = """
from os import listdir


def count(path):
    return len(listdir(path))
"""


def interpreter(version):
    """From PATH, else from pyenv."""
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    for path in (shutil.which(f"python{version}"), *pyenv.glob(f"versions/{version}.*/bin/python")):
        if path and subprocess.run([path, "-c", ""], capture_output=True, check=False).returncode == 0:
            return str(path)
    return None


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_what_there_was_when_rank_0_came_on_each_python(version, tmp_path):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")
    (tmp_path / "script.py").write_text(WITHOUT)
    command = [python, "-m", "tfdp.runtime.launch", "-np", "3", "-v", str(tmp_path / "script.py")]
    environ = launch_environment(PYTHONPATH=str(pathlib.Path(tfdp.runtime.__file__).parents[2]))
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == [f"[{rank}] run0 2 b" for rank in range(3)]


def test_functions_that_were_imported_by_name_are_rank_0s_too(launch, tmp_path):
    (tmp_path / "beside.py").write_text(BESIDE)
    (tmp_path / "runs").mkdir()
    script = """
os.chdir(pathlib.Path(__file__).parent)
names = []
for _ in range(3):
    names.append(f"runs/{count('runs')}")
    mkdir(names[-1])
    Popen(["touch", f"{names[-1]}/{len(listdir(names[-1]))}"]).wait()
names += sorted(entry.name for entry in scandir("runs/2"))
with open("log", "w") as log:
    log.write("0123")
    log.flush()
    print(names, os.fstat(log.fileno()).st_size, f"{time():.6f} {timeit.default_timer()}")
"""
    done = launch(3, IMPORTS + script, options=("-v",))
    assert done.returncode == 0, done.stderr
    lines = [line[line.index("[", 1) :] for line in done.stdout.splitlines()]
    assert len(lines) == 3
    assert len(set(lines)) == 1, lines
    assert lines[0].startswith("['runs/0', 'runs/1', 'runs/2', '0'] 4 ")


@pytest.mark.long
def test_what_rank_0_has_asked_before_and_kept_others_get_when_they_come_to_it(launch, tmp_path):
    (tmp_path / "beside.py").write_text(BESIDE)
    script = """
import functools

os.chdir(pathlib.Path(__file__).parent)

class Runs:
    @functools.cached_property
    def names(self):
        return sorted(name for name in listdir(".") if name.startswith("run"))

runs = Runs()
mkdir("run0")
if dp.rank() == 0:
    len(runs.names)
    mkdir("run1")
print(runs.names)
if dp.rank() > 0:
    print(len(listdir("run1")))
dp.barrier()
print(runs.names, count("run1"))
if dp.rank() > 0:
    print(os.path.exists("run1"))
"""
    done = launch(2, IMPORTS + script, options=("-v",))
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    assert lines == ["[0] ['run0']", "[0] ['run0'] 0", "[1] 0", "[1] True", "[1] ['run0']", "[1] ['run0'] 0"]


@pytest.mark.long
def test_what_runs_at_the_end_rank_0_does_and_the_log_of_a_helper_is_written_once(launch, tmp_path):
    (tmp_path / "beside.py").write_text(BESIDE + HELPER)
    script = """
import atexit
import shutil
import subprocess
import sys

import beside

os.chdir(pathlib.Path(__file__).parent)
log = beside.logger("log")
log.info("begun")
mkdir("work")
atexit.register(shutil.rmtree, "work")
waits = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
atexit.register(waits.terminate)
if dp.rank() == 0:
    (pathlib.Path("work") / "file").touch()
log.info("done")
"""
    done = launch(2, IMPORTS + script)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    assert (tmp_path / "log").read_text() == "begun\ndone\n"
    assert not (tmp_path / "work").exists()


def test_a_rank_that_fails_alone_shows_its_traceback(launch, tmp_path):
    (tmp_path / "beside.py").write_text(BESIDE)
    script = """
import traceback
if dp.rank() == 1:
    try:
        1 / 0
    except ZeroDivisionError:
        traceback.print_exc()
        raise
dp.barrier()
"""
    done = launch(2, IMPORTS + script)
    assert done.returncode == 1
    assert done.stderr.count("ZeroDivisionError") >= 2


@pytest.mark.long
def test_streams_and_handlers_of_the_scripts_own_get_what_is_shown(launch, tmp_path):
    (tmp_path / "beside.py").write_text(BESIDE)
    script = """
import contextlib, io, logging, sys

class Tee:
    lines = 0

    def __init__(self):
        self.terminal = sys.stdout

    def write(self, text):
        Tee.lines += text.count("\\n")
        self.terminal.write(text)

    def flush(self):
        self.terminal.flush()

class Counting(logging.Handler):
    count = 0

    def emit(self, record):
        Counting.count += len(record.getMessage())

os.chdir(pathlib.Path(__file__).parent)
model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
lines = []
logger = logging.getLogger("x")
logger.addHandler(Counting())
logger.addHandler(logging.StreamHandler(sys.stdout))
logger.addHandler(logging.StreamHandler(of_logs := io.StringIO()))
dp.report(logger.warning, "loss %s", 0.5)
dp.report(logging.warning, "to all")
kept = io.StringIO()
with contextlib.redirect_stdout(kept):
    dp.report(print, "kept")
    dp.report(model.summary)
dp.report(print, "kept, too", file=kept)
dp.report(model.summary, print_fn=lines.append)
stream, sys.stdout = sys.stdout, Tee()
dp.report(print, "shown")
sys.stdout = stream

@tf.function
def step(x):
    tf.print(x, output_stream="file://steps.log")
    return x

step(tf.constant(1)), step(tf.constant(2))
with open("steps.log") as log:
    steps = log.read().split()
assert all("dense (Dense)" in text for text in ("".join(lines), kept.getvalue()))
print(Tee.lines, Counting.count, kept.getvalue().split("\\n")[::1000], of_logs.getvalue().strip(), steps)
"""
    done = launch(3, IMPORTS + script, options=("-v",))
    assert done.returncode == 0, done.stderr
    lines = sorted(done.stdout.splitlines())
    end = "1 8 ['kept'] loss 0.5 ['1', '2']"
    assert lines == ["[0] " + end, "[0] loss 0.5", "[0] shown", "[1] " + end, "[2] " + end]
    assert done.stderr.count("to all") == 1


@pytest.mark.long
def test_threads_that_ask_of_what_the_job_writes_are_named(launch, tmp_path):
    (tmp_path / "beside.py").write_text(BESIDE)
    script = """
from concurrent.futures import ThreadPoolExecutor

os.chdir(pathlib.Path(__file__).parent)
with open("log", "w") as log:
    log.write("x")

def asks(path):
    return os.path.exists(path)

with ThreadPoolExecutor(2) as pool:
    list(pool.map(asks, ["log", "none", "/usr/bin"]))
    list(pool.map(os.path.exists, ["log"]))
"""
    done = launch(3, IMPORTS + script)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "a thread asks os.stat of" in line]
    assert len(said) == 2, done.stderr
    assert sum("in a pool" in line or "a pool of threads" in line for line in said) == 1
    assert all(line.startswith("[1] ") for line in said)


@pytest.mark.parametrize("options", ["", "shard_calls=True"])
def test_logs_are_shown_by_rank_0(launch, options):
    script = f"""
import logging

import tfdp.runtime as dp

logging.basicConfig()
dp.init({options})
dp.report(logging.warning, "to %s", "all")
dp.report(logging.getLogger("x").error, "too")
dp.report(print, "printed")
"""
    done = launch(3, script)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("WARNING:root:to all") == done.stderr.count("ERROR:x:too") == 1, done.stderr
    assert done.stdout == "[0] printed\n"


def test_files_that_are_closed_when_python_ends_are_waited_for_by_nobody(launch):
    script = """
import pathlib

import tfdp.runtime as dp

dp.init(shard_calls=True)


class Log:
    def __init__(self):
        self.file = open(pathlib.Path(__file__).parent / "log", "w")

    def __del__(self):
        self.file.write("the end")
        self.file.close()


log = Log()
"""
    done = launch(3, script)
    assert done.returncode == 0, done.stderr


def test_threads_of_children_ask_as_if_there_were_no_job(launch):
    script = """
import multiprocessing
import os
import pathlib
import threading

import tfdp.runtime as dp

dp.init(shard_calls=True)


def look(found):
    (pathlib.Path(__file__).parent / f"of {dp.rank()}").touch()
    found.append(os.path.exists(__file__))


def child(said):
    found = []
    thread = threading.Thread(target=look, args=(found,))
    thread.start()
    thread.join()
    said.put(found)


context = multiprocessing.get_context("fork")
said = context.Queue()
process = context.Process(target=child, args=(said,))
process.start()
print(said.get(timeout=30))
process.join()
"""
    done = launch(2, script, options=("-v",))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] [True]", "[1] [True]"], done.stderr
