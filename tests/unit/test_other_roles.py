"""The batch and the rate are changed only where their numbers, and the optimizer, are used for nothing else."""

import pytest

from tfdp.migrate import engine
from tfdp.rules._base import Policy

SCRIPT = """\
import math
import tensorflow as tf

BATCH, LR, EPOCHS = 8, 0.01, 3
x, y = tf.ones([64, 4]), tf.ones([64, 1])
steps = len(x) // BATCH
model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
optimizer = tf.keras.optimizers.{optimizer}
data = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(64).batch(BATCH)
for epoch in range(EPOCHS):
    for rows, wanted in data:
{before}
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(rows) - wanted) ** 2)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
{after}
"""
SGD = "SGD(LR)"
HARMLESS = {
    "nothing": (SGD, "", ""),
    "what is shown": (SGD, "", "        print('of', BATCH, f'{LR:.3f}', steps, float(loss))"),
    "a schedule by steps": ("SGD(tf.keras.optimizers.schedules.CosineDecay(LR, EPOCHS * steps))", "", ""),
    "a part of the rate": (
        SGD + "\ncritic = tf.keras.optimizers.Adam(LR / 10)",
        "",
        "        critic.apply_gradients(zip(gradients, model.trainable_variables))",
    ),
    "settings": ("AdamW(LR, weight_decay=0.004, beta_2=0.9, clipnorm=1.0)", "", ""),
    "a checkpoint": (SGD + "\nkept = tf.train.Checkpoint(model=model, optimizer=optimizer)", "", ""),
    "a function of the file": (SGD + "\ndef sized(size):\n    return size\nprint(sized(BATCH))", "", ""),
    "a constant that is no rate": (SGD + "\nEPSILON = 0.01", "", "        print(EPSILON)"),
}
OTHER = {
    "a comparison": (SGD, "        if len(rows) < BATCH:\n            continue", ""),
    "decay by hand": (SGD, "", "        model.trainable_variables[0].assign(model.trainable_variables[0] * (1 - LR))"),
    "a setting by the batch": ("AdamW(LR, weight_decay=0.05 * BATCH / 64)", "", ""),
    "a setting by the rate": ("SGD(LR, momentum=1 - LR)", "", ""),
    "a number by the steps": (
        SGD + "\nkeep = 1 - 1 / steps",
        "",
        "        model.trainable_variables[0].assign(keep * model.trainable_variables[0])",
    ),
    "parts of a batch": (SGD, "        for part in range(BATCH // 4):\n            print(part)", ""),
    "a setting that counts steps": ("SGD(LR, use_ema=True, ema_overwrite_frequency=4)", "", ""),
    "settings that are not seen": ("SGD(LR, **settings())", "", ""),
    "a rate that is read": (SGD, "", "        rate = float(getattr(optimizer, 'learning_rate'))"),
    "variables of an optimizer": (SGD, "", "        for each in optimizer.variables:\n            each.assign(0.1)"),
    "an optimizer given to others": (SGD + "\nvars(optimizer)", "", ""),
    "a callback that counts": (SGD + "\nsaves = tf.keras.callbacks.ModelCheckpoint('m.keras', save_freq=3)", "", ""),
}


def kept(case: tuple[str, str, str]) -> str:
    optimizer, before, after = case
    source = SCRIPT.format(optimizer=optimizer, before=before, after=after).encode()
    found = engine.migrate("train.py", source, Policy("calls", "per-worker"))
    assert (b"global_batch_size(BATCH)" in found.after) != found.refused
    return found.findings[0].message if found.refused else ""


@pytest.mark.parametrize("case", HARMLESS)
def test_numbers_that_are_nothing_else_are_changed(case: str) -> None:
    assert kept(HARMLESS[case]) == ""


@pytest.mark.parametrize("case", OTHER)
def test_else_the_batch_is_kept(case: str) -> None:
    assert kept(OTHER[case])


def test_a_callback_that_saves_by_the_epoch_counts_no_steps() -> None:
    assert kept((SGD + "\nsaves = tf.keras.callbacks.ModelCheckpoint('m.keras', save_freq='epoch')", "", "")) == ""
