"""Ranks that train without having joined their job: the job ends, and nothing has been trained.

Most of it with a package that has the name of Keras: what counts as training of the real one is in tests/single.
"""

import json
import os
import subprocess
import sys

import pytest

from tfdp.runtime.clusters import local
from tfdp.runtime.launch.unjoined import Unjoined

PATH = f"{os.path.dirname(sys.executable)}:{os.environ['PATH']}"

KERAS = """
class Optimizer:
    def apply_gradients(self, pairs):
        print("has trained", pairs, flush=True)
"""
SAID = (
    "2 independent copies would have been trained: {} trains, and nothing has called dp.init(). Type `tfdp migrate {}`"
)


@pytest.fixture
def run(tmp_path):
    (tmp_path / "keras").mkdir()
    (tmp_path / "keras" / "__init__.py").write_text("from . import optimizers\n")
    (tmp_path / "keras" / "optimizers.py").write_text(KERAS)

    def run(files, *command, **environ):
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        base = {name: value for name, value in os.environ.items() if not name.startswith("TFDP_")}
        return subprocess.run(
            [sys.executable, "-m", "tfdp.runtime.launch", *command],
            env={**base, **environ},
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    return run


TRAINS = "import keras\nprint('begins', flush=True)\nkeras.optimizers.Optimizer().apply_gradients([1])\n"
CALLED = "import keras\n\ndef train():\n    keras.optimizers.Optimizer().apply_gradients([1])\n"
CHILD = "import subprocess, sys\nsubprocess.run([sys.executable, 'train.py'])\n"
POOL = """
import multiprocessing
import trainer

if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(trainer.train)  # waits for ever when the process is gone
"""
FORGOTTEN = {
    "a script": ({"train.py": TRAINS}, ["train.py"], ("train.py:3", "train.py")),
    "a module": ({"pkg/train.py": TRAINS}, ["-m", "pkg.train"], ("pkg/train.py:3", "pkg/train.py")),
    "code": ({}, ["-c", TRAINS], ("the script", "SCRIPT")),
    "a shell": ({"train.py": TRAINS, "train.sh": "python3 train.py"}, ["bash", "train.sh"], ("train.py:3", "train.py")),
    "another file": (
        {"lib/trainer.py": CALLED, "main.py": "from lib import trainer\ntrainer.train()\n"},
        ["main.py"],
        ("lib/trainer.py:4", "main.py"),
    ),
    "a process of its own": ({"main.py": CHILD, "train.py": TRAINS}, ["main.py"], ("train.py:3", "train.py")),
    "a pool": ({"main.py": POOL, "trainer.py": CALLED}, ["main.py"], ("trainer.py:4", "main.py")),
    "what catches all": (
        {
            "train.py": TRAINS.replace("import keras", "import keras, os; os.environ.clear()").replace(
                "keras.opt", "try: keras.opt"
            )
            + "except BaseException: pass\n"
        },
        ["train.py"],
        ("train.py:3", "train.py"),
    ),
}


@pytest.mark.parametrize(("files", "command", "named"), FORGOTTEN.values(), ids=FORGOTTEN.keys())
def test_who_has_not_joined_does_not_train(run, files, command, named):
    done = run(files, "-np", "2", "--", *command, PATH=PATH, TFDP_GRACE_SECONDS="2")
    place, name = named
    assert (done.returncode, done.stderr.count("tfdp: ")) == (1, 1), done.stderr
    assert SAID.format(place, name) in done.stderr
    assert "has trained" not in done.stdout


def test_a_rank_that_alone_would_train_is_named(run):
    done = run(
        {"train.py": TRAINS}, "-np", "2", "--", "bash", "-c", "[ $TFDP_RANK = 0 ] || exec python train.py", PATH=PATH
    )
    assert done.returncode == 1
    assert "tfdp: rank 1 would have trained a model of its own: train.py:3 trains, and nothing" in done.stderr


def test_gradients_that_nobody_joined_for_are_a_word_at_the_end():
    def told(*lines):
        watching = Unjoined()
        for rank, what in lines:
            number, path = watching.variables(rank)[local.UNJOINED].split(" ")
            with open(path, "w") as launcher:
                launcher.write(json.dumps([int(number), what, "/elsewhere/lib.py", 3, "/elsewhere/train.py"]) + "\n")
        watching.close()
        assert watching.ranks == []
        return watching.suspicion()

    assert told((0, "gradients"), (0, "gradients")) is None
    assert told((0, "gradients"), (1, "gradients"), (1, "joined")) is None
    said = told((0, "gradients"), (1, "gradients"), (1, "gradients"))
    assert said.startswith("2 processes took gradients, and none has called dp.init(): if they trained, 2 independent")


JOIN = "dp.init(same_start=False)\nassert not hasattr(keras.optimizers.Optimizer.apply_gradients, '__wrapped__')\n"
CHILD_TRAINS = "import subprocess, sys\nsubprocess.run([sys.executable, 'child.py'], check=True)\n"


def test_who_has_joined_or_means_it_or_is_alone_trains(run):
    joined = {"train.py": "import keras, tfdp.runtime as dp\n" + JOIN + TRAINS + CHILD_TRAINS, "child.py": TRAINS}
    done = run(joined, "-np", "2", "train.py")
    assert (done.returncode, done.stdout.count("has trained")) == (0, 4), done.stderr
    for options in (["-np", "2", "--independent"], ["-np", "1"]):
        done = run({"train.py": TRAINS}, *options, "train.py")
        assert (done.returncode, done.stdout.count("has trained"), done.stderr) == (0, int(options[1]), "")


SHOWN = """
import json, sys
print(json.dumps([sys.argv, sys.path, __file__, __name__, sorted(vars()), "sitecustomize" in sys.modules]))
"""


def test_a_script_does_not_notice_that_it_is_looked_at(run, tmp_path):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "sitecustomize.py").write_text("import builtins; builtins.customized = True\n")
    files = {"show.py": SHOWN + "print(customized)\n"}
    where = {"PYTHONPATH": f"{tmp_path}/mine:{tmp_path}"}
    (tmp_path / "show.py").write_text(files["show.py"])
    plain = subprocess.run(
        [sys.executable, "show.py", "-x"],
        cwd=tmp_path,
        env={**os.environ, **where},
        capture_output=True,
        text=True,
        check=True,
    )
    done = run(files, "-np", "2", "show.py", "-x", **where)
    for rank in range(2):
        mine = [line[4:] for line in done.stdout.splitlines() if line.startswith(f"[{rank}] ")]
        assert mine == plain.stdout.splitlines()
    assert json.loads(plain.stdout.splitlines()[0])[-1]
    assert plain.stdout.endswith("True\n")


