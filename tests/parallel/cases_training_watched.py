"""The variables of the ranks are seen to stay the same: by a fingerprint inside the exchange of gradients."""

import threading

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)
DEVICE_RANKS = (2,)
APART = r"differs on rank\(s\) 1 from rank 0's in the exchange"


def rows(rank=None, columns=4):
    random = np.random.default_rng([7, dp.rank() if rank is None else rank])
    return tf.constant(random.normal(size=(6, columns)), tf.float32)


class Trainer:
    """A small model of one's own, which a tape trains."""

    def __init__(self, dtype=tf.float32, compiled=True, **options):
        self.w = tf.Variable(tf.ones([4, 3], dtype), name="first")
        self.b = tf.Variable(tf.zeros([3], dtype), name="second")
        self.options, self.dtype = options, dtype
        self.step = tf.function(self._step) if compiled else self._step

    def _step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.cast(x, self.dtype) @ self.w + self.b) ** 2)
        gradients = dp.DistributedGradientTape(tape, **self.options).gradient(loss, [self.w, self.b])
        for variable, gradient in zip([self.w, self.b], gradients, strict=True):
            variable.assign_sub(tf.cast(0.01, self.dtype) * gradient)


def ended_after(step, most, message=APART):
    """How many calls go well before one that fails with the message, of at most so many."""
    calls = []

    def until_it_fails():
        for number in range(most):
            calls.append(number)
            step()

    with pytest.raises((dp.TfdpError, tf.errors.UnknownError), match=message):
        until_it_fails()
    return len(calls) - 1


def spoil(variable, by=1e-7):
    """Only rank 1 changes it, as little as float32 can say."""
    if dp.rank() == 1:
        variable.assign_add(tf.fill(variable.shape, tf.cast(by, variable.dtype)))


def case_sound_training_goes_on():
    for trainer in (Trainer(), Trainer(tf.float64), Trainer(tf.float16), Trainer(tf.bfloat16), Trainer(compiled=False)):
        for _ in range(140):
            trainer.step(rows())


def case_options_of_the_exchange_carry_it_too():
    count = tf.constant(6, tf.int64)
    for options in (
        {"op": dp.Sum},
        {"compression": dp.Compression.fp16},
        {"compression": dp.Compression.bf16},
        {"gradient_predivide_factor": 2.0},
        {"batch_size": count},
    ):
        trainer = Trainer(**options)
        for _ in range(9):
            trainer.step(rows())
        spoil(trainer.b, 0.25)
        assert ended_after(lambda trainer=trainer: trainer.step(rows()), 64) < 64


def case_a_variable_that_one_rank_changes_is_named_at_the_next_look():
    for dtype in (tf.float32, tf.float64, tf.float16, tf.bfloat16):
        for compiled in (True, False):
            trainer = Trainer(dtype, compiled)
            for _ in range(4):
                trainer.step(rows())
            spoil(trainer.b, 0.25)
            # The exchanges before the 5th, of which 4 are over, are compared in it.
            assert ended_after(lambda trainer=trainer: trainer.step(rows()), 64, rf"second\S* {APART}") == 0


def case_one_bit_late_in_training_is_found_within_64_steps():
    trainer = Trainer()
    for _ in range(130):
        trainer.step(rows())
    spoil(trainer.w)
    assert ended_after(lambda: trainer.step(rows()), 64, rf"first\S* {APART}") == 62


def case_after_a_repair_training_goes_on():
    trainer = Trainer()
    trainer.step(rows())
    spoil(trainer.w)
    assert ended_after(lambda: trainer.step(rows()), 64) == 0
    dp.broadcast_state(trainer.w, trainer.b)
    for _ in range(20):
        trainer.step(rows())


def case_two_exchanges_of_one_list_in_one_function():
    trainer = Trainer(compiled=False)

    @tf.function
    def both(x):
        trainer.step(x)
        trainer.step(2 * x)

    for _ in range(70):
        both(rows())
    spoil(trainer.w)
    assert ended_after(lambda: both(rows()), 64, rf"first\S* {APART}") < 32


def case_steps_in_a_loop_of_the_graph():
    trainer = Trainer(compiled=False)

    @tf.function
    def many(x):
        for _ in tf.range(10):
            trainer.step(x)

    for _ in range(8):
        many(rows())
    spoil(trainer.w)
    assert ended_after(lambda: many(rows()), 8, rf"first\S* {APART}") < 7


def case_two_lists_of_variables():
    one, other = Trainer(), Trainer()
    for _ in range(4):
        one.step(rows())
        other.step(rows())
    spoil(other.w)
    for _ in range(70):
        one.step(rows())
    assert ended_after(lambda: other.step(rows()), 64, rf"first\S* {APART}") == 0


