"""Where the workers are started: under the script's main guard, unless its module's own code needs them before."""

from __future__ import annotations

import pytest

from tfdp.migrate.facts import read

_TEXT = """
import argparse
import dataclasses
import os
from pathlib import Path

import numpy as np
import tensorflow as tf
{}


def main():
    pass


if __name__ == "__main__":
    main()
"""

_RUN_NOTHING = {
    "loggers, paths, settings": """
tf.get_logger().setLevel("ERROR")
OUT = Path(__file__).parent / "out"
OUT.mkdir(exist_ok=True)
(OUT / "a").with_suffix(".b").touch()
SCALE = float(os.environ.get("SCALE", "1").strip())
os.environ["A"] = ",".join(str(i) for i in range(3)).upper()
print(tf.__version__)
table = np.arange(10).reshape(5, 2).sum(axis=0)
""",
    "a function of the file that reads arguments": """
def parse_args(argv=None):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=lambda text: int(text))
    return parser.parse_args(argv)

args = parse_args()
name = args.name.lower()
""",
    "objects of the file": """
@dataclasses.dataclass
class Config:
    rate: float = 0.1
    names: list = dataclasses.field(default_factory=list)

class Table(dict):
    def __init__(self):
        super().__init__()
        self.lines = Path("a").read_text().splitlines()

config, table = Config(), Table()
""",
    "decorators and defaults": """
def logged(f):
    print(f)
    return f

@tf.keras.utils.register_keras_serializable()
class Layer(tf.keras.layers.Layer):
    pass

@logged
@tf.function(input_signature=[tf.TensorSpec([None], tf.float32)])
def step(x, at=Path("a").name):
    return tf.reduce_sum(x) + np.random.rand()
""",
    "losses and schedules": """
LOSS = tf.keras.losses.MeanSquaredError()
RATE = tf.keras.optimizers.schedules.CosineDecay(0.1, 100)
""",
    "functions that are given and not called": "later = [lambda: tf.ones(3)]",
}
_NEEDS = {
    "an operation": ("w = tf.ones(3)", "tf.ones(3)"),
    "a seed": ("tf.random.set_seed(1)", "tf.random.set_seed(1)"),
    "draws": ("x = np.random.rand(3)", "np.random.rand(3)"),
    "what is not known": ("from data import load\nx = load()", "load()"),
    "text that is run": ("exec(Path('a').read_text())", "exec(Path('a').read_text())"),
    "in a function that is called": ("def make():\n    return tf.ones(3)\n\nw = make()", "make()"),
    "in a function that is given": (
        "def make(_):\n    return tf.ones(3)\n\nw = list(map(make, [1]))",
        "map(make, [1])",
    ),
    "in a constructor": ("class A:\n    def __init__(self):\n        self.w = tf.ones(3)\n\na = A()", "A()"),
    "an object of a class of Keras'": ("class A(tf.keras.Model):\n    pass\n\na = A()", "A()"),
    "in a method": ("class A:\n    def make(self):\n        return tf.ones(3)\n\nA().make()", "A().make()"),
    "a default": ("def step(w=tf.ones(3)):\n    return w", "tf.ones(3)"),
    "a decorator": ("def made(f):\n    return tf.ones(3)\n\n@made\ndef step():\n    pass", "@made\n"),
    "in what `with` runs": (
        "class A:\n    def __enter__(self):\n        return tf.ones(3)\n\nwith A() as w:\n    pass",
        "A()",
    ),
    "a class body": ("class A:\n    w = tf.ones(3)", "tf.ones(3)"),
    "a method of what is not known": ("import data\ndata.load(1).shuffle()", "data.load(1).shuffle()"),
}


@pytest.mark.parametrize("text", _RUN_NOTHING.values(), ids=_RUN_NOTHING)
def test_under_the_guard_after_what_runs_nothing(text: str) -> None:
    script = read(_TEXT.format(text))
    entry = script.entry
    assert [script.index.code(node) for node in entry.needing] == []
    assert (script.index.code(entry.start.anchor).strip(), entry.start.first) == ("main()", True)


@pytest.mark.parametrize(("text", "named"), _NEEDS.values(), ids=_NEEDS)
def test_after_the_imports_where_the_module_needs_them(text: str, named: str) -> None:
    script = read(_TEXT.format(text))
    assert named in [script.index.code(node) for node in script.entry.needing]
    assert script.entry.start == script.entry.imports


def test_under_a_guard_that_is_tried() -> None:
    tried = (
        "import sys\nimport tensorflow as tf\ntry:\n    if __name__ == '__main__':\n        main()\n"
        "except KeyboardInterrupt:\n    {}\n"
    )
    entry = read(tried.format("sys.exit(1)")).entry
    assert (entry.needing, entry.start.first) == ((), True)
    assert read(tried.format("tf.ones(3)")).entry.needing
