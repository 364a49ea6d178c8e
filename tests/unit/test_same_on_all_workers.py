"""Whether a value is the same on all workers has one answer, whoever asks: here for expressions after each epoch."""

from __future__ import annotations

import libcst as cst
import pytest

from tfdp.migrate.facts import read
from tfdp.migrate.facts.sameness import Mark

_SCRIPT = """\
import argparse, collections, glob, json, math, os, random, sys, time
import numpy as np
import tensorflow as tf
from absl import flags
from elsewhere import foreign, table

parser = argparse.ArgumentParser()
args = parser.parse_args()
x = np.ones((640, 4), "float32")
y = x[:, :1]
train = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
test = tf.data.Dataset.from_tensor_slices((x, y)).batch(16)
model = tf.keras.Sequential([tf.keras.layers.Input((4,)), tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.SGD(0.01)
losses, seen, settings = [], {{}}, {{"lr": 0.1, "steps": [1, 2]}}
counter, moving, rate = tf.Variable(0), tf.Variable(0.0), 0.1
step, patience, best, previous = 0, 0, 1e9, None

class Meter:
    def __init__(self):
        self.total, self.n = 0.0, 0
    def push(self, value):
        self.total += value
        self.n += 1
    @property
    def mean(self):
        return self.total / self.n
    def count(self):
        return self.n

class Config:
    width = 8
    def __init__(self, depth):
        self.depth = depth

class History:
    def __init__(self):
        self.kept = []
    def push(self, value):
        self.kept.append(value)
    def __getitem__(self, place):
        return self.kept[place]
    def __lt__(self, other):
        return self.kept[-1] < other
    def __call__(self):
        return self.kept[-1]

class Clock:
    def __enter__(self):
        return time.time()
    def __exit__(self, *_):
        pass

meter, history, config = Meter(), History(), Config(3)

class Schedule:
    def __init__(self, function, foreign_function):
        self.function, self.foreign_function = function, foreign_function


def double(value):
    return 2 * value

def pair(value):
    return value, 7

def files_below(folder):
    return sum(files_below(f) if os.path.isdir(f) else 1 for f in os.listdir(folder))

def factorial(n):
    return 1 if n < 2 else n * factorial(n - 1)

def called_elsewhere(value):
    return value

def by_the_clock(value):
    return value if time.time() % 2 > 1 else 0

def shuffled_by_chance():
    order = list(range(9))
    random.SystemRandom().shuffle(order)
    return order

schedule, network = Schedule(double, foreign), foreign.build()
late = Schedule(by_the_clock, foreign)

for epoch in range(3):
    for images, labels in train:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(model(images) - labels))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
        step += 1
        counter.assign_add(1)
        losses.append(float(loss))
        seen[int(labels[0])] = 1
        meter.push(float(loss))
        history.push(float(loss))
    rate *= 0.5
    total = 0.0
    for images_of_test, labels_of_test in test:
        total += float(tf.reduce_mean(model(images_of_test) - labels_of_test))
    first, *others = 1, 2, os.getpid()
    with Clock() as started:
        pass
    probed = {expression}
"""

_SAME = (
    "3 * 4",
    "epoch",
    "epoch % 2 == 0 and epoch > 1",
    "args.learning_rate",
    "flags.FLAGS.learning_rate",
    "sys.argv[1]",
    "len(losses)",
    "len(x)",
    "x.shape[0] // 16",
    "math.ceil(len(x) / 16)",
    "images.shape[0]",
    "step",
    "step % 100 == 0",
    "counter",
    "int(counter) > 3",
    "meter.n",
    "meter.count()",
    "rate",
    "rate * 0.5 ** epoch",
    "optimizer.learning_rate",
    "optimizer.iterations",
    "float(optimizer.learning_rate.numpy())",
    "isinstance(loss, float)",
    "loss.dtype",
    "tf.linalg.global_norm(gradients)",
    "{0: True}.get(epoch, False)",
    "settings['lr']",
    "settings['steps'][0]",
    "config.depth + config.width",
    "double(epoch)",
    "model(x[:1] * 0 + epoch).shape",
    "pair(float(loss))[1]",
    "factorial(epoch)",
    "[n for n in range(10) if n % 3]",
    "np.maximum(epoch, 2.0)",
    "tf.cast(epoch, tf.float32) / 3",
    "os.path.join('runs', str(epoch))",
    "'model-%d' % epoch",
    "f'{epoch:03d}'",
    "previous is None",
    "config == 3",
    "first",
    "np.arange(10)[epoch]",
)
_PROCESS = (
    "time.time()",
    "os.getpid()",
    "double(time.time())",
    "by_the_clock(time.time())",
    "random.SystemRandom().random()",
    "[random.SystemRandom().random() for _ in range(3)][0]",
    "int.from_bytes(os.urandom(4), 'little')",
    "shuffled_by_chance()[0]",
    "others[1]",
    "started",
)
_CHANCE = (
    "os.path.exists('stop')",
    "os.environ.get('STOP')",
    "json.load(open('settings.json'))['lr']",
    "len(glob.glob('*.stop'))",
    "files_below('data')",
    "best if os.path.exists('stop') else 0",
)
_LIKE_ONE_PROCESS = (
    "np.random.rand()",
    "random.random()",
    "total",
    "float(model.evaluate(test))",
    "loss",
    "float(loss) > 3",
    "images",
    "labels[0]",
    "losses[-1]",
    "max(losses)",
    "np.mean(losses)",
    "meter.mean",
    "history[-1]",
    "history < 0.1",
    "history()",
    "min(history)",
    "float(meter)",
    "len(seen)",
    "len(images[images > 0.5])",
    "tf.boolean_mask(images, images > 0.5).shape[0]",
    "len(str(float(loss)))",
    "double(float(loss))",
    "pair(float(loss))[0]",
    "[k for k in losses if k > 3]",
    "np.zeros(int(loss)).shape[0]",
    "epoch if float(loss) > 3 else 7",
    "float(loss) > 3 and epoch > 1",
    "(last := float(loss))",
    "foreign(epoch)",
    "table.lookup(epoch)",
    "input()",
    "double(foreign(epoch))",
    "schedule.foreign_function(epoch)",
    "network(epoch)",
    "network.score(epoch)",
    "late.function(epoch)",
)


def marks(expression: str) -> frozenset[Mark]:
    script = read(_SCRIPT.format(expression=expression))
    statement = next(n for n in script.index.order if isinstance(n, cst.Assign) and _is_probe(n))
    return script.agreement.sameness.of(statement.value)


def _is_probe(node: cst.Assign) -> bool:
    return isinstance(target := node.targets[0].target, cst.Name) and target.value == "probed"


@pytest.mark.parametrize("expression", [*_SAME, *_LIKE_ONE_PROCESS])
def test_what_is_the_same_on_all_workers(expression: str) -> None:
    assert marks(expression) == frozenset()


@pytest.mark.parametrize("expression", _PROCESS)
def test_what_each_process_makes_for_itself(expression: str) -> None:
    assert marks(expression) == {Mark.PROCESS}


@pytest.mark.parametrize("expression", _CHANCE)
def test_what_each_process_finds(expression: str) -> None:
    assert marks(expression) == {Mark.CHANCE}