class Embedded:
    """An embedding, whose rows come more than once in a batch, beside a dense variable."""

    def __init__(self):
        self.table = tf.Variable(tf.random.stateless_normal([40, 8], [1, 2]), name="table")
        self.w = tf.Variable(tf.ones([8, 1]), name="dense")
        self.optimizer = dp.DistributedOptimizer(tf.keras.optimizers.Adagrad(0.05))

    @tf.function
    def step(self, ids):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.gather(self.table, ids) @ self.w - 1.0) ** 2)
        variables = [self.table, self.w]
        self.optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))


def ids():
    return tf.constant(np.random.default_rng([5, dp.rank()]).integers(0, 40, size=200))


def case_sparse_variables_are_compared_by_their_norm():
    model = Embedded()
    for _ in range(130):
        model.step(ids())
    spoil(model.table, 1e-8)  # as adding up in another order would do
    for _ in range(64):
        model.step(ids())
    spoil(model.table, 0.01)
    assert ended_after(lambda: model.step(ids()), 64, rf"table\S* {APART}") < 64


def case_a_dense_variable_beside_a_sparse_one_is_compared_bit_for_bit():
    model = Embedded()
    for _ in range(4):
        model.step(ids())
    spoil(model.w)
    assert ended_after(lambda: model.step(ids()), 64, rf"dense\S* {APART}") == 0


def case_what_the_optimizer_holds_is_compared():
    model = Embedded()
    for _ in range(4):
        model.step(ids())
    if dp.rank() == 1:
        model.optimizer.learning_rate.assign(0.06)
    if hasattr(tf.keras, "ops"):  # Keras 3
        assert ended_after(lambda: model.step(ids()), 64, rf"rate\S* {APART}") == 0
    else:  # Keras 2 does not count the rate among an optimizer's variables: found by what it does
        assert ended_after(lambda: model.step(ids()), 64, r"dense\S* and .* differ on rank\(s\) 1") < 8


def case_fit_says_which_variable():
    model = tf.keras.Sequential([tf.keras.layers.Dense(3), tf.keras.layers.Dense(1)])
    model.compile(dp.DistributedOptimizer(tf.keras.optimizers.SGD(0.01)), "mse", jit_compile=False)
    x = rows().numpy()

    class Spoil(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002 - as Keras calls it
            if batch == 5:
                spoil(model.layers[0].kernel)

    with pytest.raises(Exception, match=rf"kernel\S* {APART}"):
        model.fit(x, x[:, :1], batch_size=1, epochs=20, callbacks=[Spoil()], verbose=0)


def case_a_model_that_has_become_nan_is_no_alarm():
    trainer = Trainer()
    trainer.w.assign(tf.fill([4, 3], float("nan")))
    for _ in range(70):
        trainer.step(rows())


def data():
    return tf.data.Dataset.from_tensor_slices(np.arange(dp.size() * 160 * 4, dtype=np.float32).reshape(-1, 4) / 1e4)


def sources():
    """The same data, sharded in two ways: of a generator's batches the ranks agree at each one, and would wait."""
    yield dp.shard(data()).batch(2).prefetch(2)
    yield dp.shard_batches(data().batch(2))


def loop(trainer, source, left_out=None):
    for number, x in enumerate(source):
        if number != left_out:
            trainer.step(tf.convert_to_tensor(x))


def case_batches_that_one_rank_leaves_out_are_seen():
    for compiled in (True, False):
        for source in sources():
            message = (
                r"different batches on the ranks \(rank 0: batch \d+ of the data sharded at .*watched.py:\d+; rank 1"
            )
            with pytest.raises((dp.TfdpError, tf.errors.UnknownError), match=message):
                loop(Trainer(compiled=compiled), source, left_out=9 if dp.rank() == 1 else None)


def case_peeks_validation_and_other_threads_are_no_alarm():
    trainer = Trainer()
    training, validation = dp.shard(data()).batch(2), dp.shard(data()).batch(4)
    for _ in range(2):
        if dp.rank() == 0:
            assert next(iter(training)).shape == (2, 4)
        reader = threading.Thread(target=lambda: [None for _ in training.take(dp.rank() + 1)])
        for x in training.take(70):
            reader = reader if reader.ident else reader.start() or reader
            trainer.step(x)
        reader.join()
        for _ in validation.take(dp.rank() + 2):
            pass


def case_other_loops_over_the_same_data_go_on():
    trainer = Trainer()
    for x, _ in zip(dp.shard(data()).batch(2), dp.shard(data()).batch(2), strict=True):
        trainer.step(x)
    iterator = iter(dp.shard(data()).batch(2))
    for _ in range(70):
        trainer.step(next(iterator))
