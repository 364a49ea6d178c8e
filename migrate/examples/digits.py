"""Which digit of seven segments is in a noisy image? A Keras model, trained by compile and fit, on one GPU or a CPU."""

import argparse

import numpy as np
import tensorflow as tf

# Which segments are on: the upper, middle and lower bar, then upper left, upper right, lower left, lower right.
SEGMENTS = "1011111 0000101 1110110 1110101 0101101 1111001 1111011 1000101 1111111 1111101".split()


def digits(images, seed):
    """Images of 16 by 12 grey points, in which a digit is drawn somewhere under noise, and the digits."""
    random = np.random.default_rng(seed)
    shapes = np.zeros((10, 11, 7), "float32")
    for digit, segments in enumerate(SEGMENTS):
        bars = [
            (slice(0, 1), slice(1, 6)),
            (slice(5, 6), slice(1, 6)),
            (slice(10, 11), slice(1, 6)),
            (slice(1, 5), slice(0, 1)),
            (slice(1, 5), slice(6, 7)),
            (slice(6, 10), slice(0, 1)),
            (slice(6, 10), slice(6, 7)),
        ]
        for bar, segment in zip(bars, segments):
            shapes[digit][bar] = float(segment)
    labels = random.integers(0, 10, images)
    pictures = random.normal(0, 0.3, (images, 16, 12, 1)).astype("float32")
    for picture, label in zip(pictures, labels):
        row, column = random.integers(0, 6), random.integers(0, 6)
        picture[row : row + 11, column : column + 7, 0] += shapes[label]
    return pictures, labels.astype("int32")


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=5)
parser.add_argument("--batch-size", type=int, default=48)
args = parser.parse_args()

images, labels = digits(1920, seed=1)
test_images, test_labels = digits(480, seed=2)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Conv2D(16, 3, activation="relu"),
        tf.keras.layers.Conv2D(16, 3, strides=2, activation="relu"),
        tf.keras.layers.Flatten(),
        tf.keras.layers.Dense(48, activation="relu"),
        tf.keras.layers.Dense(10),
    ]
)
model.compile(
    optimizer=tf.keras.optimizers.Adam(0.002),
    loss=tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
model.fit(
    images,
    labels,
    batch_size=args.batch_size,
    epochs=args.epochs,
    validation_data=(test_images, test_labels),
    verbose=2,
)
model.save_weights("digits.weights.h5")