def test_commands_that_train_nothing(run):
    prepare = "import keras.optimizers, multiprocessing as m\nprint(m.get_context('fork').Pool(1).map(len, ['ab']))\n"
    assert run({"prepare.py": prepare}, "-np", "2", "prepare.py").stdout.count("[2]") == 2
    assert run({}, "-np", "2", "--", "-c", "print(1)").returncode == 0
    failed = run({"fails.py": "import keras\nraise SystemExit(3)\n"}, "-np", "2", "fails.py")
    assert failed.returncode == 3


def test_a_failure_of_another_rank_is_told_too(run):
    script = "import os, sys\nif os.environ['TFDP_RANK'] == '0':\n    sys.exit('no data')\n" + TRAINS
    done = run({"train.py": script}, "-np", "2", "train.py")
    assert done.returncode == 1
    assert "no data" in done.stderr


MIRRORED = """
import tensorflow as tf

strategy = tf.distribute.MirroredStrategy(["/cpu:0"])
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
model.predict(tf.ones([4, 3]), verbose=0)
print("begins", flush=True)
model.fit(tf.ones([8, 3]), tf.ones([8, 1]), verbose=0)
print("has trained")
"""


def test_tensorflow_under_mirrored_strategy(launch):
    done = launch(2, MIRRORED)
    assert (done.returncode, done.stdout.count("begins"), done.stdout.count("has trained")) == (1, 2, 0)
    assert "2 independent copies would have been trained: " in done.stderr.splitlines()[-1]
    assert "script.py trains, and nothing has called dp.init()" in done.stderr.splitlines()[-1]
