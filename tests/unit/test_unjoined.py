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
    "a function that nobody calls": FIT + "def train():\n    model.fit(x, y)\n",
    "another library's fit": "import tensorflow, sklearn.linear_model\nsklearn.linear_model.Ridge().fit(x, y)\n",
    "no Python": "import tensorflow as tf\nprint 'hello'\n",
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    for name, text in {
        "trainer.py": FIT + "def train():\n    model.fit(x, y)\n",
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
