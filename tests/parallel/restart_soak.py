"""`make soak`: a rank is killed every 20 seconds, for five minutes; the job ends as one that was left alone, and leaves
nothing behind.
"""

import argparse
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

from fault_table import left

BEGINS = """
import hashlib, os, sys
import numpy as np, tensorflow as tf
import tfdp.runtime as dp
dp.init(shard_calls=True)
os.mknod(f"pid.{dp.rank()}.{os.getpid()}")  # what other ranks than the first print is not shown
keras, epochs = tf.keras, int(sys.argv[1])
keras.utils.set_random_seed(3)
x = np.random.normal(size=(4096, 64)).astype("float32")
y = (x.sum(1) > 0).astype("int64")
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(4096, seed=5).batch(32)
model = keras.Sequential([
    keras.Input((64,)), keras.layers.Dense(256, activation="relu"), keras.layers.Dropout(0.3),
    keras.layers.BatchNormalization(), keras.layers.Dense(2),
])
loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
"""
FIT = """
model.compile("adam", loss, metrics=["accuracy"])
history, optimizer = model.fit(data, epochs=epochs, verbose=0).history, model.optimizer
"""
LOOP = """
optimizer, accuracy = keras.optimizers.Adam(), keras.metrics.SparseCategoricalAccuracy()
history, done = [], tf.Variable(0)

@tf.function
def step(a, b):
    with tf.GradientTape() as tape:
        found = model(a, training=True)
        error = loss(b, found)
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(error, weights), weights))
    accuracy.update_state(b, found)
    return error

manager = tf.train.CheckpointManager(tf.train.Checkpoint(model=model, optimizer=optimizer, done=done), "ckpt", 2)
manager.restore_or_initialize()
for epoch in range(int(done), epochs):
    accuracy.reset_state()
    for a, b in data:
        error = step(a, b)
    history.append((float(error), float(accuracy.result()), np.random.rand()))
    done.assign_add(1)
    manager.save()
"""
ENDS = """
digest = hashlib.sha256(repr((history, np.random.rand())).encode())
for each in (*model.variables, *optimizer.variables):
    digest.update(np.asarray(each).tobytes())
os.mknod(f"model.{dp.rank()}.{digest.hexdigest()}")
"""
AGAIN = "all ranks are started again"
SCRIPTS = {"fit": BEGINS + FIT + ENDS, "loop": BEGINS + LOOP + ENDS}
KEPT = ("train.py", "said.txt", "tmp", "pid.", "model.", "ckpt")


class Job:
    """One launch, in a folder of its own."""

    def __init__(self, folder, script, ranks, epochs, restarts):
        self.folder, self.temporary = folder, folder / "tmp"
        self.temporary.mkdir(parents=True)
        (folder / "train.py").write_text(script)
        options = ["-np", str(ranks), "--max-restarts", str(restarts)]
        with (folder / "said.txt").open("w") as said:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "tfdp.runtime.launch", *options, str(folder / "train.py"), str(epochs)],
                cwd=folder,
                env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3", "TMPDIR": str(self.temporary)},
                stdout=said,
                stderr=subprocess.STDOUT,
            )

    def living(self):
        """The process numbers of the ranks."""
        found = (int(path.suffix[1:]) for path in self.folder.glob("pid.*"))
        return sorted(pid for pid in found if pathlib.Path(f"/proc/{pid}").exists())

    def models(self):
        """What the ranks say of their models at the end."""
        self.process.wait()
        return sorted(path.name for path in self.folder.glob("model.*"))

    def lines(self):
        return (self.folder / "said.txt").read_text().splitlines()

    def left(self, memory):
        """What is left behind."""
        yield from left(self.folder, self.temporary, memory)
        yield from (f"{path.name} is left" for path in self.folder.iterdir() if not path.name.startswith(KEPT))


def killed_every(seconds, job, until, choose):
    """Kill one of the ranks after so many seconds, again and again; how often."""
    kills = 0
    while time.monotonic() + seconds < until:
        try:
            job.process.wait(timeout=seconds)
            return kills
        except subprocess.TimeoutExpired:
            os.kill(choose(job.living()), signal.SIGKILL)
        kills += 1
    return kills


def listening():
    """The TCP ports of this host at which somebody listens."""
    tables = [pathlib.Path(f"/proc/net/{name}").read_text().splitlines()[1:] for name in ("tcp", "tcp6")]
    return {line.split()[1] for table in tables for line in table if line.split()[3] == "0A"}


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("script", choices=SCRIPTS, nargs="?", default="fit", help="how it trains")
    parser.add_argument("-np", type=int, default=2)
    parser.add_argument("--epochs", type=int, default=120, help="as many as take longer than the kills")
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--every", type=float, default=20.0, metavar="SECONDS")
    asked = parser.parse_args()
    memory, ports, problems = set(os.listdir("/dev/shm")), listening(), []
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder)
        began = time.monotonic()
        job = Job(path / "killed", SCRIPTS[asked.script], asked.np, asked.epochs, restarts=999)
        kills = killed_every(asked.every, job, began + 60 * asked.minutes, random.Random(0).choice)
        found, seconds = job.models(), time.monotonic() - began
        again = sum(AGAIN in line for line in job.lines())
        alone = Job(path / "alone", SCRIPTS[asked.script], asked.np, asked.epochs, restarts=0)
        wanted = alone.models()
        if found != wanted or len(wanted) != asked.np:
            problems += [f"{found} is not {wanted}", *job.lines()[-30:]]
        if again != kills or kills < 0.8 * 60 * asked.minutes / asked.every:
            problems.append(f"{kills} kills and {again} restarts: with more --epochs it lasts longer")
        problems += [*job.left(memory), *alone.left(memory)]
    problems += [f"somebody listens at {port}" for port in listening() - ports]
    print(f"{kills} kills, {again} restarts, {seconds:.0f} s: {'; '.join(problems) or f'all as alone, {wanted[0]}'}")
    return int(bool(problems))


if __name__ == "__main__":
    sys.exit(main())
