"""Facts about learning rates and numbers of steps: what is scaled and divided, and what is refused instead."""

from __future__ import annotations

import pytest

from tfdp.migrate import engine
from tfdp.migrate.facts import Script, read

HEAD = """
import argparse
import math
import numpy as np
import tensorflow as tf
from absl import flags
from inputs import load, STEPS
"""
TRAIN = """
{before}
x, y = load()
records = tf.data.Dataset.from_tensor_slices((x, y))
data = records.shuffle(9).batch(8)
test_data = tf.data.Dataset.from_tensor_slices(x).batch(8)
model = tf.keras.Sequential([])
{steps}
opt = tf.keras.optimizers.SGD({rate})
for x_batch, y_batch in {loop}:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(model(x_batch) - y_batch)
    grads = tape.gradient(loss, model.trainable_variables)
    opt.apply_gradients(zip(grads, model.trainable_variables))
{after}
"""


def train(rate: str = "0.1", loop: str = "data", before: str = "", steps: str = "", after: str = "") -> Script:
    return read(HEAD + TRAIN.format(rate=rate, loop=loop, before=before, steps=steps, after=after))


def codes(script: Script) -> set[str]:
    return {p.code for p in script.problems("per-worker")}


# --- numbers of steps -------------------------------------------------------------------------------------------------

SCHEDULE = "tf.keras.optimizers.schedules.CosineDecay(1e-3, steps)"
WHOLE = [
    "steps = 1000",
    "steps = 10 * 100 - 5",
    "steps = STEPS",
    "args = argparse.ArgumentParser().parse_args()\nsteps = args.steps * args.epochs",
    "p = argparse.ArgumentParser()\nargs, _ = p.parse_known_args()\nsteps = args.steps",
    "FLAGS = flags.FLAGS\nsteps = FLAGS.steps",
    "steps = len(x) // 8 * 5",
    "steps = int(math.ceil(len(x) / 8)) * 5",
    "steps = max(100, round(x.shape[0] / 8))",
    "n, width = x.shape\nsteps = n // 8",
    "a = np.load('a.npy')\nsteps = len(a[:400]) // 8",
    "(a, b), _ = tf.keras.datasets.mnist.load_data()\nsteps = len(a) // 8",
    "class Config:\n    steps = 1000\nsteps = Config.steps",
    "config = {'steps': 1000, 'name': 'a'}\nsteps = config['steps']",
    "def count(epochs):\n    return epochs * 100\nsteps = count(5)",
    "import os\nsteps = int(os.environ.get('STEPS', '100'))",
    "steps = 10 if STEPS else 1000",
    "_, info = tfds.load('mnist', with_info=True)\nsteps = info.splits['train'].num_examples // 8",
]
SHARE = [
    "steps = len(data) * 2",
    "per_epoch = len(data)\nsteps = per_epoch * STEPS",
    "steps = data.cardinality().numpy() * 2",
    "steps = 2 * int(data.cardinality())",
    "total = len(data) * 10\nwarm = len(data)\nsteps = total - warm",
]
UNCERTAIN = [
    "steps = len(data) * 2 + 5",
    "steps = 100 if STEPS else len(data)",
    "steps = max(len(data), 100)",
    "steps = len(records) // 8",
    "steps = len(test_data) * 2",
    "steps = len(list(data))",
    "seen = []\nfor b in data:\n    seen.append(b)\nsteps = len(seen)",
    "seen = np.stack([b for b, _ in data])\nsteps = len(seen)",
    "seen = np.stack([b for b, _ in data])\nsteps = seen.shape[0]",
    "steps = load()",
    "steps = 10\nfor _ in data:\n    steps += 1",
    "args = argparse.ArgumentParser().parse_args()\nargs.steps = len(data)\nsteps = args.steps",
    "args = argparse.ArgumentParser().parse_args()\nsetattr(args, 'steps', len(data))\nsteps = args.steps",
    "config = {'steps': 1000}\nconfig['steps'] = len(data)\nsteps = config['steps']",
    "config = {'steps': 1000}\nconfig.update(steps=len(data))\nsteps = config['steps']",
    "class Config:\n    steps = 1000\nConfig.steps = len(data)\nsteps = Config.steps",
]


