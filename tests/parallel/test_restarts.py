"""`--max-restarts`: a job whose ranks are killed in the middle ends with the model of one that was left alone."""

import importlib.metadata
import os

import pytest

pytest.importorskip("tensorflow")
IS_KERAS_2 = os.environ.get("TF_USE_LEGACY_KERAS") == "1" or importlib.metadata.version("keras").startswith("2.")
WITH_KERAS_3 = pytest.mark.skipif(IS_KERAS_2, reason="Keras 2 cannot begin a fit in the middle")

TRAINS = """
import hashlib, os, signal, sys
import numpy as np, tensorflow as tf
import tfdp.runtime as dp
dp.init(shard_calls=True)
keras = tf.keras
folder, data, killed = sys.argv[1], sys.argv[2], sys.argv[3:]

def rate(epoch, before):
    now = f"{fits}.{epoch}"
    if dp.rank() == 1 and now in killed and not os.path.exists(f"{folder}/{now}"):
        os.mknod(f"{folder}/{now}")
        os.kill(os.getpid(), signal.SIGKILL)
    return before * 0.9

keras.utils.set_random_seed(3)
x = np.random.normal(size=(48, 4)).astype("float32")
y = (x.sum(1, keepdims=True) > 0).astype("float32")
model = keras.Sequential([
    keras.Input((4,)), keras.layers.Dense(8, activation="relu"), keras.layers.Dropout(0.3),
    keras.layers.BatchNormalization(), keras.layers.Dense(1),
])
model.compile(keras.optimizers.Adam(0.05), keras.losses.BinaryCrossentropy(from_logits=True), metrics=["accuracy"])

class Own(keras.Model):  # its weights, counter and what its optimizer remembers are made by its first step
    def __init__(self):
        super().__init__()
        self.layer, self.second, self.counter = keras.layers.Dense(1), keras.optimizers.SGD(0.01, momentum=0.9), None

    def call(self, inputs):
        return self.layer(inputs)

    def train_step(self, batch):
        if self.counter is None:
            with tf.init_scope():
                self.counter = tf.Variable(0.0)
        self.counter.assign_add(1.0)
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(batch[0]) - batch[1]) ** 2) / self.counter
        weights = self.layer.trainable_variables
        self.second.apply_gradients(zip(tape.gradient(loss, weights), weights))
        return {"mine": loss}

if data == "own":
    model = Own()
    model.compile()
dataset = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(48).map(lambda a, b: (a + tf.random.normal([4]), b))
given = {"x": dataset.batch(16)} if data == "dataset" else {"x": x, "y": y, "batch_size": 16}
validation = {} if data == "own" else {"validation_data": (x, y)}
watched = "mine" if data == "own" else "val_loss"
fits, said = 0, []
for fits in range(2):
    path = f"{folder}/{fits}.csv"
    callbacks = [
        keras.callbacks.LearningRateScheduler(rate), keras.callbacks.CSVLogger(path),
        keras.callbacks.EarlyStopping(watched, 0.001, 3, mode="min", restore_best_weights=True),
        keras.callbacks.ModelCheckpoint(f"{folder}/a.weights.h5", watched, 0, True, True, "min"),
        keras.callbacks.ReduceLROnPlateau(watched, patience=1, mode="min", min_delta=0.02),
    ]
    fitted = model.fit(epochs=5, verbose=0, callbacks=callbacks, **validation, **given)
    said += [fitted.history, fitted.epoch]
    dp.barrier()
    said += [open(path).read(), np.random.rand()]
digest = hashlib.sha256(repr(said).encode())
for each in (*model.variables, *model.optimizer.variables, *getattr(model, "second", model.optimizer).variables):
    digest.update(np.asarray(each).tobytes())
print("model", dp.rank(), digest.hexdigest())
"""

