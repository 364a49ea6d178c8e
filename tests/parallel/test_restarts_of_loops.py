"""`--max-restarts` with loops of the script's own: they go on from their checkpoints as if nothing had been."""

import re

import pytest

pytest.importorskip("tensorflow")

EPOCHS = """
import hashlib, os, signal, sys, time
import numpy as np, tensorflow as tf
import tfdp.runtime as dp
dp.init(shard_calls=True)
keras = tf.keras
folder, killed = sys.argv[1], sys.argv[2:]
keras.utils.set_random_seed(3)
x = np.random.normal(size=(48, 4)).astype("float32")
y = (x.sum(1, keepdims=True) > 0).astype("float32")
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(48).batch(16)
# Keras 2 draws inside of the step, which cannot be put back.
dropped = [keras.layers.Dropout(0.3)] if hasattr(keras, "ops") else []
model = keras.Sequential([
    keras.Input((4,)), keras.layers.Dense(8, activation="relu"), *dropped, keras.layers.Dense(1)
])
optimizer = keras.optimizers.Adam(0.05)
mean, done = keras.metrics.Mean(), tf.Variable(0)

@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(a, training=True) - b) ** 2)
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    mean.update_state(loss)

checkpoint = tf.train.Checkpoint(model=model, optimizer=optimizer, done=done)
manager = tf.train.CheckpointManager(checkpoint, folder + "/ckpt", max_to_keep=2)
checkpoint.restore(manager.latest_checkpoint)
began, best, losses, rates = time.time(), float("inf"), [], {}
for epoch in range(int(done), 6):
    mean.reset_state()
    fresh = keras.metrics.Mean()
    for batch, (a, b) in enumerate(data):
        now = f"{epoch}.{batch}"
        if dp.rank() == 1 and now in killed and not os.path.exists(f"{folder}/{now}"):
            os.mknod(f"{folder}/{now}")
            os.kill(os.getpid(), signal.SIGKILL)
        step(a, b)
        fresh.update_state(a)
    losses.append(float(mean.result()))
    best, rates[epoch] = min(best, losses[-1]), float(fresh.result())
    noise = np.random.rand()
    done.assign_add(1)
    manager.save()
said = losses, best, rates, noise, np.random.rand(), [os.path.basename(each) for each in manager.checkpoints]
digest = hashlib.sha256(repr(said).encode())
variables = optimizer.variables() if callable(optimizer.variables) else optimizer.variables
for each in (*model.variables, *variables):
    digest.update(np.asarray(each).tobytes())
print("model", digest.hexdigest())
"""

STEPS = """
import collections, hashlib, os, random, signal, sys
import numpy as np, tensorflow as tf
import tfdp.runtime as dp
dp.init(shard_calls=True)
keras = tf.keras
folder, killed = sys.argv[1], sys.argv[2:]

class Stopper:
    patience = 3
    def __init__(self):
        self.best, self.wait, self.history, self.seen = None, 0, collections.deque(), collections.defaultdict(list)

    def update(self, loss):
        self.history.append(loss)
        self.seen[len(self.history) % 2].append(loss)
        self.wait = 0 if self.best is None or loss < self.best else self.wait + 1
        self.best = loss if self.wait == 0 else self.best
        Stopper.patience += 1

def counting():
    count = 0
    def one():
        nonlocal count
        count += 1
        return count
    return one

class Trainer:
    def __init__(self):
        keras.utils.set_random_seed(5)
        self.draws, self.old, self.own = np.random.default_rng(1), np.random.RandomState(2), random.Random(3)
        x = self.draws.normal(size=(64, 4)).astype("float32")
        y = (x.sum(1, keepdims=True) > 0).astype("float32")
        self.stopper, self.count, self.tensors = Stopper(), counting(), []
        self.data = iter(tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).repeat().batch(16))
        layers = keras.layers.Dense(8, activation="relu"), keras.layers.Dense(1)
        self.model = keras.Sequential([keras.Input((4,)), *layers])
        self.optimizer = keras.optimizers.SGD(0.05, momentum=0.9)
        self.steps = tf.Variable(0, dtype=tf.int64)
        kept = tf.train.Checkpoint(model=self.model, optimizer=self.optimizer, steps=self.steps)
        self.manager = tf.train.CheckpointManager(kept, folder + "/ckpt", 1)
        if self.manager.latest_checkpoint:
            kept.restore(self.manager.latest_checkpoint)

    def step(self, a, b):
        noise = self.draws.normal() + self.old.normal() + self.own.random()
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self.model(a + noise * 0.1) - b) ** 2)
        weights = self.model.trainable_variables
        self.optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
        self.count()
        return loss

    def train(self):
        total = 0.0
        while self.steps < 23:
            a, b = next(self.data)
            now = str(int(self.steps))
            if dp.rank() == 0 and now in killed and not os.path.exists(f"{folder}/{now}"):
                os.mknod(f"{folder}/{now}")
                os.kill(os.getpid(), signal.SIGKILL)
            loss = self.step(a, b)
            total += loss
            self.steps.assign_add(1)
            if int(self.steps) % 5 == 0:
                self.stopper.update(float(loss))
                self.tensors.append(loss)
                self.manager.save()
        return float(total)

def main():
    trainer = Trainer()
    total = trainer.train()
    stopper = trainer.stopper
    said = (
        total, stopper.history, dict(stopper.seen), stopper.best, stopper.wait, Stopper.patience, trainer.count(),
        [float(each) for each in trainer.tensors], trainer.draws.normal(), trainer.old.normal(), trainer.own.random(),
    )
    digest = hashlib.sha256(repr(said).encode())
    optimizer = trainer.optimizer.variables
    for each in (*trainer.model.variables, *(optimizer() if callable(optimizer) else optimizer)):
        digest.update(np.asarray(each).tobytes())
    print("model", digest.hexdigest())

main()
"""

