"""Forks stand in for processes of their own in proofs: here one is held against the other."""

import json
import os
import subprocess
import sys

import pytest
from forking.client import EXEC, wanted

pytest.importorskip("tensorflow")

pytestmark = [
    pytest.mark.skipif(not wanted(), reason="TFDP_TESTS_EXEC is set"),
    pytest.mark.usefixtures("forking"),
]

LAUNCH = "tfdp.runtime.launch"
DESCRIBE = """
import json, os, signal, sys
forked = "tensorflow" in sys.modules
import random, tempfile, threading
IMPORT
fds = {fd: os.readlink(f"/proc/self/fd/{fd}").partition(":")[0] for fd in os.listdir("/proc/self/fd")[:-1]}
facts = {
    "argv": sys.argv,
    "main": [__name__, globals().get("__file__"), sys.modules["__main__"].__dict__ is globals()],
    "path": sys.path,
    "environ": {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"},
    "cwd": os.getcwd(),
    "stdin": sys.stdin.read(),
    "fds": sorted(fds.items()),
    "signals": [str(signal.getsignal(number)).partition(" at ")[0] for number in sorted(signal.valid_signals())],
    "leads a session": os.getsid(0) == os.getpid(),
    "temporary": tempfile.gettempdir(),
    "ours": [name for name in sys.modules if name.startswith("tfdp")],
    "threads": threading.active_count(),
    "streams": [[each.encoding, each.errors, each.line_buffering] for each in (sys.stdin, sys.stdout, sys.stderr)],
}
print(json.dumps({"forked": forked, "parent": os.getppid(), "facts": facts}))
"""
WAYS = {"a script": "train.py", "code": "-c", "a module": "-m"}


# Without a locale, Python's start sets a variable.
ENVIRON = {"PATH": os.environ["PATH"], "HOME": "/", "TF_CPP_MIN_LOG_LEVEL": "3"}
ENVIRON |= {name: value for name, value in os.environ.items() if name == "TF_USE_LEGACY_KERAS"}


def python(*command, **options):
    options = {"env": ENVIRON, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, **options}
    return subprocess.run([sys.executable, *command], timeout=120, check=False, **options)


def described(popen, command, folder, **options):
    options = {"cwd": folder, "env": {**ENVIRON, "TMPDIR": str(folder)}, "stdout": subprocess.PIPE, **options}
    process = popen([sys.executable, *command, "a b", "--c"], stdin=subprocess.PIPE, **options)
    out, _ = process.communicate(b"said\n", timeout=120)
    assert process.returncode == 0
    return json.loads(out)


@pytest.mark.parametrize("way", WAYS)
def test_a_fork_is_like_a_process_of_its_own(way, tmp_path):
    # A launcher, which is started as a module, imports no TensorFlow.
    text = DESCRIBE.replace("IMPORT", "" if way == "a module" else "import tensorflow as tf\ntf.keras.Model")
    (tmp_path / "train.py").write_text(text)
    command = {"train.py": ["train.py"], "-c": ["-c", text], "-m": ["-m", "train"]}[WAYS[way]]
    options = {"start_new_session": True} if way == "code" else {"stderr": subprocess.DEVNULL}
    fork = described(subprocess.Popen, command, tmp_path, **options)
    own = described(EXEC, command, tmp_path, **options)
    assert (fork["forked"], own["forked"]) == (True, False)
    assert fork["parent"] == own["parent"]
    assert fork["facts"] == own["facts"]


SAY = "say = functools.partial(print, file=sys.stderr)"
ENDINGS = {
    "sys.exit(3)": (3, ""),
    "sys.exit('no')": (1, "no"),
    "raise ValueError('bad')": (1, "ValueError: bad"),
    "os.kill(os.getpid(), 9)": (-9, ""),
    "atexit.register(say, 'at the end')": (0, "at the end"),
    "threading.Thread(target=lambda: (threading.main_thread().join(), say('last'))).start()": (0, "last"),
}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_fork_ends_like_a_process_of_its_own(ending):
    text = f"import sys\nassert 'tensorflow' in sys.modules\nimport atexit, functools, os, threading\n{SAY}\n{ending}"
    done = python("-c", text)
    status, said = ENDINGS[ending]
    assert done.returncode == status
    assert done.stderr.splitlines()[-1:] == ([said] if said else [])
    assert "forking" not in done.stderr, "the lines of the fork's own"


RANK = """
import sys
forked, ours = "tensorflow" in sys.modules, [name for name in sys.modules if name.startswith("tfdp")]
import json, os, random, subprocess
import numpy as np
drawn = [random.random(), np.random.random()]  # dp.init() seeds both generators alike
import tfdp.runtime as dp
dp.init()
import tensorflow as tf
code = "import sys; print('tensorflow' in sys.modules)"
started = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
said = {
    "forked": forked, "ours": ours, "started": started.strip(), "parent": os.getppid(), "rank": dp.rank(),
    "sum": int(dp.allreduce(tf.constant(dp.rank() + 1), dp.Sum)), "group": os.getpgrp() == os.getpid(),
    "drawn": [*drawn, float(tf.random.uniform([]))],
}
print(json.dumps(said))
"""


def test_the_ranks_of_a_forked_launcher_are_its_children_and_start_afresh(tmp_path):
    (tmp_path / "train.py").write_text(RANK)
    done = python("-m", LAUNCH, "-np", "3", "train.py", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    ranks = [json.loads(line.partition("] ")[2]) for line in done.stdout.splitlines()]
    assert sorted(each["rank"] for each in ranks) == [0, 1, 2]
    for each in ranks:
        assert (each["forked"], each["ours"], each["started"]) == (True, [], "False")
        assert (each["sum"], each["group"]) == (6, True)
    assert len({each["parent"] for each in ranks}) == 1
    assert len({number for each in ranks for number in each["drawn"]}) == 9


def test_what_is_started_otherwise_is_not_forked():
    """A launcher's guardian is, and ranks with variables that may change what importing TensorFlow does."""
    code = "import sys; sys.exit('tensorflow' in sys.modules)"
    assert python("-c", code).returncode == 1
    assert python("-I", "-c", code).returncode == 0


LAUNCHER = """
import os, subprocess, sys
code = "import sys; sys.exit('tensorflow' in sys.modules)"
for change in ({}, {"TFDP_X": "1"}, {"TF_ENABLE_ONEDNN_OPTS": "0"}):
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, **change})
    print(done.returncode, *change)
"""


def test_a_launcher_forks_what_would_import_tensorflow_as_it_was_imported(tmp_path):
    (tmp_path / "launcher.py").write_text(LAUNCHER)
    done = python("-m", "launcher", cwd=tmp_path)
    assert done.stdout.splitlines() == ["1", "1 TFDP_X", "0 TF_ENABLE_ONEDNN_OPTS"], done.stderr