REFUSED = """
import sys
import numpy as np, tensorflow as tf
import tfdp.runtime as dp
dp.init(shard_calls=True)
keras = tf.keras
x, y = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")

def fit(epochs=2, callbacks=(), eagerly=False, layers=(), data=None, metrics=(), **options):
    model = keras.Sequential([keras.Input((4,)), *layers, keras.layers.Dense(1)])
    model.compile("sgd", "mse", metrics=list(metrics), run_eagerly=eagerly)
    data = {"x": x, "y": y} if data is None else {"x": data}
    model.fit(epochs=epochs, callbacks=list(callbacks), verbose=0, **data, **options)

class Draws(keras.layers.Layer):
    def call(self, inputs):
        return inputs + tf.random.normal(tf.shape(inputs))

def copied(inputs):
    return inputs

class Python(keras.layers.Layer):
    def call(self, inputs):
        return tf.ensure_shape(tf.numpy_function(copied, [inputs], tf.float32), inputs.shape)

class Own(keras.callbacks.Callback):
    pass

class Counts(keras.metrics.Mean):
    def update_state(self, labels, outputs, sample_weight=None):
        super().update_state(outputs)

class Reads(keras.layers.Layer):
    def call(self, inputs):
        return inputs + 0 * tf.reduce_sum(next(outside)[0])

def rows():
    yield from zip(x[:, None], y[:, None])

signature = (tf.TensorSpec((1, 4)), tf.TensorSpec((1, 1)))
batches = tf.data.Dataset.from_tensor_slices((x, y)).batch(4)
fit(callbacks=[Own()])
fit(eagerly=True)
fit(data=batches.repeat(), steps_per_epoch=2)
fit(data=tf.data.Dataset.from_generator(rows, output_signature=signature))
fit(data=batches.shuffle(2).repeat(2))
fit(data=batches.shuffle(2).cache())
fit(data=tf.data.Dataset.range(2).flat_map(lambda each: batches))
fit(data=batches.map(lambda a, b: (a + tf.random.normal([4]), b)).cache())
fit(callbacks=[keras.callbacks.BackupAndRestore(sys.argv[1])])
fit(metrics=[Counts()])
outside = iter(batches.repeat())
fit(layers=[Reads()])
fit(layers=[Draws()])
fit(layers=[Python()])
"""
REASONS = (
    "the callback Own may remember something",
    "its steps run as Python",
    "with steps_per_epoch an iterator may go on",
    "its data come from Python",
    "its data are drawn by ShuffleDataset, and RepeatDataset goes over them",
    "its data are drawn by ShuffleDataset, and CacheDataset goes over them",
    "a function of FlatMapDataset makes iterators of another dataset",
    "its data are drawn, and kept by `cache`",
    "BackupAndRestore goes on by itself",
    "the metric Counts is the script's own",
    "a step uses an iterator, a table or the like from outside",
    "a step uses RandomStandardNormal",
    "a step runs Python (copied)",
)

GOES_BY_A_FILE = """
import os, signal, sys
import numpy as np, tensorflow as tf
import tfdp.runtime as dp
dp.init(shard_calls=True)
keras = tf.keras
path = sys.argv[1] + "/own.weights.h5"
x, y = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
if os.path.exists(path):
    model.load_weights(path)

def rate(epoch, before):
    if epoch == 2 and dp.rank() == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    return before

callbacks = [
    keras.callbacks.LearningRateScheduler(rate), keras.callbacks.ModelCheckpoint(path, save_weights_only=True)
]
model.fit(x, y, epochs=4, verbose=0, callbacks=callbacks)
"""


@WITH_KERAS_3
@pytest.mark.timeout(900)
@pytest.mark.long(keeps=1)
@pytest.mark.parametrize(
    ("data", "killed"),
    [("dataset", ["0.2", "1.1"]), ("arrays", ["0.2", "1.0", "1.3"]), ("own", ["0.2", "0.4", "1.3"])],
)
def test_a_job_whose_ranks_are_killed_ends_as_one_that_is_left_alone(data, killed, alone_and_killed):
    ends = []
    for folder, kills, done in alone_and_killed(TRAINS, killed, data):
        assert sum(path.suffix == "" or path.name.count(".") == 1 for path in folder.glob("[01].[0-9]")) == len(kills)
        ends.append(sorted(line.split("model ")[1].replace(str(folder), "") for line in done.stdout.splitlines()))
    assert ends[0] == ends[1]
    assert ends[0]


@WITH_KERAS_3
@pytest.mark.long
def test_what_could_not_go_on_to_the_last_bit_is_said(launch, tmp_path):
    done = launch(2, REFUSED, str(tmp_path), options=("--max-restarts", "1"), limit_seconds=400)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "begins anew after a restart" in line]
    assert len(said) == len(REASONS), done.stderr
    for line, reason in zip(said, REASONS, strict=True):
        assert reason in line


@WITH_KERAS_3
def test_a_script_that_goes_by_what_it_has_written_is_no_continuation(launch, tmp_path):
    done = launch(2, GOES_BY_A_FILE, str(tmp_path), options=("--max-restarts", "3"), limit_seconds=400)
    assert done.returncode == 1, done.stderr
    assert "cannot go on after the restart" in done.stderr
    assert "kernel is not what it was when it began the first time" in done.stderr
    assert done.stderr.count("all ranks are started again") == 1
    assert "come no further than the last time" in done.stderr


@pytest.mark.skipif(not IS_KERAS_2, reason="Keras 3 can")
def test_a_fit_of_keras_2_begins_anew(launch, tmp_path):
    done = launch(2, GOES_BY_A_FILE, str(tmp_path), options=("--max-restarts", "3"), limit_seconds=400)
    assert "begins anew after a restart: Keras 2 has no way for that" in done.stderr
    assert "no epoch of a fit and no tf.train.Checkpoint was kept" in done.stderr
    assert done.returncode == 128 + 9
