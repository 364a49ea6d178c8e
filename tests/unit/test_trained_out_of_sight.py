"""What trains out of sight, or with a batch that cannot grow, keeps the script's batch and its learning rates."""

from pathlib import Path

import pytest

from tfdp.migrate import beside, engine
from tfdp.rules._base import Policy

FIT = """\
import secrets
import numpy as np
import tensorflow as tf
import somelib

x, y = np.ones([64, 4], "float32"), np.ones([64, 1], "float32")
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.1)
model.compile(optimizer, "mse")
model.fit(x, y, batch_size={size}, epochs=2)
{after}
"""
IN_SIGHT = (
    "model.evaluate(x, y)",
    "print(model, optimizer)",
    "tf.keras.utils.plot_model(model)",
    "somelib.show(x)",
    "np.save('out.npy', model.predict(x))",
)
OUT_OF_SIGHT = (
    "somelib.finetune(model, x, y)",
    "somelib.Trainer(model=model)",
    "somelib.run([model])",
    "somelib.more(optimizer)",
    "somelib.trainer().run(model)",
)
LOADED = FIT.replace("tf.keras.Sequential([tf.keras.layers.Dense(1)])", "tf.keras.models.load_model('m.keras')")
LOADED = LOADED.replace('model.compile(optimizer, "mse")\n', "")
BY_KEYWORDS = """\
import tensorflow as tf


class Coder(tf.keras.Model):
    def __init__(self, **parts):
        super().__init__()
        self.__dict__.update(parts)

    def gradients(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(x - self.coder(x)))
        return tape.gradient(loss, self.trainable_variables)

    def step(self, x):
        self.optimizer.apply_gradients(zip(self.gradients(x), self.trainable_variables))


data = tf.data.Dataset.from_tensor_slices(tf.ones([64, 4])).batch(8)
coder = Coder(coder=tf.keras.layers.Dense(4), optimizer=tf.keras.optimizers.SGD(0.1))
for rows in data:
    coder.step(rows)
"""


def kept(source: str) -> str:
    """Why the batch is kept, "" where it is widened. Nothing is changed that would go with a larger one."""
    usual = engine.migrate("train.py", source.encode())
    assert not usual.refused, usual.findings
    changes = (b"global_batch_size", b"scale_lr", b"scale_optimizer", b"local_steps")
    assert not any(name in usual.after for name in changes)
    asked = engine.migrate("train.py", source.encode(), Policy(batch="per-worker"))
    assert any(name in asked.after for name in changes) != asked.refused
    return asked.findings[0].message if asked.refused else ""


@pytest.mark.parametrize("after", IN_SIGHT)
def test_what_trains_here_alone_gets_larger_batches(after: str) -> None:
    assert kept(FIT.format(size=8, after=after)) == ""


@pytest.mark.parametrize("after", OUT_OF_SIGHT)
def test_what_is_given_to_code_out_of_sight_keeps_its_batch(after: str) -> None:
    assert "may be trained out of sight" in kept(FIT.format(size=8, after=after))


def test_what_another_file_trains_keeps_its_batch(tmp_path: Path) -> None:
    (tmp_path / "helper.py").write_text("def more(model, x, y):\n    model.fit(x, y, batch_size=8)\n")
    path = tmp_path / "train.py"
    source = FIT.format(size=8, after="more(model, x, y)").replace("import somelib", "from helper import more")
    path.write_text(source)
    found = engine.migrate(str(path), source.encode(), Policy(batch="per-worker"))
    assert found.refused
    assert "may be trained out of sight" in found.findings[0].message


@pytest.mark.parametrize(
    "step", ["model.fit(x, x, batch_size=8)", "for _ in range(3):\n    model.train_on_batch(x, x)"]
)
def test_a_model_that_another_file_makes_is_training(step: str, tmp_path: Path) -> None:
    made = (
        "from tensorflow import keras\nmodel = keras.Sequential([keras.layers.Dense(1)])\nmodel.compile('sgd', 'mse')\n"
    )
    (tmp_path / "net.py").write_text(made)
    path, source = tmp_path / "train.py", f"import numpy as np\nfrom net import model\n\nx = np.ones([64, 1])\n{step}\n"
    found = engine.migrate(str(path), source.encode())
    assert (found.trains, found.road, found.refused) == (True, "calls", False)
    assert b"dp.init(shard_calls=True)" in found.after
    assert engine.migrate(str(path), source.encode(), Policy(batch="per-worker")).refused


@pytest.mark.parametrize(("package", "found"), [("keras", False), ("layers", True)])
def test_a_framework_that_lies_beside_the_script_is_not_read(package: str, found: bool, tmp_path: Path) -> None:
    (tmp_path / package).mkdir()
    trains = "import keras\n\ndef fitted(x):\n    model = keras.Sequential()\n    model.fit(x)\n"
    (tmp_path / package / "__init__.py").write_text(trains)
    source = f"import {package}\n{package}.fitted(x)\n"
    assert bool(beside.trained_by(str(tmp_path / "train.py"), source.encode())) == found


@pytest.mark.parametrize("source", [LOADED, LOADED.replace("tf.keras.models.load_model('m.keras')", "somelib.made()")])
def test_an_optimizer_that_is_made_out_of_sight_keeps_the_batch(source: str) -> None:
    assert "cannot tell which optimizer" in kept(source.format(size=8, after=""))


@pytest.mark.parametrize(
    "made",
    [
        "somelib.Net()",
        "tf.keras.Sequential([tf.keras.layers.Dense(3), somelib.Attention()])",
        "tf.keras.Sequential([somelib.Attention()(tf.keras.layers.Dense(3))])",
    ],
)
def test_classes_out_of_sight_in_a_fitted_model_keep_its_batch(made: str) -> None:
    source = FIT.format(size=8, after="").replace("tf.keras.Sequential([tf.keras.layers.Dense(1)])", made)
    assert "may add sums to the loss" in kept(source)


@pytest.mark.parametrize("given", ["epochs=2, callbacks=[somelib.Callback()]", "2, 1, [somelib.Callback()]"])
def test_callbacks_of_a_class_out_of_sight_keep_it(given: str) -> None:
    source = FIT.format(size=8, after="").replace("batch_size=8, epochs=2", f"batch_size=8, {given}")
    source = source.replace("batch_size=8, 2", "8, 2")
    assert "count steps" in kept(source)


def test_gradients_that_are_not_followed_to_their_update_keep_it() -> None:
    assert kept(BY_KEYWORDS)


@pytest.mark.parametrize("size", ["len(x)", "x.shape[0]", "len(x) // 2"])
def test_a_batch_that_follows_from_the_number_of_examples_stays(size: str) -> None:
    assert "follows from the number of examples" in kept(FIT.format(size=size, after=""))


@pytest.mark.parametrize(
    "search",
    [
        "import keras_tuner\ntuner = keras_tuner.RandomSearch(somelib.build)\ntuner.search(x, y)",
        "import autokeras as ak\nak.ImageClassifier(max_trials=3).fit(x, y)",
    ],
)
def test_a_tuner_beside_a_fit_is_refused(search: str) -> None:
    found = engine.migrate("train.py", FIT.format(size=8, after=search).encode())
    assert [f.code for f in found.findings if f.refusal] == ["TFDP050"]
    assert "a tuner keeps its trials in one folder" in found.findings[0].message
