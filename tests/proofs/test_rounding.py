"""A critic whose gradients nearly cancel: rounding of float32 is told from faults, also from faults as small as it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from handmade import changed

from tfdp.migrate.verify import Recording, record

pytestmark = [pytest.mark.usefixtures("forking"), pytest.mark.xdist_group("rounding")]

STEPS = 8
SCRIPT = """\
import numpy as np
import tensorflow as tf
from tensorflow.keras import Input, Sequential, layers

BATCH = 16
images = (np.random.default_rng(0).normal(size=(256, 16, 16, 1)) * 0.5).astype("float32")
data = tf.data.Dataset.from_tensor_slices(images).repeat().batch(BATCH, drop_remainder=True)
critic = Sequential(
    [
        Input((16, 16, 1)),
        layers.Conv2D(32, 5, strides=2, padding="same", kernel_regularizer="l2"),
        layers.LeakyReLU(),
        layers.Conv2D(64, 5, strides=2, padding="same"),
        layers.LeakyReLU(),
        layers.Flatten(),
        layers.Dense(1),
    ]
)
generator = Sequential([Input((8,)), layers.Dense(256), layers.Reshape((16, 16, 1))])
critic_optimizer, generator_optimizer = tf.keras.optimizers.RMSprop(1e-4), tf.keras.optimizers.RMSprop(1e-4)
one = tf.function(lambda: 1.0)  # a tensor, which TensorFlow makes
for real in data.take(60):
    with tf.GradientTape() as tape, tf.GradientTape() as other:
        fake = generator(tf.random.normal([BATCH, 8]))
        own = -tf.reduce_mean(critic(fake)) * one()
        loss = -own - tf.reduce_mean(critic(real)) + tf.add_n(critic.losses)
    gradients = tape.gradient(loss, critic.trainable_variables)
    critic_optimizer.apply_gradients(zip(gradients, critic.trainable_variables))
    gradients = other.gradient(own, generator.trainable_variables)
    generator_optimizer.apply_gradients(zip(gradients, generator.trainable_variables))
"""
LOOP = "for real in data.take(dp.local_steps(60)):\n"
MEAN = "loss = -own - tf.reduce_mean(critic(real)) + tf.add_n(critic.losses)"


# The scripts for several workers, and for one process with the batch of all, by hand: it is not in the vocabulary.
SHARED = (
    ("import numpy as np\n", "import numpy as np\nimport tfdp.runtime as dp\n\ndp.init()\n"),
    (
        "tf.data.Dataset.from_tensor_slices(images).repeat()",
        "dp.shard(tf.data.Dataset.from_tensor_slices(images).repeat())",
    ),
    ("RMSprop(1e-4), tf.keras.optimizers.RMSprop(1e-4)\n", "RMSprop(2e-4), tf.keras.optimizers.RMSprop(2e-4)\n"),
    ("for real in data.take(60):\n", f"dp.broadcast_state(critic, generator)\n{LOOP}"),
    ("= tape.gradient", "= dp.DistributedGradientTape(tape).gradient"),
    ("= other.gradient", "= dp.DistributedGradientTape(other).gradient"),
)
WHOLE = (
    ("BATCH = 16", "BATCH = 32"),
    ("RMSprop(1e-4), tf.keras.optimizers.RMSprop(1e-4)\n", "RMSprop(2e-4), tf.keras.optimizers.RMSprop(2e-4)\n"),
    ("data.take(60)", "data.take(30)"),
)


@pytest.fixture(scope="module")
def text() -> str:
    return changed(SCRIPT, SHARED)


def recorded(folder: Path, source: str) -> Iterator[Recording]:
    path = folder / "train.py"
    path.write_text(source)
    with record(path, 2, STEPS, reference=changed(source, WHOLE).encode()) as recording:
        yield recording


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    yield from recorded(tmp_path_factory.mktemp("wgan"), SCRIPT)


@pytest.mark.sample
def test_rounding_above_the_limit_is_proved_in_float64(text: str, recording: Recording) -> None:
    proof = recording.prove(text.encode())
    assert proof.proved, proof
    assert proof.gradient > 1e-5, "the alarm that is to be told from a fault was not raised"
    assert proof.rounding is not None
    assert proof.rounding.by == "float64"


def test_where_float64_cannot_decide_permuted_rows_do(text: str, tmp_path: Path) -> None:
    narrow = "images = np.frombuffer(images.tobytes(), np.float32).reshape(images.shape)\n"
    source, made = (each.replace("data = ", f"{narrow}data = ") for each in (SCRIPT, text))
    for recording in recorded(tmp_path, source):
        proof = recording.prove(made.encode())
        assert proof.proved, proof
        assert proof.rounding is not None
        assert proof.rounding.by == "permuted rows"
        assert "frombuffer" in proof.rounding.text


BROKEN = {
    "fp16 compression": ("(tape)", "(tape, compression=dp.Compression.fp16)"),
    "one row read twice": (LOOP, f"{LOOP}    real = tf.concat([real[:-1], real[:1]], 0)\n"),
    "L2 doubled": ("tf.add_n(critic.losses)", "2.0 * tf.add_n(critic.losses)"),
    "L2 off by less than a millionth": ("tf.add_n(critic.losses)", "1.0000003 * tf.add_n(critic.losses)"),
    "rows of the worker alone are contrasted": (
        MEAN,
        "rows = tf.reshape(real, [BATCH, -1]) * critic(real)\n"
        "        loss = tf.reduce_mean(tf.nn.log_softmax(rows @ tf.transpose(rows)))",
    ),
}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.sample] if "millionth" in name else []) for name in BROKEN]
)
def test_faults_are_no_rounding(name: str, text: str, recording: Recording) -> None:
    old, new = BROKEN[name]
    assert old in text
    proof = recording.prove(text.replace(old, new, 1).encode())
    assert not proof.proved, proof
    by_float64 = proof.rounding is not None and proof.rounding.by == "float64"
    assert by_float64 == ("millionth" in name), proof
