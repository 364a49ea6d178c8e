"""Learning rates of Keras' own training that callbacks and assignments change: each is scaled once, or refused."""

from __future__ import annotations

import textwrap

import pytest

from tfdp.migrate import engine
from tfdp.migrate.verify.reference import reference

HEAD = """\
import tensorflow as tf
from tensorflow import keras
(x, y), _ = keras.datasets.mnist.load_data()
model = keras.Sequential([keras.layers.Dense(1)])
"""


def migrated(body: str, optimizer: str = "'adam'", loss: str = "'mse'") -> str:
    """The migrated text, or the codes of the refusals."""
    source = HEAD + f"model.compile({optimizer}, {loss})\n" + textwrap.dedent(body)
    result = engine.migrate("train.py", source.encode())
    if result.refused:
        return " ".join(f.code for f in result.findings if f.refusal)
    again = engine.migrate("train.py", result.after)
    assert (again.after, again.findings) == (result.after, ())
    return result.after.decode()


def scheduled(function: str, given: str = "rate") -> str:
    return migrated(
        textwrap.dedent(function) + f"\nmodel.fit(x, y, callbacks=[keras.callbacks.LearningRateScheduler({given})])\n"
    )


CALLBACK = """
class Rates(keras.callbacks.Callback):
    def {hook}:
        {body}

model.fit(x, y, callbacks=[Rates()])
"""


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
