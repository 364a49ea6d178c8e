"""A training of a second: dropout, a fit, and its weights in a file."""

SCRIPT = """
import keras
import numpy as np

keras.utils.set_random_seed(7)
x = np.random.default_rng(1).normal(size=(96, 12)).astype("float32")
y = (x.sum(axis=1) > 0).astype("int32")
model = keras.Sequential([keras.layers.Dense(16, "relu"), keras.layers.Dropout(0.2), keras.layers.Dense(2)])
model.compile(keras.optimizers.Adam(0.01), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(x, y, batch_size=12, epochs=2, verbose=0)
np.savez("weights.npz", *model.get_weights())
"""
