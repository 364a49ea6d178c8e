"""A model that mixes the examples of a batch is not trained: each rank sees only its own."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

DEVICE_RANKS = ()


class Centred(keras.layers.Layer):
    def call(self, h):
        return h - tf.reduce_mean(h, axis=0)


def model_of(middle, rows=None):
    inputs = keras.Input((5,), batch_size=rows)
    return keras.Model(inputs, keras.layers.Dense(1)(middle(keras.layers.Dense(4)(inputs))))


def data():
    random = np.random.default_rng([3, dp.rank()])
    return random.normal(size=[32, 5]).astype(np.float32), random.normal(size=[32, 1]).astype(np.float32)


def fitted(model, **options):
    model.compile(dp.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse", **options)
    x, y = data()
    model.fit(x, y, batch_size=8, verbose=0, callbacks=dp.fit_callbacks())


def stepped(model, compiled):
    optimizer = keras.optimizers.SGD(0.1)

    def step(x, y):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
        gradients = dp.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))

    if compiled:
        step = tf.function(step)
    for _ in range(2):
        step(*map(tf.constant, data()))


def refused(call):
    # AutoGraph wraps what is raised while a function is traced.
    with pytest.raises(Exception, match="mixes the examples of a batch when it predicts") as caught:
        call()
    assert "cases_training_rows.py" in str(caught.value)


def case_a_model_that_mixes_rows_is_refused_by_its_first_exchange():
    for rows in (None, 8):
        refused(lambda rows=rows: fitted(model_of(Centred(), rows)))
    refused(lambda: fitted(model_of(Centred()), run_eagerly=True))
    for compiled in (True, False):
        refused(lambda compiled=compiled: stepped(model_of(Centred()), compiled))


def case_sound_models_train():
    for middle in (keras.layers.BatchNormalization(), keras.layers.Dropout(0.5), keras.layers.LayerNormalization()):
        fitted(model_of(middle))
        stepped(model_of(middle), True)


def case_one_that_is_only_called_and_not_trained_may_mix():
    whole, trained = model_of(Centred()), model_of(keras.layers.ReLU())
    x, _ = data()
    assert whole(x).shape == (32, 1)
    fitted(trained)


def case_a_model_built_by_its_first_call_is_looked_at_too():
    def made():
        return keras.Sequential([keras.layers.Dense(4), Centred(), keras.layers.Dense(1)])

    refused(lambda: fitted(made()))
    refused(lambda: stepped_unbuilt(made()))


def stepped_unbuilt(model):
    step = tf.function(lambda x, y: train(model, x, y))
    for _ in range(3):
        step(*map(tf.constant, data()))


def train(model, x, y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x, training=True) - y) ** 2)
    gradients = dp.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)
    for variable, gradient in zip(model.trainable_variables, gradients, strict=True):
        variable.assign_sub(0.1 * gradient)


class CodeBook(keras.layers.Layer):
    """Moves a variable by its own examples while it is trained; `read` says whether it uses it then."""

    def __init__(self, read):
        super().__init__()
        self.read = read
        self.code = self.add_weight(shape=(4,), initializer="zeros", trainable=False, name="code")

    def call(self, h, training=None):
        if training:
            self.code.assign(0.9 * self.code + 0.1 * tf.reduce_mean(tf.stop_gradient(h), axis=0))
        return h - self.code if self.read or not training else h


def case_a_code_book_that_moves_by_own_examples_is_named_before_the_epoch_ends():
    ended = []
    model = model_of(CodeBook(read=True))
    model.compile(dp.DistributedOptimizer(keras.optimizers.SGD(0.1)), "mse")
    noted = keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: ended.append(1))
    x, y = data()
    with pytest.raises(dp.TfdpError, match=r"code\S* of the model trained at .*cases_training_rows.py.* differs"):
        model.fit(x, y, batch_size=8, epochs=3, verbose=0, callbacks=dp.fit_callbacks([noted]))
    assert not ended


def case_statistics_that_only_predictions_read_are_rank_0s():
    model = model_of(CodeBook(read=False))
    fitted(model)
    code = model.layers[2].code.numpy()
    assert (dp.allgather(tf.constant(code[None])).numpy() == code).all()
    assert code.any()


def case_a_model_is_looked_at_again_when_layers_are_added():
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1)])
    fitted(model)
    outer = keras.Sequential([keras.Input((5,)), model])
    fitted(outer)
    model.add(keras.layers.Reshape(()))
    model.add(keras.layers.Lambda(lambda rows: tf.exp(rows) / tf.reduce_sum(tf.exp(rows))))
    refused(lambda: fitted(model))


PAIRED = {
    "labels with an axis between": ("mse", (1, 2), (2,)),
    "outputs with an axis between": ("mae", (2,), (1, 2)),
    "outputs without an axis, summed over it": ("kl_divergence", (), ()),
    "labels of one axis more": (keras.losses.MeanSquaredError(), (1, 1), ()),
}
SEPARATE = {
    "one shape": ("mse", (2,), (2,)),
    "one number": ("mse", (), (1,)),
    "the other way round": ("mae", (1,), ()),
    "one for all": ("mse", (1,), (3,)),
    "classes": (keras.losses.SparseCategoricalCrossentropy(from_logits=True), (), (3,)),
    "classes in a row": (keras.losses.SparseCategoricalCrossentropy(from_logits=True), (1,), (3,)),
    "classes of parts": (keras.losses.SparseCategoricalCrossentropy(from_logits=True), (4,), (4, 3)),
    "directions": ("cosine_similarity", (3,), (3,)),
}


def with_a_loss_of(loss, of_labels, of_outputs, by_fit, weights=None):
    outputs = keras.layers.Dense(int(np.prod(of_outputs, dtype=int)), activation="softmax")
    model = keras.Sequential([keras.Input((5,)), outputs, keras.layers.Reshape(of_outputs)])
    x, y = data()[0], np.ones((32, *of_labels), "float32")
    optimizer = keras.optimizers.SGD(0.1)
    if by_fit:
        model.compile(dp.DistributedOptimizer(optimizer), loss)
        model.fit(x, y, sample_weight=weights, batch_size=8, verbose=0, callbacks=dp.fit_callbacks())
        return
    with tf.GradientTape() as tape:
        value = loss(y, model(x))
    gradients = dp.DistributedGradientTape(tape).gradient(value, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables, strict=True))


def case_a_loss_that_puts_examples_together_is_refused():
    for name, (loss, of_labels, of_outputs) in PAIRED.items():
        with pytest.raises(Exception, match="puts the examples of a batch together") as caught:
            with_a_loss_of(loss, of_labels, of_outputs, by_fit=True)
        assert "cases_training_rows.py" in str(caught.value), name
    with pytest.raises(Exception, match=r"of labels \(B, 1, 1\) and outputs \(B\)"):
        with_a_loss_of(keras.losses.MeanSquaredError(), (1, 1), (), by_fit=False)


def case_labels_of_an_unknown_number_of_axes_are_refused():
    model = keras.Sequential([keras.Input((5,)), keras.layers.Dense(1)])
    loss = keras.losses.MeanSquaredError()

    @tf.function(input_signature=[tf.TensorSpec([None, 5]), tf.TensorSpec(None)])
    def step(x, y):
        with tf.GradientTape() as tape:
            value = loss(y, model(x))
        return dp.DistributedGradientTape(tape).gradient(value, model.trainable_variables)

    with pytest.raises(Exception, match="the number of axes is not known here"):
        step(*map(tf.constant, data()))


def case_weights_that_are_broadcast_to_other_examples_are_refused():
    with pytest.raises(Exception, match=r"outputs \(B, 2\) and weights \(B, 1, 1\), where B is the batch") as caught:
        with_a_loss_of("mse", (2,), (2,), by_fit=True, weights=np.ones((32, 1, 1), "float32"))
    assert "puts the examples of a batch together" in str(caught.value)
    with_a_loss_of("mse", (2,), (2,), by_fit=True, weights=np.ones(32, "float32"))


def case_a_loss_of_each_example_is_trained():
    for by_fit in (True, False):
        for loss, of_labels, of_outputs in SEPARATE.values():
            if by_fit or isinstance(loss, keras.losses.Loss):
                with_a_loss_of(loss, of_labels, of_outputs, by_fit)
