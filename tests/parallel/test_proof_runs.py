"""How migrated runs can go wrong other than by their numbers, and hazards of randomness, on a script of a few lines."""

from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

pytest.importorskip("tensorflow")

from tfdp.migrate.verify import CouldNotRun, Proof, Recording, prove, record
from tfdp.rules._base import Policy

pytestmark = pytest.mark.usefixtures("forking")

REFERENCE = """
import numpy as np
import tensorflow as tf
# INIT
# SEED
x = np.linspace(-1, 1, 96).astype(np.float32).reshape(48, 2)
y = np.sum(x, 1, keepdims=True) ** 2
order = np.random.permutation(48)
table = tf.Variable(tf.random.normal([48, 3]), name="table")
w = tf.Variable(tf.random.normal([5, 1]), name="w")
m = tf.Variable(tf.fill([5, 1], 0.5), name="m")
data = tf.data.Dataset.from_tensor_slices((order, x[order], y[order]))
data = data.shuffle(48, seed=3)
data = data.repeat().batch(BATCH).take(9)
for step, (i, x, y) in enumerate(data):
    # STEP
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.concat([x, tf.gather(table, i)], 1) @ w - y) ** 2)
    grads = GRADIENT(loss, {"w": w, "table": table})
    assert isinstance(grads["table"], tf.IndexedSlices)
    m.assign(0.9 * m + grads["w"])
    w.assign_sub(0.1 * m)
    table.scatter_sub(tf.IndexedSlices(0.1 * grads["table"].values, grads["table"].indices))
"""
STEPS, WRAPPED = 5, "DistributedGradientTape"
SHARD = "dp.shard(data.shuffle(48, seed=3), source_check=False)"


def alone() -> bytes:
    return REFERENCE.replace("BATCH", "24").replace("GRADIENT", "tape.gradient").encode()


def sharded(*changes: tuple[str, str]) -> bytes:
    """The script for several workers, after `changes`. Its shuffle comes before sharding, and has a seed.

    The runtime's own check of the source is off: it would stop what the proof is to see.
    """
    text = REFERENCE.replace("# INIT", "import tfdp.runtime as dp; dp.init()")
    text = text.replace("BATCH", "dp.local_batch_size(24)").replace("GRADIENT", f"dp.{WRAPPED}(tape).gradient")
    for old, new in (("data.shuffle(48, seed=3)", SHARD), *changes):
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text.encode()


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recording]:
    path = tmp_path_factory.mktemp("proof") / "train.py"
    path.write_bytes(alone())
    with ExitStack() as stack:
        yield stack.enter_context(record(path, 2, STEPS, reference=alone(), batch="global", timeout=200.0))


def test_eager_steps_with_sparse_gradients_and_slots_that_start_elsewhere(recording: Recording) -> None:
    proof = recording.prove(sharded())
    assert proof.proved, proof.reason
    assert [row.variable for row in proof.table] == ["table (48x3)", "w (5x1)", "m (5x1)"]


