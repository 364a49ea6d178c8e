"""Learning rates of Keras' own training that callbacks and assignments change: each is scaled once, or refused."""

from __future__ import annotations

import textwrap

import pytest

from tfdp.migrate import engine
from tfdp.migrate.verify.reference import reference

HEAD = """\
import math
import tensorflow as tf
from tensorflow import keras
from tensorflow.keras import backend as K
(x, y), _ = keras.datasets.mnist.load_data()
model = keras.Sequential([keras.layers.Dense(1)])
"""


def migrated(body: str, optimizer: str = "'adam'", loss: str = "'mse'") -> str:
    """The migrated text, or the codes of the refusals."""
    source = HEAD + f"model.compile({optimizer}, {loss})\n" + textwrap.dedent(body)
    result = engine.migrate("train.py", source.encode(), shard="input")
    if result.refused:
        return " ".join(f.code for f in result.findings if f.refusal)
    again = engine.migrate("train.py", result.after, shard="input")
    assert (again.after, again.findings) == (result.after, ())
    return result.after.decode()


def scheduled(function: str, given: str = "rate") -> str:
    return migrated(
        textwrap.dedent(function) + f"\nmodel.fit(x, y, callbacks=[keras.callbacks.LearningRateScheduler({given})])\n"
    )


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        ("def rate(epoch):\n    return 1e-3 * 0.9**epoch\n", "return dp.scale_lr(1e-3 * 0.9**epoch)"),
        ("def rate(epoch, lr):\n    return lr if epoch < 9 else lr * 0.1\n", "return lr if epoch < 9 else lr * 0.1"),
        ("def rate(epoch, lr):\n    return max(lr * 0.9, 1e-5)\n", "return max(lr * 0.9, dp.scale_lr(1e-5))"),
        (
            "def rate(epoch, lr):\n    if epoch == 5:\n        return 0.1\n    lr = lr * 0.9\n    return lr\n",
            "return dp.scale_lr(0.1)\n    lr = lr * 0.9\n    return lr\n",
        ),
        (
            "def rate(epoch):\n    lr = 1e-3\n    if epoch > 80:\n        lr *= 1e-1\n    return lr\n",
            "        lr *= 1e-1\n    return dp.scale_lr(lr)\n",
        ),
        ("def rate(epoch, lr):\n    return lr - 1e-5\n", "return lr - dp.scale_lr(1e-5)"),
        (
            "def decay(start):\n    def rate(epoch):\n        return start / (1 + epoch)\n    return rate\n"
            "rate = decay(0.1)\n",
            "return dp.scale_lr(start / (1 + epoch))",
        ),
        (
            "class Step:\n    def __call__(self, epoch):\n        return float(0.1 / (1 + epoch))\nrate = Step()\n",
            "return dp.scale_lr(float(0.1 / (1 + epoch)))",
        ),
    ],
)
def test_rates_by_the_epoch(function: str, expected: str) -> None:
    assert expected in scheduled(function)


def test_a_rate_by_the_epoch_as_a_lambda() -> None:
    assert "(lambda epoch: dp.scale_lr(0.1 * 0.9 ** epoch))" in scheduled("", "lambda epoch: 0.1 * 0.9 ** epoch")


@pytest.mark.parametrize(
    "function",
    [
        "from schedules import rate\n",
        "import random\ndef rate(epoch):\n    return 0.1 * random.random()\n",
        "def rate(epoch, lr):\n    return lr * lr\n",
        "def rate(epoch, lr):\n    return lr * float(model.evaluate(x, y))\n",
    ],
)
def test_rates_by_the_epoch_that_are_refused(function: str) -> None:
    assert scheduled(function) == "TFDP020"


