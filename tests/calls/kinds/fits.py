"""`fit` and its relatives."""

import numpy as np
import tensorflow as tf

from . import L, Recorder, called_back, compiled, examples, fitted, keras, kind, mlp, some, square

X, Y = examples(48)
LABELS = (Y[:, 0] > 0.5).astype(int)


def classes():
    return keras.losses.SparseCategoricalCrossentropy(from_logits=True)


def classifier():
    return keras.Sequential([L.Dense(16, activation="tanh"), L.Dropout(0.2), L.Dense(2)])


@kind
def fit_with_class_weights_and_validation():
    model = compiled(classifier(), classes(), metrics=["accuracy"])
    stop = keras.callbacks.EarlyStopping("val_loss", patience=1, restore_best_weights=True)
    options = {"class_weight": {0: 1.0, 1: 3.0}, "validation_split": 0.2, "callbacks": [stop]}
    yield from fitted(model, X, LABELS, batch_size=16, epochs=3, **options)


@kind
def fit_with_sample_weights():
    model = compiled(classifier(), classes(), weighted_metrics=["accuracy"])
    yield from fitted(model, X, LABELS, sample_weight=np.random.rand(48), batch_size=11, epochs=2)


class OwnRate(keras.callbacks.Callback):
    """Sets the learning rate by the logs of the epoch."""

    def on_epoch_end(self, epoch, logs=None):
        del epoch
        self.model.optimizer.learning_rate = 0.02 * (0.5 + float(logs["loss"]))


@kind(sample=True)
def fit_with_callbacks_that_decide():
    def batches():
        while True:
            chosen = np.random.permutation(48)[:10]
            yield X[chosen], LABELS[chosen], np.random.rand(10)

    model = compiled(classifier(), classes(), metrics=["accuracy"], weighted_metrics=["accuracy"])
    callbacks = [OwnRate(), keras.callbacks.ReduceLROnPlateau("loss", patience=0)]
    yield from fitted(model, batches(), steps_per_epoch=3, epochs=3, callbacks=callbacks)


class Worst(keras.metrics.Metric):
    """The largest error of any example: no sum."""

    def __init__(self):
        super().__init__(name="worst")
        self.most = self.add_weight(name="most", initializer="zeros")

    def update_state(self, y_true, y_pred, sample_weight=None):
        del sample_weight
        self.most.assign(tf.maximum(self.most, tf.reduce_max(tf.abs(tf.cast(y_true, y_pred.dtype) - y_pred))))

    def result(self):
        return self.most


@kind(sample=True)
def fit_that_is_ended_by_metrics_that_are_no_means():
    """Counts and a maximum decide, of training and of validation."""
    counts = [keras.metrics.TruePositives(name="right"), keras.metrics.FalsePositives(name="wrong")]
    model = compiled(mlp(8, 1, activation="sigmoid"), "mse", metrics=[Worst(), *counts])
    stop = keras.callbacks.EarlyStopping("worst", patience=1, baseline=1.0, mode="min")
    plateau = keras.callbacks.ReduceLROnPlateau("val_right", mode="max", min_delta=9, patience=1)
    options = {"validation_data": (X[:20], LABELS[:20, None]), "callbacks": [stop, plateau]}
    yield from fitted(model, X, LABELS[:, None], batch_size=16, epochs=4, **options)


@kind
def fit_with_a_schedule_of_python():
    rate = keras.callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.7 + 0.001 * epoch)
    yield from fitted(compiled(mlp(8, 1)), X, Y, batch_size=20, epochs=3, callbacks=[rate])


