"""What the script's Python does where something is written: that is rank 0's, and what it leaves behind everyone's."""

import os
import shutil
import tempfile

import numpy as np
import tensorflow as tf

from . import L, compiled, descend, examples, fitted, keras, kind, mlp, some

X, Y = examples(24, 6)


class Counts(tf.Module):
    """Counts how often it is traced, and draws there."""

    def __init__(self, net):
        super().__init__()
        self.net, self.count = net, 0

    def serve(self, rows):
        self.count += 1 + np.random.rand()
        return self.net(rows)


@kind
def a_saved_model_that_counts_its_traces():
    net, optimizer = mlp(6, 1), keras.optimizers.SGD(0.1)
    net.build((None, 6))
    module = Counts(net)
    with tempfile.TemporaryDirectory() as folder:
        for number in range(3):
            rows, wanted = some(9, X, Y)

            def loss(rows=rows, wanted=wanted):
                return tf.reduce_mean((net(rows) - wanted) ** 2) * (1 + module.count)

            yield [net, optimizer], descend(optimizer, [net], loss)
            signature = [tf.TensorSpec([None, 6], tf.float64)]
            module.served = tf.function(module.serve, input_signature=signature)
            tf.saved_model.save(module, export_dir=os.path.join(folder, str(number)))


@kind
def a_function_that_copies_files_calls():
    """What it was told to leave out is counted."""
    left_out = []

    def ignore(_, names):
        left_out.extend(name for name in names if name.endswith(".tmp"))
        return left_out

    with tempfile.TemporaryDirectory() as folder:
        os.makedirs(os.path.join(folder, "from"))
        for name in ("a.txt", "b.tmp"):
            with open(os.path.join(folder, "from", name), "w", encoding="utf-8"):
                pass
        shutil.copytree(os.path.join(folder, "from"), os.path.join(folder, "to"), ignore=ignore)
        left_out.append(os.listdir(os.path.join(folder, "to")) == ["a.txt"])
    net, optimizer = mlp(6, 1), keras.optimizers.SGD(0.1)
    net.build((None, 6))
    for _ in range(2):
        rows, wanted = some(9, X, Y)

        def loss(rows=rows, wanted=wanted):
            return tf.reduce_mean((net(rows) - wanted) ** 2) * (len(left_out) + left_out[-1])

        yield [net, optimizer], descend(optimizer, [net], loss)


class Anneals(keras.callbacks.ModelCheckpoint):
    """Keeps the model, and makes its noise smaller."""

    def __init__(self, path, noise):
        super().__init__(path, save_weights_only=True)
        self.noise, self.seen = noise, []

    def on_epoch_end(self, epoch, logs=None):
        super().on_epoch_end(epoch, logs)
        self.noise.scale.assign(0.5 / (epoch + 1))
        self.seen.append(logs["loss"])


class Noise(L.Layer):
    """Adds some, outside of training too."""

    def __init__(self):
        super().__init__()
        self.scale = tf.Variable(1.0, dtype=tf.float64, trainable=False)

    def call(self, inputs):
        return inputs + self.scale * tf.random.normal(tf.shape(inputs), dtype=inputs.dtype)


@kind(sample=True)
def a_checkpoint_of_ones_own_that_changes_the_model():
    noise = Noise()
    net = compiled(keras.Sequential([keras.Input((6,)), L.Dense(4, "tanh"), noise, L.Dense(1)]))
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "{epoch}.weights.h5")
        keeps = Anneals(path, noise)
        yield from fitted(net, X, Y, batch_size=8, epochs=3, callbacks=[keeps])
        net.load_weights(path.format(epoch=2))
        yield from fitted(net, X, Y * len(keeps.seen), batch_size=8, epochs=1)
