"""Scripts that train by `fit` within the vocabulary of sharded input, and outside it."""

from __future__ import annotations

import pytest
from test_vocabulary import outside

from tfdp.migrate import engine
from tfdp.rules._base import Policy

FIT = """\
import argparse
import numpy as np
from tensorflow import keras

{before}
parser = argparse.ArgumentParser()
parser.add_argument("--units", type=int, default=8)
args = parser.parse_args()
(x, y), (x_test, y_test) = keras.datasets.mnist.load_data()
x, x_test = x / 255.0, x_test / 255.0


def build(units):
    inputs = keras.Input((28, 28))
    flat = keras.layers.Flatten()(inputs)
    hidden = keras.layers.Dense(units, activation="relu")(flat)
    {layer}
    return keras.Model(inputs, keras.layers.Dense(10)(hidden))


def main():
    model = build(args.units)
    {made}
    model.compile("adam", loss={loss}, metrics={metrics})
    history = model.fit({data}, batch_size=32, epochs=2, {options})
    print(history.history["loss"][-1], model.evaluate(x_test, y_test))
    {after}


if __name__ == "__main__":
    main()
"""
_FIT = {
    "before": "",
    "layer": "hidden = keras.layers.Dropout(0.1)(hidden)",
    "made": "model.summary()",
    "loss": "keras.losses.SparseCategoricalCrossentropy(from_logits=True)",
    "metrics": '["accuracy", keras.metrics.SparseTopKCategoricalAccuracy(k=3)]',
    "data": "x, y",
    "options": "validation_split=0.1",
    "after": 'model.save("model.keras")',
}


def _and(more: str) -> dict[str, str]:
    """Another model, that is trained on a dataset."""
    compiled = "model.compile('sgd', loss=keras.losses.MeanSquaredError())"
    data = "data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8); get = lambda: data"
    return {"before": "import tensorflow as tf", "made": f"{compiled}; {data}; {more}"}


def fit(**parts: str) -> str:
    return FIT.format(**{**_FIT, **parts})


