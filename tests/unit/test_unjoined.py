"""The look at a script before `tfdp run` starts it: refused is only what certainly trains and can never join."""

from pathlib import Path

import pytest

from tfdp.migrate.unjoined import certainly_trains

STEP = """import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD()
dataset = tf.data.Dataset.from_tensor_slices(([[1.0]], [[1.0]])).batch(1)

def step(x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))

"""
LOOP = "for x, y in dataset:\n    step(x, y)\n"
FIT = """import tensorflow as tf
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
model.compile("sgd", "mse")
"""
CALL = "model.fit(x, y)\n"
IN_MAIN = "def main():\n    {}\n\nif __name__ == '__main__':\n    main()\n"

CERTAIN = {
    "a fit": (FIT + CALL, 4),
    "a loop": (STEP + LOOP, 9),
    "in main()": (FIT + IN_MAIN.format("model.fit(x, y)"), 5),
    "sys.exit(main())": ("import sys\n" + FIT + IN_MAIN.format("model.fit(x, y)")[:-7] + "sys.exit(main())\n", 6),
    "in with and try": (
        FIT + "with open('log') as log:\n    try:\n        model.fit(x, y)\n    finally:\n        pass\n",
        6,
    ),
    "loops over constants": (
        "EPOCHS = 3\n" + STEP + "for epoch in range(EPOCHS):\n    for x, y in dataset:\n        step(x, y)\n",
        10,
    ),
    "an end after it": ("import sys\n" + FIT + CALL + "if flag:\n    sys.exit()\nassert flag\n", 5),
    "files of the project": ("import data.digits\nfrom nets import layers\n" + FIT + CALL, 6),
}
OPEN = {
    "no training": FIT + "model.evaluate(x, y)\n",
    "imported training": "import trainer\ntrainer.train()\n",
    "the runtime": "import tfdp.runtime as dp\ndp.init()\n" + FIT + CALL,
    "a project's file with the runtime": "import joins\n" + FIT + CALL,
    "a module of a package with it": "from nets import joining\n" + FIT + CALL,
    "an unknown library": "import company_training\n" + FIT + CALL,
    "an import by name": "import importlib\nimportlib.import_module(name)\n" + FIT + CALL,
    "an option": FIT + "if flag:\n    model.fit(x, y)\n",
    "an option at the call": FIT + "def main():\n    model.fit(x, y)\n\nif flag:\n    main()\n",
    "an early return": FIT + IN_MAIN.format("if flag:\n        return\n    model.fit(x, y)"),
    "an early end": "import sys\n" + FIT + "if flag:\n    sys.exit()\n" + CALL,
    "a function that ends": "import sys\n"
    + FIT
    + "def usage():\n    sys.exit('usage')\nif flag:\n    usage()\n"
    + CALL,
    "an end that is certain": "import sys\n" + FIT + "sys.exit(0)\n" + CALL,
    "quit": FIT + "quit()\n" + CALL,
    "another program": "import os\n" + FIT + "os.execv('a', ['a'])\n" + CALL,
    "an assertion": FIT + "assert flag\n" + CALL,
    "an exception": FIT + "raise SystemExit\n" + CALL,
    "arguments that are read": "import argparse\n" + FIT + "argparse.ArgumentParser().parse_args()\n" + CALL,
    "a project's file that may end": "import ends\n" + FIT + CALL,
    "a loop over what is given": "import sys\n" + FIT + "for name in sys.argv[1:]:\n    model.fit(x, y)\n",
    "a loop of no turns": FIT + "for epoch in range(0):\n    model.fit(x, y)\n",
    "a loop over what is left": STEP + LOOP.replace("dataset", "dataset.filter(good)"),
    "while": FIT + "while flag:\n    model.fit(x, y)\n",
    "for and else": FIT + "for k in range(3):\n    break\nelse:\n    model.fit(x, y)\n",
    "a loop that is left": FIT + "for k in range(3):\n    if k == 0:\n        break\n    model.fit(x, y)\n",
    "try and else": FIT + "try:\n    load()\nexcept OSError:\n    pass\nelse:\n    model.fit(x, y)\n",
    "a generator": FIT + "def train():\n    model.fit(x, y)\n    yield\n\ntrain()\n",
    "a coroutine": FIT + "async def train():\n    model.fit(x, y)\n\ntrain()\n",
    "a decorator": FIT + "@skipped\ndef train():\n    model.fit(x, y)\n\ntrain()\n",
    "epochs from elsewhere": "import os\n" + FIT + "model.fit(x, y, epochs=int(os.environ['EPOCHS']))\n",
    "a function that nobody calls": FIT + "def train():\n    model.fit(x, y)\n",
    "another library's fit": "import tensorflow, sklearn.linear_model\nsklearn.linear_model.Ridge().fit(x, y)\n",
    "no Python": "import tensorflow as tf\nprint 'hello'\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "trainer.py": FIT + "def train():\n    model.fit(x, y)\n",
        "ends.py": "raise SystemExit\n",
        "joins.py": "from tfdp import runtime\n",
        "data/digits.py": "import numpy\n",
        "nets/__init__.py": "from . import layers\n",
        "nets/layers.py": "import tensorflow\n",
        "nets/joining.py": "import tfdp.runtime\n",
    }.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    return tmp_path


def test_what_certainly_trains_is_found_with_its_line(project: Path) -> None:
    for name, (text, line) in CERTAIN.items():
        (project / "train.py").write_text(text)
        found = certainly_trains(["train.py", "--epochs", "3"])
        assert found == ("train.py", line), name
    assert certainly_trains(["-m", "train"]) == found
    assert certainly_trains(["train.py", "--help"]) is None
    for command in (
        ["-c", CALL],
        ["python", "train.py"],
        ["absent.py"],
        ["-m", "absent"],
        ["bash", "train.sh"],
        ["-m"],
    ):
        assert certainly_trains(command) is None


def test_what_may_not_train_or_may_join_is_started(project: Path) -> None:
    for name, text in OPEN.items():
        (project / "script.py").write_text(text)
        assert certainly_trains(["script.py"]) is None, name
