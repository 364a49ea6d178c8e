"""Which arm of two spirals is a point on? A Keras model, trained by a loop with a tape, on one GPU or on a CPU."""

import argparse

import numpy as np
import tensorflow as tf


def spirals(points, seed):
    """Points on two arms that wind round each other, with some noise, and the arm that each is on."""
    random = np.random.default_rng(seed)
    arms = np.arange(points) % 2
    angles = random.uniform(0.3, 1.0, points) * 2 * np.pi
    turned = angles + arms * np.pi
    places = np.stack([angles * np.cos(turned), angles * np.sin(turned)], axis=1) / 4
    return (places + random.normal(0, 0.05, places.shape)).astype("float32"), arms.astype("float32")[:, None]


parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=8)
parser.add_argument("--batch-size", type=int, default=48)
parser.add_argument("--learning-rate", type=float, default=0.003)
args = parser.parse_args()

data = tf.data.Dataset.from_tensor_slices(spirals(1920, seed=1))
data = data.shuffle(1920).batch(args.batch_size)
test_data = tf.data.Dataset.from_tensor_slices(spirals(480, seed=2)).batch(96)

model = tf.keras.Sequential(
    [
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(64, activation="relu"),
        tf.keras.layers.Dense(1),
    ]
)
optimizer = tf.keras.optimizers.Adam(args.learning_rate)
loss_of = tf.keras.losses.BinaryCrossentropy(from_logits=True)
accuracy = tf.keras.metrics.BinaryAccuracy(threshold=0.0)


@tf.function
def train_step(places, arms):
    with tf.GradientTape() as tape:
        loss = loss_of(arms, model(places, training=True))
    gradients = tape.gradient(loss, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    return loss


for epoch in range(args.epochs):
    for places, arms in data:
        loss = train_step(places, arms)
    accuracy.reset_state()
    for places, arms in test_data:
        accuracy.update_state(arms, model(places))
    print(f"epoch {epoch + 1}: loss {float(loss):.3f}, accuracy on new points {float(accuracy.result()):.1%}")

model.save_weights("spirals.weights.h5")