@kind
def fit_with_a_schedule_of_steps():
    schedule = keras.optimizers.schedules.CosineDecay(0.05, 48 // 10 * 2, warmup_target=0.1, warmup_steps=2)
    model = compiled(mlp(8, 1), optimizer=keras.optimizers.Adam(schedule))
    yield from fitted(model, X, Y, batch_size=10, epochs=2)


@kind
def fit_with_several_steps_per_execution():
    yield from fitted(compiled(classifier(), classes(), steps_per_execution=3), X, LABELS, batch_size=10, epochs=2)


@kind
def fit_that_runs_eagerly():
    yield from fitted(compiled(classifier(), classes(), run_eagerly=True), X, LABELS, batch_size=15, epochs=1)


@kind
def fit_compiled_by_xla():
    yield from fitted(compiled(mlp(8, 1), jit_compile=True), X, Y, batch_size=15, epochs=1)


@kind(keras=3)
def fit_that_accumulates_gradients():
    optimizer = keras.optimizers.Adam(0.02, gradient_accumulation_steps=3)
    yield from fitted(compiled(classifier(), classes(), optimizer), X, LABELS, batch_size=7, epochs=2)


@kind(keras=3)
def fit_with_an_average_of_weights():
    optimizer = keras.optimizers.Adam(
        0.02, use_ema=True, ema_momentum=0.8, ema_overwrite_frequency=2, weight_decay=0.01
    )
    yield from fitted(compiled(mlp(8, 1), optimizer=optimizer), X, Y, batch_size=10, epochs=1)


@kind
def fit_with_a_loss_of_the_script():
    def loss(wanted, predicted):
        return tf.sqrt(square(predicted, wanted)) + 0.1 * tf.math.reduce_std(predicted)

    yield from fitted(compiled(mlp(8, 1), loss, metrics=["mae"]), X, Y, batch_size=11, epochs=2)


@kind
def fit_of_one_output_per_class_with_soft_labels():
    model = keras.Sequential([L.Dense(8, activation="relu"), L.Dense(2, activation="softmax")])
    loss = keras.losses.CategoricalCrossentropy(label_smoothing=0.1)
    yield from fitted(compiled(model, loss, metrics=["accuracy"]), X, np.eye(2)[LABELS], batch_size=11, epochs=1)


class Contrastive(keras.Model):
    """A step of its own, with a matrix of all pairs of the batch."""

    def __init__(self):
        super().__init__()
        self.net, self.mean = mlp(16, 6), keras.metrics.Mean("loss")
        self.loss_of_pairs = classes()

    def call(self, x):
        return self.net(x)

    def train_step(self, data):
        first, second = data
        with tf.GradientTape() as tape:
            alike = tf.einsum("ae,pe->ap", self.net(first, training=True), self.net(second, training=True))
            loss = self.loss_of_pairs(tf.range(tf.shape(first)[0]), alike)
        found = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(found, self.trainable_variables, strict=True))
        self.mean.update_state(loss)
        return {"loss": self.mean.result()}


@kind
def fit_with_a_step_of_its_own():
    pairs = tf.data.Dataset.from_tensor_slices((X, X + 0.1)).batch(11)
    yield from fitted(compiled(Contrastive(), None), pairs, epochs=2)


class Autoencoder(keras.Model):
    """Two optimizers and losses in one step; trackers that are reset by Keras."""

    def __init__(self):
        super().__init__()
        self.encoder, self.decoder = mlp(8, 3), keras.Sequential([L.Dense(8, "relu"), L.Dropout(0.2), L.Dense(8)])
        self.totals = [keras.metrics.Mean("far"), keras.metrics.Mean("large")]
        self.second = keras.optimizers.SGD(0.01)

    @property
    def metrics(self):
        return self.totals

    def call(self, x, training=False):
        return self.decoder(self.encoder(x), training=training)

    def train_step(self, data):
        with tf.GradientTape(persistent=True) as tape:
            code = self.encoder(data, training=True)
            far = square(self.decoder(code, training=True), data)
            large = tf.reduce_mean(tf.norm(code, axis=1))
        found = tape.gradient(far, self.decoder.trainable_variables)
        self.optimizer.apply_gradients(zip(found, self.decoder.trainable_variables, strict=True))
        for weight, gradient in zip(
            self.encoder.trainable_variables, tape.gradient(large, self.encoder.trainable_variables), strict=True
        ):
            weight.assign_sub(0.01 * gradient)
        for total, value in zip(self.totals, (far, large), strict=True):
            total.update_state(value)
        return {total.name: total.result() for total in self.totals}


@kind
def fit_with_a_step_of_several_losses():
    yield from fitted(compiled(Autoencoder(), None), tf.data.Dataset.from_tensor_slices(X).batch(11), epochs=1)


@kind(sample=True)
def train_on_batch():
    model = compiled(mlp(16, 1), metrics=["mae"])
    for _ in range(4):
        rows, wanted = some(10, X, Y)
        yield [model, model.optimizer], np.array(model.train_on_batch(rows, wanted))


@kind
def evaluation_and_prediction_between_epochs():
    model = compiled(classifier(), classes(), metrics=["accuracy"])
    for _ in range(2):
        logs = model.fit(X, LABELS, batch_size=16, epochs=1, verbose=0).history
        scores = model.evaluate(X[:15], LABELS[:15], batch_size=7, verbose=0)
        yield [model, model.optimizer, model.predict(X[:9], verbose=0), np.array(scores)], logs["loss"][0]


@kind
def fit_that_is_continued():
    """Compiled again in between, with another part that learns."""
    model, recorder = compiled(mlp(8, 8, 1)), Recorder()
    model.fit(X, Y, batch_size=16, epochs=1, verbose=0, callbacks=called_back([recorder]))
    model.layers[0].trainable = False
    compiled(model, "mae", keras.optimizers.SGD(0.05))
    model.fit(X, Y, batch_size=9, epochs=1, verbose=0, callbacks=called_back([recorder]))
    yield from recorder.seen


