"""Proofs of sharded calls: nothing is neutralised, and what a worker or the runtime does otherwise is not proved."""

from collections.abc import Callable
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import TypeAlias

import pytest
from handmade import changed

pytest.importorskip("tensorflow")

from tfdp.migrate.engine import migrate
from tfdp.migrate.verify import CouldNotRun, Recording, prove, record
from tfdp.migrate.verify.diagnosis import Cause
from tfdp.rules._base import Batch, Policy

Recorded: TypeAlias = Callable[[str], Recording]

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

x = 40 * tf.random.normal([36, 5])
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
BUILT = """
import tensorflow as tf


class Scaled(tf.keras.layers.Layer):
    def build(self, shape):
        self.scale = getattr(tf.keras, "Variable", tf.Variable)(tf.random.normal([shape[-1]]))

    def call(self, inputs):
        return inputs * self.scale


model, optimizer = tf.keras.Sequential([Scaled(), tf.keras.layers.Dense(1)]), tf.keras.optimizers.SGD(0.1)


@tf.function
def step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(images) - 1.0) ** 2)
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))


for images in tf.random.normal([3, 8, 5]):
    step(images)
"""
INIT = "dp.init(shard_calls=True)"
OTHERWISE = {
    "fit_custom_minimize": "it needs Keras 2",
}
SCRIPTS = {"mixed": MIXED, "fitted": FITTED, "adversarial": ADVERSARIAL, "built": BUILT}
FIXTURES = Path(__file__).parents[2] / "fixtures" / "scripts"
STEPS = 6


def migrated(text: str, *changes: tuple[str, str]) -> bytes:
    """What the tool makes of a script, after changes of places that occur once."""
    migration = migrate("train.py", text.encode(), Policy("calls", "global"))
    assert not migration.refused, migration.findings
    return changed(migration.after.decode(), changes).encode()


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, stack: ExitStack) -> Callable[[str], Recording]:
    """The reference of a script, run once."""

    @cache
    def found(name: str) -> Recording:
        path = tmp_path_factory.mktemp("proof") / "train.py"
        path.write_text(SCRIPTS[name])
        opened = record(path, 2, None, reference=SCRIPTS[name].encode(), batch="global", calls=True)
        return stack.enter_context(opened)

    return found


@pytest.mark.sample
def test_without_seeds_dropout_and_normalization_are_proved_as_they_are(recorded: Recorded) -> None:
    proof = recorded("mixed").prove(migrated(MIXED))
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


@pytest.mark.sample
def test_a_workers_own_batch_statistics_are_no_part_of_a_proof_which_says_so(recorded: Recorded) -> None:
    local = changed(migrated(MIXED).decode(), [(INIT, INIT[:-1] + ', batch_norm="local")')]).encode()
    proof = recorded("mixed").prove(local)
    assert proof.proved, str(proof)
    (said,) = proof.neutralised
    assert "each worker's rows" in said
    assert "nothing was neutralised" not in str(proof)


@pytest.mark.sample
@pytest.mark.parametrize(("name", "divided"), [("fitted", 1), ("adversarial", 5), ("built", 1)])
def test_fit_and_several_models_and_tapes_are_proved(recorded: Recorded, name: str, divided: int) -> None:
    proof = recorded(name).prove(migrated(SCRIPTS[name]))
    assert proof.proved, str(proof)
    assert (proof.batch, len(proof.division.divided)) == ("global", divided)


