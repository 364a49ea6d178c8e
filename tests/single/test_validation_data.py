"""The data that Keras keeps for the validations of `fit` are found, on each version of it."""

import numpy as np
import tensorflow as tf

from tfdp.runtime.calls import validation

keras = tf.keras
ROWS = np.zeros((8, 3), "float32")


def ahead(model):
    """Whether what it validates on is read ahead, as TensorFlow chooses."""
    kept = [getattr(getattr(model, holder, None), name, None) for holder, name in validation.VALIDATED]
    (data,) = [each for each in kept if each is not None]
    return data.options().experimental_optimization.inject_prefetch


class Asks(keras.callbacks.Callback):
    """Before each validation, as `evaluate` does."""

    def __init__(self):
        super().__init__()
        self.found = []

    def on_test_begin(self, logs=None):  # noqa: ARG002
        before = ahead(self.model)
        validation.read_as_it_is_asked(self.model)
        self.found.append((before, ahead(self.model)))


def test_what_fit_validates_on_is_read_as_it_is_asked():
    model, asks = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1)]), Asks()
    model.compile("sgd", "mse")
    data = tf.data.Dataset.from_tensor_slices((ROWS, ROWS[:, :1])).batch(4).repeat()
    model.fit(ROWS, ROWS[:, :1], epochs=2, verbose=0, validation_data=data, validation_steps=2, callbacks=[asks])
    assert asks.found == [(None, False), (False, False)]
    validation.read_as_it_is_asked(model)  # nothing is kept after `fit`