@pytest.mark.parametrize("steps", WHOLE)
def test_a_number_of_the_one_process_script_is_divided(steps: str) -> None:
    steps = "import tensorflow_datasets as tfds\n" + steps if "tfds" in steps else steps
    schedule = train(SCHEDULE, steps=steps)
    assert len(schedule.steps.of_schedules) == 1
    assert not codes(schedule)
    take = train(loop="data.take(steps)", steps=steps)
    assert len(take.steps.takes) == 1
    assert not codes(take)


@pytest.mark.parametrize("steps", SHARE)
def test_a_number_in_proportion_to_the_sharded_dataset_is_left(steps: str) -> None:
    schedule = train(SCHEDULE, steps=steps)
    assert not schedule.steps.of_schedules
    assert not codes(schedule)
    take = train(loop="data.take(steps)", steps=steps)
    assert not take.steps.takes
    assert not codes(take)


@pytest.mark.parametrize("steps", UNCERTAIN)
def test_an_uncertain_number_of_steps_is_refused(steps: str) -> None:
    for script in (train(SCHEDULE, steps=steps), train(loop="data.take(steps)", steps=steps)):
        assert not script.steps.of_schedules
        assert not script.steps.takes
        assert "TFDP011" in codes(script) or "TFDP010" in codes(script)


@pytest.mark.parametrize(
    ("steps", "refused"),
    [
        ("steps = len(records) // 8", True),
        ("n = records.cardinality().numpy()\nsteps = n // 8", True),
        ("steps = len(data) * 2 + 5", False),
        ("steps = load()", False),
        ("steps = 1000", False),
    ],
)
def test_in_global_mode_only_a_number_of_sharded_records_shrinks(steps: str, refused: bool) -> None:
    for script in (train(SCHEDULE, steps=steps), train(loop="data.take(steps)", steps=steps)):
        assert ("TFDP011" in {p.code for p in script.problems("global")}) == refused


def test_a_repeated_dataset_taken_by_its_own_length() -> None:
    script = train(loop="data.repeat().take(2 * per_epoch)", steps="per_epoch = len(data)")
    assert not script.steps.takes
    assert not codes(script)


def test_a_take_of_batches_before_sharding_counts_no_steps() -> None:
    script = train(loop="records.batch(8).take(5).unbatch().batch(4)")
    assert not script.steps.takes


def test_every_schedule_that_may_be_chosen_is_divided() -> None:
    decay = "tf.keras.optimizers.schedules.{}"
    chosen = f"{decay.format('CosineDecay(0.1, 100)')} if STEPS else {decay.format('ExponentialDecay(0.1, 50, 0.9)')}"
    assert len(train("schedule", steps=f"schedule = {chosen}").steps.of_schedules) == 2


@pytest.mark.parametrize("steps", ["dp.local_steps(100)", "steps", "2 * steps"])
def test_a_divided_number_is_not_divided_again(steps: str) -> None:
    before = "import tfdp.runtime as dp\nsteps = dp.local_steps(100)"
    for script in (
        train(SCHEDULE.replace("steps)", f"{steps})"), before=before),
        train(loop=f"data.take({steps})", before=before),
    ):
        assert not script.steps.of_schedules
        assert not script.steps.takes


@pytest.mark.parametrize("steps", [*WHOLE[:3], *SHARE])
def test_a_second_run_changes_no_number_of_steps(steps: str) -> None:
    source = HEAD + TRAIN.format(rate=SCHEDULE, loop="data.take(steps)", before="", steps=steps, after="")
    once = engine.migrate("train.py", source.encode())
    assert once.changed
    assert b"local_steps(dp.local_steps" not in once.after
    again = engine.migrate("train.py", once.after)
    assert (again.after, again.findings) == (once.after, ())