@pytest.mark.parametrize(
    "parts",
    [
        {},
        {"loss": "'mse'", "metrics": "['mae']", "options": "verbose=2, callbacks=[keras.callbacks.EarlyStopping()]"},
        {"made": "for layer in model.layers[:-1]:\n        layer.trainable = False"},
        {"loss": "['mae']"},
        {"made": "keras.optimizers.schedules.ExponentialDecay(0.1, 13, decay_rate=0.5)"},
        {"loss": "{'dense': keras.losses.huber}"},
        {"layer": "hidden = keras.layers.concatenate([hidden, flat])"},
        {"layer": "hidden = keras.activations.softmax(hidden)"},
        {"before": "order = [int(i) for i in np.random.permutation(10)]"},
        _and("model.fit(data)"),
    ],
)
def test_fits_within_the_vocabulary(parts: dict[str, str]) -> None:
    assert outside(fit(**parts)) == ""
    found = engine.migrate("train.py", fit().encode(), Policy("input"))
    assert (found.road, found.refused) == ("input", False)


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ({"before": "def loss_of(a, b):\n    return a\n", "loss": "loss_of"}, "`loss_of` as a loss"),
        ({"loss": "'dice'"}, "`'dice'` as a loss"),
        (
            {
                "before": "import tensorflow as tf",
                "made": "held = tf.data.Dataset.from_tensor_slices((x, y)).shuffle(99).batch(8).take(3)",
                "options": "validation_data=held",
            },
            "`held`, a drawn part of the data, to validate on",
        ),
        (
            {"after": "model.compile({'class_name': 'SGD', 'config': {'use_ema': True}}, loss='mse')"},
            "` as an optimizer",
        ),
        ({"after": "model.compile('lamb', loss='mse')"}, "`'lamb'` as an optimizer"),
        # 65 / (13 / 3) is 14.999999 in float32: a step of the staircase comes one step late.
        ({"made": "keras.optimizers.schedules.ExponentialDecay(0.1, 13, 0.5, staircase=True)"}, "ExponentialDecay(0.1"),
        ({"made": "keras.optimizers.schedules.ExponentialDecay(0.1, 13, 0.5, True)"}, "ExponentialDecay(0.1"),
        ({"loss": "'hinge'"}, "`'hinge'` as a loss"),
        ({"loss": "{'dense': 'squared_hinge'}"}, "`'squared_hinge'` as a loss"),
        ({"loss": "kind", "before": "kind = 'mse'"}, "`kind` as a loss"),
        ({"loss": "keras.losses.hinge"}, "`keras.losses.hinge`"),
        ({"loss": "keras.losses.SquaredHinge()"}, "`keras.losses.SquaredHinge()`"),
        ({"loss": "keras.losses.tversky"}, "`keras.losses.tversky`"),
        ({"loss": "keras.losses.Dice()"}, "`keras.losses.Dice()`"),
        ({"metrics": "[lambda a, b: a]"}, "`lambda a, b: a` as a metric"),
        ({"metrics": "['accuracy', 'AUC']"}, "`'AUC'` as a metric"),
        ({"metrics": "args.units"}, "`args.units`"),
        ({"metrics": "[keras.metrics.AUC()]"}, "`keras.metrics.AUC()`"),
        # A layer of the script's own may mix rows behind a gate, while training, or in its gradient alone.
        ({"before": "class Own(keras.layers.Layer):\n    def call(self, x):\n        return x"}, "`class Own`"),
        ({"before": "class Own(keras.Model):\n    pass"}, "`class Own`"),
        ({"layer": "hidden = keras.layers.Dropout(0.1, (1, 8))(hidden)"}, "keras.layers.Dropout(0.1, (1, 8))"),
        ({"layer": "other = keras.Input(shape=())"}, "keras.Input(shape=())"),
        ({"layer": "hidden = keras.layers.Reshape(target_shape=())(hidden)"}, "target_shape=()"),
        ({"layer": "hidden = keras.layers.Lambda(lambda t: t - t[0])(hidden)"}, "keras.layers.Lambda("),
        ({"layer": "hidden = keras.layers.LayerNormalization(axis=0)(hidden)"}, "axis=0"),
        ({"layer": "hidden = keras.layers.LayerNormalization(axis=-2)(hidden)"}, "axis=-2"),
        ({"layer": "hidden = keras.layers.BatchNormalization()(hidden)"}, "keras.layers.BatchNormalization()"),
        ({"layer": "hidden = keras.applications.ResNet50()(hidden)"}, "keras.applications.ResNet50()"),
        ({"layer": "hidden = keras.layers.Softmax(0)(hidden)"}, "keras.layers.Softmax(0)"),
        ({"layer": "hidden = keras.layers.concatenate([hidden, hidden], axis=args.units)"}, "axis=args.units"),
        ({"layer": "hidden = keras.layers.Reshape(())(hidden)"}, "keras.layers.Reshape(())"),
        ({"layer": "hidden = hidden - hidden[0]"}, "`hidden[0]`"),
        ({"layer": "hidden = hidden + flat"}, "`hidden + flat`"),
        ({"layer": "hidden = keras.layers.Dense(3, activity_regularizer='l2')(hidden)"}, "activity_regularizer"),
        ({"layer": "hidden = keras.layers.Dense(3, None, True, 'ones', 'ones', None, None, 'l2')(hidden)"}, "'ones'"),
        (_and("model.fit(data, validation_split=0.0)"), "`model.fit(data, validation_split=0.0)`"),
        (
            _and("model.fit(get(), validation_data=get().take(3))"),
            "`model.fit(get(), validation_data=get().take(3))`, on",
        ),
        (_and("model.fit(data); model.evaluate(get())"), "`model.evaluate(get())`, on data that are trained on, too,"),
        (
            {"options": "callbacks=[keras.callbacks.ModelCheckpoint('a', 'loss', 0, False, False, 'auto', 8)]"},
            "`keras.callb",
        ),
        ({"data": "batches(), steps_per_epoch=3", "before": "def batches():\n    yield x, y\n"}, "`yield x, y`"),
        ({"options": "callbacks=[keras.callbacks.LambdaCallback(print)]"}, "`print`"),
        ({"after": "if history.history['loss'][-1] > 1:\n        model.fit(x, y)"}, "a decision on"),
        ({"options": "validation_data=(x_test, y_test), validation_steps=1"}, "`model.fit("),
        ({"after": "for loss in history.history['loss']:\n        x = x + 1"}, "`history.history['loss']`"),
        ({"after": "model.fit(x, model.predict(x))"}, "`model.fit(x, model.predict(x))`"),
        (
            {"options": "callbacks=[keras.callbacks.EarlyStopping(monitor='val_left_loss')]"},
            "`'val_left_loss'` to be monitored",
        ),
        ({"options": "callbacks=[keras.callbacks.EarlyStopping('val_' + 'left_loss')]"}, "to be monitored"),
    ],
)
def test_fits_outside_it(parts: dict[str, str], said: str) -> None:
    assert said in outside(fit(**parts)), outside(fit(**parts))
    found = engine.migrate("train.py", fit(**parts).encode(), Policy("input"))
    assert (found.refused, found.changed) == (True, False)
