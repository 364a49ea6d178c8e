"""`tfdp migrate --lr-scale` and `--warmup-steps`."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from tfdp.migrate.cli import main

SCRIPT = """\
import tensorflow as tf

{before}
dataset = tf.data.Dataset.range(64).batch(8)
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = {optimizer}
for x in dataset:
    with tf.GradientTape() as tape:
        loss = tf.reduce_{kind}(tf.square(model(x)))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
{after}
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    return tmp_path / "train.py"


def migrate(script: Path, *options: str, optimizer: str = "tf.keras.optimizers.SGD(0.1)", **parts: str) -> Result:
    script.write_text(SCRIPT.format(optimizer=optimizer, **{"before": "", "after": "", "kind": "mean", **parts}))
    return CliRunner().invoke(main, ["migrate", *options, str(script)])


@pytest.mark.parametrize(
    ("options", "call"),
    [
        (["--batch", "per-worker"], "SGD(dp.scale_lr(0.1))"),
        (["--lr-scale", "sqrt"], 'SGD(dp.scale_lr(0.1, scale="sqrt"))'),
        (["--warmup-steps", "500"], "SGD(dp.scale_lr(0.1, warmup_steps=500))"),
        (["--lr-scale", "sqrt", "--warmup-steps", "5"], 'SGD(dp.scale_lr(0.1, scale="sqrt", warmup_steps=5))'),
        (["--lr-scale", "none"], "SGD(0.1)"),
    ],
)
def test_how_rates_grow(script: Path, options: list[str], call: str) -> None:
    assert migrate(script, *options).exit_code == 0
    once = script.read_text()
    assert call in once
    assert CliRunner().invoke(main, ["migrate", *options, str(script)]).exit_code == 0
    assert script.read_text() == once


def test_an_optimizer_made_by_name(script: Path) -> None:
    assert migrate(script, "--warmup-steps", "9", optimizer='tf.keras.optimizers.get("adam")').exit_code == 0
    assert 'dp.scale_optimizer(tf.keras.optimizers.get("adam"), warmup_steps=9)' in script.read_text()


@pytest.mark.parametrize(
    ("options", "parts", "reason"),
    [
        (
            ["--warmup-steps", "9"],
            {"after": "optimizer.learning_rate = 0.01"},
            "a learning rate is read, or changed",
        ),
        (
            ["--warmup-steps", "9"],
            {"after": "optimizer.learning_rate *= 0.5"},
            "a learning rate is read, or changed",
        ),
        (["--lr-scale", "sqrt"], {"kind": "sum"}, "not known to be a mean over the batch"),
        (["--lr-scale", "none"], {"kind": "sum"}, "not known to be a mean over the batch"),
    ],
)
def test_what_cannot_grow_so_is_refused(script: Path, options: list[str], parts: dict[str, str], reason: str) -> None:
    result = migrate(script, *options, **parts)
    assert result.exit_code == 1
    assert reason in result.output
    assert "tfdp.runtime" not in script.read_text()


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        (["--batch", "global", "--lr-scale", "sqrt"], "are for --batch per-worker"),
        (["--batch", "global", "--warmup-steps", "5"], "are for --batch per-worker"),
        (["--lr-scale", "none", "--warmup-steps", "5"], "needs a factor to rise to"),
        (["--warmup-steps", "-1"], "-1"),
    ],
)
def test_options_that_contradict_each_other(script: Path, options: list[str], reason: str) -> None:
    result = migrate(script, *options)
    assert result.exit_code == 2
    assert reason in result.output