def test_the_floor_of_a_plateau_is_scaled() -> None:
    text = migrated("model.fit(x, y, callbacks=[keras.callbacks.ReduceLROnPlateau(min_lr=1e-6)])\n")
    assert "ReduceLROnPlateau(min_lr=dp.scale_lr(1e-6))" in text
    text = migrated("model.fit(x, y, callbacks=[keras.callbacks.ReduceLROnPlateau('loss', min_lr=0)])\n")
    assert "ReduceLROnPlateau('loss', min_lr=0)" in text


@pytest.mark.parametrize(
    ("assigned", "expected"),
    [
        ("model.optimizer.learning_rate = 1e-4", "model.optimizer.learning_rate = dp.scale_lr(1e-4)"),
        ("model.optimizer.lr.assign(1e-4)", "model.optimizer.lr.assign(dp.scale_lr(1e-4))"),
        ("K.set_value(model.optimizer.lr, 1e-4)", "K.set_value(model.optimizer.lr, dp.scale_lr(1e-4))"),
        (
            "model.optimizer.learning_rate = model.optimizer.learning_rate * 0.1",
            "= model.optimizer.learning_rate * 0.1",
        ),
    ],
)
@pytest.mark.parametrize("optimizer", ["'adam'", "keras.optimizers.SGD(0.1)"])
def test_rates_assigned_between_fits(assigned: str, expected: str, optimizer: str) -> None:
    assert expected in migrated(f"model.fit(x, y)\n{assigned}\nmodel.fit(x, y)\n", optimizer)


CALLBACK = """
class Rates(keras.callbacks.Callback):
    def {hook}:
        {body}

model.fit(x, y, callbacks=[Rates()])
"""


@pytest.mark.parametrize(
    ("hook", "body", "expected"),
    [
        (
            "on_epoch_begin(self, epoch, logs=None)",
            "self.model.optimizer.learning_rate = 0.1 / (epoch + 1)",
            "self.model.optimizer.learning_rate = dp.scale_lr(0.1 / (epoch + 1))",
        ),
        (
            "on_epoch_end(self, epoch, logs=None)",
            "if logs['val_loss'] > 1:\n            K.set_value(self.model.optimizer.lr, self.model.optimizer.lr * 0.5)",
            "K.set_value(self.model.optimizer.lr, self.model.optimizer.lr * 0.5)",
        ),
        ("on_train_batch_end(self, batch, logs=None)", "self.model.optimizer.learning_rate = 0.1 / batch", "TFDP020"),
        ("on_batch_begin(self, batch, logs=None)", "self.model.optimizer.learning_rate = 0.1", "TFDP020"),
    ],
)
def test_rates_that_callbacks_assign(hook: str, body: str, expected: str) -> None:
    assert expected in migrated(CALLBACK.format(hook=hook, body=body))


def test_no_rate_is_scaled_where_gradients_of_sums_are_added_up() -> None:
    body = "model.fit(x, y, callbacks=[keras.callbacks.ReduceLROnPlateau(min_lr=1e-6)])\n"
    text = migrated(body, "keras.optimizers.SGD(0.1)", "keras.losses.MeanSquaredError(reduction='sum')")
    assert "dp.scale_lr" not in text


@pytest.mark.parametrize(
    ("compiled", "expected"),
    [
        ("model.compile(loss='mse')", "model.compile(loss='mse', optimizer=tfdp_scaled(\"rmsprop\"))"),
        ("model.compile('adam', 'mse')", "model.compile(tfdp_scaled('adam'), 'mse')"),
        ("model.compile(keras.optimizers.SGD(0.1), 'mse')", "keras.optimizers.SGD(0.1 * 2)"),
    ],
)
def test_the_reference_has_the_rates_of_all_workers(compiled: str, expected: str) -> None:
    text = reference("train.py", f"{HEAD}{compiled}\nmodel.fit(x, y)\n".encode(), 2, "per-worker").decode()
    assert expected in text
    original = reference("train.py", f"{HEAD}{compiled}\nmodel.fit(x, y)\n".encode(), 2, "global").decode()
    assert compiled in original