@kind
def transfer_from_a_frozen_body():
    """The body's calls are divided although nothing in it learns; then it learns, too."""
    body = keras.Sequential([L.Conv2D(4, 3, activation="relu"), L.BatchNormalization(), L.GlobalMaxPooling2D()])
    images = np.random.RandomState(0).rand(24, 6, 6, 1)
    body(images[:1])
    body.trainable = False
    image = keras.Input((6, 6, 1))
    model = compiled(keras.Model(image, L.Dense(1)(L.Dropout(0.2)(body(image, training=False)))))
    yield from fitted(model, images, Y[:24], batch_size=9, epochs=1)
    body.trainable = True
    yield from fitted(compiled(model, optimizer=keras.optimizers.SGD(0.01)), images, Y[:24], batch_size=9, epochs=1)


class Divides(keras.layers.Layer):
    """By a number that Python holds: a trace keeps the one that it has read."""

    divisor, traced = 1.0, 0

    def call(self, inputs):
        self.traced += 1
        return inputs / self.divisor


def divided_by_callbacks():
    """A model, and the data and callbacks for `fit` to stop early by its validation, while another sets the number."""
    layer = Divides()
    net = keras.Sequential([keras.Input((8,)), L.Dense(6, "tanh"), layer, L.Dense(1)])

    def anneal(epoch, logs=None):
        del epoch, logs
        layer.divisor *= 0.4

    stop = keras.callbacks.EarlyStopping("val_loss", patience=1, restore_best_weights=True)
    callbacks = [keras.callbacks.LambdaCallback(on_epoch_begin=anneal), stop]
    data = {"validation_data": (X[:20], Y[:20]), "callbacks": callbacks}
    return compiled(net, optimizer=keras.optimizers.SGD(0.05)), layer, data


@kind(divided="partly", sample=True)
def validation_that_the_script_has_had_traced_before():
    """By `evaluate` before `fit`: its trace is the one that `fit` validates by."""
    model, _, data = divided_by_callbacks()
    model.evaluate(X[:20], Y[:20], verbose=0)
    yield from fitted(model, X, Y, batch_size=16, epochs=6, **data)


@kind(divided="partly", sample=True)
def evaluation_by_what_validation_has_traced():
    """After `fit` the number is another one, and `evaluate` goes by what validation has read."""
    model, layer, data = divided_by_callbacks()
    yield from fitted(model, X, Y, batch_size=16, epochs=2, **data)
    scale = model.evaluate(X[:20], Y[:20], verbose=0) + layer.divisor + layer.traced
    yield from fitted(model, X, Y * scale, batch_size=16, epochs=1)


@kind(divided="partly")
def validation_by_a_step_that_was_traced_for_one_batch():
    """By `test_on_batch`: it has a function of its own, which the function for a whole validation calls."""
    model, _, data = divided_by_callbacks()
    data["validation_data"] = tf.data.Dataset.from_tensors((X[:20], Y[:20]))
    model.test_on_batch(X[:20], Y[:20])
    yield from fitted(model, X, Y, batch_size=16, epochs=4, **data)


class Noisy(keras.Model):
    """Its step draws a number in Python when it is traced."""

    def __init__(self):
        super().__init__()
        self.net = mlp(8, 1)

    def call(self, inputs):
        return self.net(inputs)

    def test_step(self, data):
        return {"loss": tf.reduce_mean((self(data[0], training=False) - data[1]) ** 2) * np.random.rand()}


@kind(divided="partly")
def validation_whose_trace_draws_in_python():
    stop = keras.callbacks.EarlyStopping("val_loss", patience=1, baseline=1.0)
    data = {"validation_data": (X[:20], Y[:20]), "callbacks": [stop]}
    yield from fitted(compiled(Noisy()), X, Y, batch_size=16, epochs=3, **data)
    yield from fitted(compiled(mlp(8, 1)), X, Y * np.random.rand(), batch_size=16, epochs=1)


class Drops(L.Layer):
    """Drops whole rows, outside of training, too, by TensorFlow's own generator."""

    def call(self, inputs):
        return inputs * tf.round(0.7 + tf.random.uniform((tf.shape(inputs)[0], 1), dtype=inputs.dtype))


@kind(divided="partly", sample=True)
def draws_that_validation_and_evaluation_share():
    """`evaluate` goes on where validation has ended: one process has one function for both."""
    model = compiled(keras.Sequential([keras.Input((8,)), L.Dense(6, "tanh"), Drops(), L.Dense(1)]))
    yield from fitted(model, X, Y, batch_size=16, epochs=2, validation_data=(X[:20], Y[:20]))
    scale = model.evaluate(X[:20], Y[:20], verbose=0)
    yield from fitted(model, X, Y * scale, batch_size=16, epochs=1)


@kind(repeats=False)
def validation_on_data_that_repeat_in_another_order():
    """Each validation is one pass. TensorFlow reads ahead: how many orders it has drawn by then goes by the time, and
    the last bit of `val_loss` by that."""
    data = tf.data.Dataset.from_tensor_slices((X[:24], Y[:24])).shuffle(24, seed=5).batch(8).repeat()
    steps = {"validation_data": data, "validation_steps": 3}
    yield from fitted(compiled(mlp(8, 1)), X, Y, batch_size=16, epochs=6, **steps)