def test_one_process_is_equal_bit_for_bit(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_bytes(alone())
    proof = prove(path, 1, STEPS, policy=Policy("input", "global"), migrated=sharded(), reference=alone())
    assert proof.proved, proof.reason
    assert (proof.loss, proof.gradient, proof.update) == (0, 0, 0)


@pytest.mark.long
def test_a_rank_that_crashes_is_the_reason(recording: Recording) -> None:
    proof = recording.prove(sharded(("# STEP", "if dp.rank() == 1 and step == 2: raise OSError('the disk is gone')")))
    assert_crashed(proof, "the disk is gone")
    assert proof.table, "the steps before the crash are compared"


@pytest.mark.long
def test_a_rank_that_ends_early_fails(recording: Recording) -> None:
    proof = recording.prove(sharded(("# STEP", "if step == 3: break")))
    assert proof.failure is not None
    assert (proof.failure.kind, proof.failure.step) == ("steps", 3)
    assert not proof.proved


def test_a_variable_left_out_of_training_fails(recording: Recording) -> None:
    proof = recording.prove(sharded(("w.assign_sub(0.1 * m)", "w.assign_sub(0.1 * m * (step != 1))")))
    assert proof.failure is not None
    assert (proof.failure.kind, proof.failure.step, proof.failure.variable) == ("update", 1, "w (5x1)")


def assert_crashed(proof: Proof, words: str) -> None:
    assert not proof.proved
    assert proof.could_not_compare
    assert proof.failure is None
    assert words in proof.reason


NUMPY = "np.random.permutation"
HAZARDS = {
    "a shuffle's seed that differs by rank": ("seed=3", "seed=dp.rank()"),
    "a global seed by rank, mixed into the shuffle's": ("# SEED", "tf.random.set_seed(dp.rank_seed(7))"),
    "a generator of each rank's own": (NUMPY, "np.random.default_rng().permutation"),
}


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("name", HAZARDS)
def test_an_order_that_differs_by_rank_fails(name: str, recording: Recording) -> None:
    proof = recording.prove(sharded(HAZARDS[name]))
    assert proof.failure is not None
    assert (proof.failure.kind, proof.failure.step) == ("loss", 0)


WRITES = """if step == 1:
        open(dp.rank_path("own"), "w").close()
        open(dp.root_path("root"), "w").close()
        dp.on_root(lambda: [tf.train.Checkpoint(w=w).save("ckpt/c"), None][1])"""


@pytest.mark.long
def test_any_shuffle_after_sharding_passes(recording: Recording) -> None:
    proof = recording.prove(sharded((SHARD, "dp.shard(data).shuffle(24)"), ("# STEP", WRITES)))
    assert proof.proved, proof.reason
    assert proof.data is not None
    assert (proof.data.outcome, proof.data.examples) == ("shared", ((12 * STEPS, 12 * STEPS),))
    assert proof.effects is not None
    assert proof.effects.written == (
        ("ckpt/c-1", (0,)),
        ("ckpt/checkpoint", (0,)),
        ("own-0-of-2", (0,)),
        ("own-1-of-2", (1,)),
        ("root", (0,)),
    )


def test_all_examples_for_every_rank_are_no_share(recording: Recording) -> None:
    """In the global mode each rank then computes the same gradient as the reference, and the numbers are equal."""
    proof = recording.prove(sharded((SHARD, "data"), ("dp.local_batch_size(24)", "24")))
    assert not proof.proved
    assert proof.failure is not None
    assert (proof.failure.kind, proof.failure.step) == ("data", 0)
    assert "every rank read all 24 examples" in proof.reason


FILES = {
    "one written by Python": ("np.save('w.npy', w.numpy())", "w.npy"),
    "a checkpoint of another rank": ("dp.rank() and tf.train.Checkpoint(w=w).write('ckpt/c')", "ckpt/c"),
    "one that native code writes": ("dp.rank() and __import__('ctypes').CDLL(None).creat(b'bin', 0o666)", "bin"),
}


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("name", FILES)
def test_files_that_another_rank_writes_fail(name: str, recording: Recording) -> None:
    statement, path = FILES[name]
    proof = recording.prove(sharded(("# STEP", f"if step == 1: {statement}")))
    assert not proof.proved
    assert proof.failure is not None
    assert (proof.failure.kind, proof.failure.rank) == ("files", 1)
    assert f"rank 1 writes {path}" in proof.reason


VALIDATES = """
import numpy as np
import tensorflow as tf
x = np.random.default_rng(3).normal(size=(72, 5)).astype(np.float32)
train = tf.data.Dataset.from_tensor_slices((x[:48], x[:48, :1])).shuffle(48).batch(12)
valid = tf.data.Dataset.from_tensor_slices((x[48:], x[48:, :1])).batch(12)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
sgd = tf.keras.optimizers.SGD(0.1)
def error(x, y):
    return tf.reduce_mean((model(x) - y) ** 2)
def with_a_tape(data, optimizer=None):
    for x, y in data:
        with tf.GradientTape() as tape:
            loss = error(x, y)
        if optimizer is not None:
            optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
def without_one(data, training):
    for x, y in data:
        if training:
            with tf.GradientTape() as tape:
                loss = error(x, y)
            sgd.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))
        else:
            error(x, y)
for epoch in range(2):
    with_a_tape(train, sgd), with_a_tape(valid)
    without_one(train, True), without_one(valid, False)
"""


@pytest.mark.long
def test_what_one_loop_only_validates_on_is_for_every_rank(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text(VALIDATES)
    proof = prove(path, steps=8)
    assert proof.proved, proof.reason
    assert proof.data is not None
    assert proof.data.outcome == "shared"


def test_a_script_that_the_tool_refuses_cannot_be_proved(tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import tensorflow as tf\nprint(tf.__version__)\n")
    with pytest.raises(CouldNotRun):
        prove(path)