@pytest.mark.sample
def test_where_nothing_can_be_divided_nothing_is_said(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(PAIRED)
    with pytest.raises(CouldNotRun, match=r"nothing in this script could be sharded.*does what may mix rows"):
        prove(path, 2, migrated=migrated(PAIRED))


@pytest.mark.sample
def test_the_batches_of_all_workers_are_proved_and_what_leaves_one_out_is_not(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    text = MIXED.replace("tf.sqrt(tf.reduce_mean((model(mixed, training=True) - goal) ** 2))", "error")
    text = text.replace(
        "        loss = ", "        error = tf.reduce_mean((model(mixed, training=True) - goal) ** 2)\n        loss = "
    )
    path.write_text(text)
    migration = migrate("train.py", text.encode(), Policy("calls", "per-worker"))
    assert not migration.refused, migration.findings
    text = migration.after.decode()
    with record(path, 2, None, reference=migration.after, batch="per-worker", calls=True) as recording:
        proof = recording.prove(migration.after)
        assert proof.proved, str(proof)
        assert (proof.batch, len(proof.points)) == ("per-worker", 3)
        for whole, left in (("dp.scale_lr(0.01)", "0.01"), ("dp.global_batch_size(7)", "7")):
            failed = recording.prove(changed(text, [(whole, left)]).encode())
            assert not failed.proved, left


@pytest.mark.parametrize("batch", ["global", "per-worker"])
@pytest.mark.parametrize("name", sorted(each.parent.name for each in FIXTURES.glob("*/after.py")))
def test_fixture_scripts_are_proved(name: str, batch: Batch) -> None:
    path = FIXTURES / name / "before.py"
    migration = migrate(str(path), path.read_bytes(), Policy("calls", batch))
    if not migration.trains:
        pytest.skip("trains nothing")
    if name in OTHERWISE:
        pytest.skip(OTHERWISE[name])
    if batch == "per-worker" and not path.with_name("after_global.py").exists():
        pytest.skip(f"keeps its batch: {migration.findings}")
    assert not migration.refused, migration.findings
    proof = prove(path, 2 + len(name) % 2, STEPS, migrated=migration.after)
    assert proof.proved, str(proof)


def of_the_runtime(module: str, name: str, changed: str) -> tuple[str, str]:
    """A function of the runtime, after the job is joined, replaced by another one; `old` is it."""
    text = f"import tfdp.runtime.calls.{module} as m; old = m.{name}; m.{name} = {changed}"
    return INIT, f"{INIT}; {text}"


BY_EACH = "lambda self, values, weights, axes, *, live: m.moments(values, self._without_padding(values, weights), axes)"
BROKEN = {
    ("mixed", "no averages"): (
        (INIT, f"own = tf.GradientTape.gradient; {INIT}; tf.GradientTape.gradient = own"),
        Cause.NOT_AVERAGED,
    ),
    ("mixed", "a rate by the number of workers"): (("Adam(0.01)", "Adam(0.01 * dp.size())"), Cause.RATE),
    ("mixed", "a seed by rank"): ((INIT, f"{INIT}; tf.random.set_seed(dp.rank())"), None),
    ("mixed", "a batch by rank"): (("step(images, labels)\n", "step(images + 0.1 * dp.rank(), labels)\n"), None),
    ("mixed", "a gathered gradient counts once"): (of_the_runtime("rows", "_times", "tf.identity"), Cause.DIVISION),
    ("mixed", "rows of padding count"): (
        of_the_runtime("rows", "_without_padding", "lambda rows, split: rows"),
        Cause.DIVISION,
    ),
    ("mixed", "each worker draws its mask"): (
        of_the_runtime("own_sight", "Own.drawn", "lambda self, draw: draw.make(draw.shape)"),
        Cause.DIVISION,
    ),
    ("mixed", "each worker normalises by its rows"): (
        of_the_runtime("own_sight", "Own.normalised", BY_EACH),
        Cause.DIVISION,
    ),
    ("adversarial", "a share is not divided"): (of_the_runtime("rows", "_over", "tf.identity"), Cause.DIVISION),
    ("fitted", "logits are left behind"): (
        of_the_runtime("carried", "moved", "lambda tensor, change: change(tensor)"),
        Cause.DIVISION,
    ),
}
SAMPLE = {"no averages", "a batch by rank"}


@pytest.mark.parametrize(
    ("script", "name"), [pytest.param(*each, marks=[pytest.mark.sample] * (each[1] in SAMPLE)) for each in BROKEN]
)
def test_what_is_done_otherwise_is_not_proved(recorded: Recorded, script: str, name: str) -> None:
    change, cause = BROKEN[script, name]
    proof = recorded(script).prove(migrated(SCRIPTS[script], change))
    assert not proof.proved, str(proof)
    if cause is None:  # the job itself has seen it, before anything was trained
        assert proof.could_not_compare or proof.cause == Cause.ORDERS.value, str(proof)
        assert "differs between rank 0 and rank(s) 1" in proof.reason, str(proof)
    else:
        assert (proof.cause, proof.could_not_compare) == (cause.value, False), str(proof)
