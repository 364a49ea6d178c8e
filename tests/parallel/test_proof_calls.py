"""Proofs of scripts of sharded calls: nothing is neutralised, and what is wrong with one worker is seen."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate.engine import migrate
from tfdp.migrate.verify import CouldNotRun, Recording, prove, record
from tfdp.migrate.verify.diagnosis import Cause

pytestmark = pytest.mark.usefixtures("forking")

# Of its batches of 7 rows two workers compute 4; nothing in it has a seed.
MIXED = """
import numpy as np
import tensorflow as tf

rng = np.random.default_rng()
x = rng.normal(size=(35, 4)).astype("float32")
y = (x[:, :1] > 0).astype("float32")
layers = tf.keras.layers
model = tf.keras.Sequential(
    [
        layers.Dense(6, "tanh", name="first"),
        layers.BatchNormalization(name="norm"),
        layers.Dropout(0.4, name="drop"),
        layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.Adam(0.01)
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(35).batch(7)


@tf.function
def step(images, labels):
    share = tf.random.uniform([])
    other = tf.random.shuffle(tf.range(tf.shape(images)[0]))
    mixed = share * images + (1 - share) * tf.gather(images, other)
    goal = share * labels + (1 - share) * tf.gather(labels, other)
    with tf.GradientTape() as tape:
        loss = tf.sqrt(tf.reduce_mean((model(mixed, training=True) - goal) ** 2))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for images, labels in data:
    step(images, labels)
"""
FITTED = """
import tensorflow as tf

x = tf.random.normal([36, 5])
y = tf.random.uniform([36], maxval=3, dtype=tf.int64)
model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(8, "relu"),
        tf.keras.layers.GaussianNoise(0.2, name="noise"),
        tf.keras.layers.Dense(3, "softmax"),
    ]
)
model.compile("sgd", "sparse_categorical_crossentropy", metrics=["accuracy"])
model.fit(x, y, batch_size=8, epochs=1, validation_split=0.2, verbose=0)
"""
ADVERSARIAL = """
import tensorflow as tf

dense = tf.keras.layers.Dense
generator = tf.keras.Sequential([dense(5, "relu"), tf.keras.layers.BatchNormalization(), dense(4)])
noise = tf.keras.layers.Lambda(lambda rows: rows + tf.random.normal(tf.shape(rows), stddev=0.1), name="noise")
critic = tf.keras.Sequential([noise, dense(5, "relu"), tf.keras.layers.Dropout(0.3), dense(1)])
of_generator, of_critic = tf.keras.optimizers.Adam(1e-3), tf.keras.optimizers.Adam(1e-3)
entropy = tf.keras.losses.BinaryCrossentropy(from_logits=True)
data = tf.data.Dataset.from_tensor_slices(tf.random.normal([24, 4])).shuffle(24).batch(8)

for real in data:
    with tf.GradientTape() as first, tf.GradientTape() as second:
        made = generator(tf.random.normal([8, 3]), training=True)
        ours, theirs = critic(made, training=True), critic(real, training=True)
        fooled = entropy(tf.ones_like(ours), ours)
        found = entropy(tf.ones_like(theirs), theirs) + entropy(tf.zeros_like(ours), ours)
    of_generator.apply_gradients(zip(first.gradient(fooled, generator.variables[:2]), generator.variables[:2]))
    of_critic.apply_gradients(zip(second.gradient(found, critic.trainable_variables), critic.trainable_variables))
"""
PAIRED = """
import tensorflow as tf

layer = tf.keras.layers.Dense(2)
model = tf.keras.Sequential([tf.keras.layers.Lambda(lambda rows: rows - tf.reduce_mean(rows, 0), name="centred")])
weights = tf.Variable(tf.random.normal([3, 2]))
for _ in range(4):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(tf.random.normal([6, 3])) @ weights)
    weights.assign_sub(tape.gradient(loss, weights))
"""
INIT = "dp.init(shard_calls=True)"


def migrated(text: str, *changes: tuple[str, str]) -> bytes:
    """What the tool makes of a script, after changes of places that occur once."""
    migration = migrate("train.py", text.encode(), shard="calls")
    assert not migration.refused, migration.findings
    after = migration.after.decode()
    for old, new in changes:
        assert after.count(old) == 1, f"{old!r} occurs {after.count(old)} times in\n{after}"
        after = after.replace(old, new)
    return after.encode()


@pytest.fixture(scope="module")
def mixed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    path = tmp_path_factory.mktemp("proof") / "train.py"
    path.write_text(MIXED)
    with ExitStack() as stack:
        text = MIXED.encode()
        yield stack.enter_context(record(path, 2, None, reference=text, batch="global", calls=True, timeout=200.0))


def test_without_seeds_dropout_and_normalization_are_proved_as_they_are(mixed: Recording) -> None:
    proof = mixed.prove(migrated(MIXED))
    assert proof.proved, str(proof)
    assert len(proof.points) == 5
    assert not proof.neutralised
    assert [part.name for part in proof.division.divided] == ["Sequential 'sequential'"]
    assert proof.division.divided[0].row_bytes == 4
    assert {"norm (line 12)", "drop (line 13)"} <= {each.split(": ")[1] for each in proof.kept}
    assert "nothing was neutralised" in str(proof)
    assert proof.data.outcome == "shared"
    assert "by every rank" in proof.data.text
    assert any("moving_mean" in row.variable and row.update is not None for row in proof.table)


BROKEN = {
    "no averages": (
        INIT,
        f"own = tf.GradientTape.gradient; {INIT}; tf.GradientTape.gradient = own",
        Cause.NOT_AVERAGED,
    ),
    "a seed by rank": (INIT, f"{INIT}; tf.random.set_seed(dp.rank())", None),
    "a batch by rank": ("step(images, labels)\n", "step(images + 0.1 * dp.rank(), labels)\n", None),
    "a rate by the number of workers": ("Adam(0.01)", "Adam(0.01 * dp.size())", Cause.RATE),
}


@pytest.mark.parametrize("name", BROKEN)
def test_what_one_worker_does_otherwise_is_not_proved(mixed: Recording, name: str) -> None:
    old, new, cause = BROKEN[name]
    proof = mixed.prove(migrated(MIXED, (old, new)))
    assert not proof.proved, str(proof)
    if cause is None:  # the job itself has seen it, before anything was trained
        assert proof.could_not_compare or proof.cause == Cause.ORDERS.value, proof
        assert "differs between rank 0 and rank(s) 1" in proof.reason, proof
    else:
        assert proof.cause == cause.value, proof
        assert not proof.could_not_compare


def test_fit_and_several_models_and_tapes(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    for text, divided in ((FITTED, 1), (ADVERSARIAL, 2)):
        path.write_text(text)
        proof = prove(path, 2, shard="calls")
        assert proof.proved, str(proof)
        assert (proof.batch, len(proof.division.divided)) == ("global", divided), proof


def test_where_nothing_can_be_divided_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(PAIRED)
    with pytest.raises(CouldNotRun, match=r"nothing in this script could be sharded.*mixes rows"):
        prove(path, 2, migrated=migrated(PAIRED))