# --- rates that change ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "after",
    [
        "opt.learning_rate = 0.01",
        "opt.learning_rate.assign(0.01)",
        "tf.keras.backend.set_value(opt.learning_rate, 0.01)",
        "from tensorflow.keras import backend as K\nK.set_value(opt.lr, 0.01)",
        "lr = opt.learning_rate\nlr.assign(0.01)",
        "lr = opt.learning_rate\ntf.keras.backend.set_value(lr, 0.01)",
        "def rate(epoch):\n    return 0.1 ** epoch\nfor e in range(3):\n    opt.lr = rate(e)",
        "rates = [0.1, 0.01]\nfor e in range(2):\n    opt.lr = rates[e]",
        "lr = 0.1\nfor e in range(9):\n    lr *= 0.5\n    opt.lr = lr",
        "import math\nfor e in range(9):\n    opt.lr = 0.1 * math.cos(e / 9)",
        "opt.lr *= 0.5",
        "opt.learning_rate = opt.learning_rate / 2",
        "opt.learning_rate = 0.5 * float(opt.learning_rate.numpy())",
        "lr = opt.lr.numpy()\nlr *= 0.5\nopt.lr.assign(lr)",
        "def half(v):\n    return v * 0.5\nopt.lr = half(opt.lr)",
        "def slower(v):\n    v.assign(0.5 * v)\nslower(opt.learning_rate)",
        "opt.lr = max(opt.lr * 0.5, 1e-6)",
        "opt.lr = tf.maximum(1e-6, opt.lr * 0.5)",
        "opt.lr = opt.lr - 0.01",
        "if opt.lr > 1e-4:\n    opt.lr = opt.lr * 0.5",
        "if opt.lr * 0.5 > 1e-4:\n    opt.lr = 1e-3 if STEPS else 1e-4",
    ],
)
def test_a_rate_that_is_assigned_keeps_the_scripts_batch(after: str) -> None:
    script = train(after=after)
    assert script.rate_changes
    assert script.unwidened is not None


@pytest.mark.parametrize(
    "after",
    [
        "print(opt.learning_rate)",
        "print('rate', float(opt.learning_rate.numpy()))",
        "lr = opt.learning_rate\nprint(lr)",
        "rates = []\nrates.append(float(opt.learning_rate))",
        "import wandb\nwandb.log({'lr': opt.learning_rate})",
        "class T:\n    def __init__(self, lr):\n        self.lr = self.learning_rate = lr\nT(0.1)",
        "class M(tf.keras.Model):\n    def __init__(self):\n        self.learning_rate = 1",
        "args = argparse.ArgumentParser().parse_args()\nargs.lr = 0.5",
        "args = argparse.ArgumentParser().parse_args()\nfor k in ['a']:\n    setattr(args, k, 1)",
        "import config\nconfig.lr = 0.5",
        "ema = tf.Variable(0.)\nema.assign(1.)",
    ],
)
def test_reading_a_rate_and_other_objects_rates_are_fine(after: str) -> None:
    assert not codes(train(after=after))


@pytest.mark.parametrize(
    "rate",
    [
        "decay=0.1, **settings",
        "helper.rate(0.1)",
        "tf.Variable(0.1)",
        "lambda: 0.1",
        "other.learning_rate",
        "0.5 * other.lr",
    ],
)
def test_a_rate_that_is_not_understood_is_refused(rate: str) -> None:
    before = "import helper\nsettings = {}\nother = tf.keras.optimizers.Adam(0.1)"
    assert codes(train(rate, before=before)) == {"TFDP020"}


@pytest.mark.parametrize(("decay", "times"), [("1e-4", 1), ("0.1 / 5", 1), ("STEPS", 1), ("0.0", 0), ("None", 0)])
def test_a_decay_by_the_step_is_multiplied(decay: str, times: int) -> None:
    script = train(f"0.1, decay={decay}")
    assert len(script.steps.decays) == times
    assert not codes(script)


def test_a_decay_by_the_length_of_the_share_is_refused() -> None:
    assert codes(train("0.1, decay=1 / len(data)")) == {"TFDP011"}


@pytest.mark.parametrize("rate", ["0.1, decay=0.0", "lr=0.1", "float(STEPS)", "tf.constant(0.1)", "np.float32(0.1)"])
def test_a_plain_rate_is_scaled(rate: str) -> None:
    script = train(rate)
    assert len(script.rates) == 1
    assert not codes(script)