CONTINUED = """
import os, signal, sys
import numpy as np, tensorflow as tf
import tfdp.runtime as dp
dp.init(shard_calls=True)
keras = tf.keras
folder, kind = sys.argv[1:]
keras.utils.set_random_seed(3)
x, y = np.ones((8, 4), "float32"), np.ones((8, 1), "float32")
model = keras.Sequential([keras.Input((4,)), keras.layers.Dense(1)])
optimizer, done = keras.optimizers.SGD(0.01), tf.Variable(0)
manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, done=done), folder + "/ckpt", 2)
latest = manager.latest_checkpoint if kind != "by itself" else None
if latest:
    manager.checkpoint.restore(latest)
    if kind == "another rate":
        optimizer.learning_rate.assign(0.02)
    if kind == "draws":
        np.random.rand()
first = int(done)
last = {"another end": first + 4, "no step": 4 - 4 * (first > 0)}.get(kind, 4)
if kind == "by itself" and os.path.exists(folder + "/own.npz"):
    model.set_weights([np.load(folder + "/own.npz")[name] for name in "ab"])

def step():
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    optimizer.apply_gradients(zip(tape.gradient(loss, model.trainable_variables), model.trainable_variables))

for epoch in range(0 if kind in ("from the first",) else first, last):
    step()
    if epoch == 2 and dp.rank() == 0 and not os.path.exists(folder + "/killed"):
        os.mknod(folder + "/killed")
        os.kill(os.getpid(), signal.SIGKILL)
    done.assign_add(1)
    manager.save()
    a, b = model.get_weights()
    np.savez(folder + "/own.npz", a=a, b=b)
"""
OTHERS = {
    "another end": "its loop was to end before",
    "another rate": "learning_rate is not what it was",
    "by itself": "does it load a file that it has written itself",
    "draws": "random numbers are drawn from is not what it was",
    "from the first": "epoch is not what it was, and cannot be put back",
    "no step": "after which it made steps before the restart, and has made none",
}

UNKNOWN = """
import sys
import numpy as np, tensorflow as tf
import tfdp.runtime as dp
dp.init(shard_calls=True)
x = np.ones((8, 4), "float32")
layer = tf.keras.layers.Dense(1, use_bias=False)
checkpoint = tf.train.Checkpoint(layer=layer)
batches = tf.data.Dataset.from_tensor_slices(x).batch(4)

def step(noise=0.0):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((layer(x) + noise) ** 2)
    weights = layer.trainable_variables
    weights[0].assign_sub(0.01 * tape.gradient(loss, weights)[0])

def save():
    checkpoint.write(f"{sys.argv[1]}/ckpt")

def numbers():
    yield from range(3)

for batch in batches:
    step()
    save()
for name in ("a", "b"):
    step()
    save()
total = 3
for each in range(total):
    total = each
    step()
    save()
own = numbers()
for each in own:
    step()
    save()
for _ in range(2):
    next(own, None)
    step()
    save()
del own
[(step(), save()) for _ in range(2)]

def counted():
    step()
    return 10.0

running = 0.0
while running < 30.0:
    running += counted()
    save()
for _ in range(2):
    list(batches.shuffle(4).repeat(2))
    step()
    save()

@tf.function
def noisy():
    step(tf.random.normal([8, 1]))

for _ in range(2):
    noisy()
    save()
"""
REASONS = (
    "goes over `batches`, and there is no knowing where it is",
    r"goes over `\('a', 'b'\)`, and there is no knowing where it is",
    "changes total itself, by which it goes",
    "goes over `own`, and there is no knowing where it is",
    "own is a generator, which goes on",
    "(is one of which there is no knowing where it is|calls (is|may be) no plain call)",
    "running is read in the statement that makes the step",
    "its data are drawn by ShuffleDataset, and RepeatDataset goes over them",
    "a step uses RandomStandardNormal",
)


@pytest.mark.timeout(900)
@pytest.mark.long(keeps=1)
@pytest.mark.parametrize(
    ("script", "killed"), [(EPOCHS, ["2.1", "4.0"]), (STEPS, ["7", "11", "17"])], ids=["epochs", "steps"]
)
def test_a_loop_whose_ranks_are_killed_ends_as_one_that_is_left_alone(script, killed, alone_and_killed):
    ends = []
    for _, kills, done in alone_and_killed(script, killed):
        assert done.stderr.count("the script's loop goes on after") == len(kills)
        ends.append(re.findall(r"model \w{64}", done.stdout))
    assert ends[0] == ends[1]
    assert len(ends[0]) == 1


@pytest.mark.long(keeps=2)
@pytest.mark.parametrize("kind", OTHERS)
def test_what_would_be_another_training_is_none(kind, launch, tmp_path):
    done = launch(2, CONTINUED, str(tmp_path), kind, options=("--max-restarts", "3"), limit_seconds=400)
    assert done.returncode == 1, done.stderr
    assert done.stderr.count("all ranks are started again") == 1
    assert OTHERS[kind] in done.stderr


@pytest.mark.long
def test_a_loop_that_no_process_could_be_in_the_middle_of_is_said(launch, tmp_path):
    done = launch(2, UNKNOWN, str(tmp_path), options=("--max-restarts", "1"), limit_seconds=400)
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "does not go on from this checkpoint" in line]
    assert len(said) == len(REASONS), done.stderr
    for line, reason in zip(said, REASONS, strict=True):
        assert re.search(reason, line), line
