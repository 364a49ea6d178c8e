"""One worker: what comes back is what the script would have had without tfdp."""

import random

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp


def test_the_gradient_is_the_tapes_own():
    variable = tf.Variable([1.0, 2.0])
    found = object()

    class Tape(tf.GradientTape):
        def gradient(self, target, sources, output_gradients=None, **options):
            assert (target, output_gradients, options) == ("loss", "upstream", {"unconnected_gradients": "zero"})
            assert sources is variable
            return found

    tape = dp.DistributedGradientTape(Tape())
    assert tape.gradient("loss", variable, "upstream", unconnected_gradients="zero") is found


def test_a_step_is_bit_identical():
    x = tf.constant(np.random.default_rng(1).normal(size=(8, 3)), tf.float32)

    def trained(wrap, scale, shards):
        weights = tf.Variable(np.random.default_rng(2).normal(size=(3, 1)).astype(np.float32))
        optimizer = tf.keras.optimizers.Adam(scale(0.01))

        @tf.function
        def step(rows):
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(rows @ weights))
            (gradient,) = wrap(tape).gradient(loss, [weights])
            optimizer.apply_gradients([(gradient, weights)])

        for rows in shards(tf.data.Dataset.from_tensor_slices(x)).batch(4).repeat(5):
            step(rows)
        return weights.numpy().tobytes()

    plain = trained(lambda tape: tape, lambda rate: rate, lambda dataset: dataset)
    assert trained(dp.DistributedGradientTape, dp.scale_lr, dp.shard) == plain


def test_what_is_given_comes_back():
    dataset = tf.data.Dataset.range(3)
    assert dp.shard(dataset) is dataset
    assert dp.shard(dataset, remainder="weight", order_check=True) is dataset
    for rate in (0.1, 1, tf.constant(0.1), tf.Variable(0.1), tf.keras.optimizers.schedules.CosineDecay(0.1, 5), abs):
        assert dp.scale_lr(rate) is rate
    for data in (np.arange(3), (np.arange(3), None), None, [1, 2], [dataset]):
        assert dp.shard(data) is data
        assert dp.shard_batches(data) is data
        assert dp.fit_callbacks(data) is data
    paths = dp.shard(["b", "a"], by="file", read=lambda files: files)
    assert list(paths.as_numpy_iterator()) == [b"b", b"a"]
    assert dp.shard(dataset, by="file", read=lambda files: files) is dataset
    assert dp.shard(np.arange(10), validation_split=0.25).tolist() == list(range(7))
    assert dp.held_out([np.arange(10), None], 0.25)[0].tolist() == [7, 8, 9]
    for steps in (3, 0, -1, tf.constant(7)):
        assert dp.local_steps(steps) is steps
    assert dp.local_batch_size(7) == 7
    assert dp.shuffle_seed() is None
    assert dp.shuffle_seed(7) == 7
    assert dp.rank_seed(42) == 42
    assert dp.rank_seed(None) is None
    value = object()
    assert dp.on_root(lambda: value) is value
    with pytest.raises(KeyError):
        dp.on_root({}.__getitem__, 1)
    assert dp.broadcast_state("not even looked at") is None


def test_one_process_that_stands_for_three_has_their_batch_rate_and_steps(monkeypatch):
    monkeypatch.setenv("TFDP_STANDS_FOR", "3")
    assert dp.global_batch_size(8) == 24
    assert dp.global_batch_size(8, only_if=False) == 8
    assert dp.scale_lr(0.5) == 1.5
    assert dp.scale_lr(4.0, scale="sqrt") == 4.0 * 3**0.5
    assert (dp.local_steps(9), dp.local_steps(9, only_if=False)) == (3, 9)
    assert float(dp.scale_optimizer(tf.keras.optimizers.SGD(0.5)).learning_rate) == 1.5
    schedule = tf.keras.optimizers.schedules.PolynomialDecay(1.0, 30, 0.0)
    assert float(dp.local_schedule(schedule)(5)) == 0.5
    assert dp.size() == 1
    assert dp.local_batch_size(8) == 8


def test_variables_start_as_they_would():
    dp.init()
    tf.random.set_seed(3)
    random.seed(3)
    after = tf.Variable(tf.random.normal([3])).numpy()
    tf.random.set_seed(3)
    assert tf.random.normal([3]).numpy().tobytes() == after.tobytes()
    assert tf.compat.v1.reset_default_graph.__module__.startswith("tensorflow")


def test_set_random_seed_is_keras_own():
    def draws():
        return random.random(), np.random.random(), tf.random.uniform([2]).numpy().tolist()

    tf.keras.utils.set_random_seed(5)
    want = draws()
    dp.set_random_seed(5)
    assert draws() == want


@pytest.mark.parametrize("count", [3, np.int32(3), tf.constant(3), tf.constant(3, tf.int64)])
def test_a_count_changes_nothing_but_a_gradient_of_no_examples(count):
    variable = tf.Variable([0.1, 0.2])
    table = tf.Variable(tf.ones([3, 2]))
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_mean(variable**3) + tf.reduce_sum(tf.gather(table, [1, 1]))
        empty = tf.reduce_mean(tf.gather(variable, tf.zeros([0], tf.int32)))
    plain = tape.gradient(loss, {"a": variable, "b": [table]})
    found = dp.DistributedGradientTape(tape, batch_size=count).gradient(loss, {"a": variable, "b": [table]})
    assert found["a"].numpy().tobytes() == plain["a"].numpy().tobytes()
    assert found["b"][0].indices.numpy().tolist() == [1, 1]
    none = dp.DistributedGradientTape(tape, batch_size=0).gradient(empty, variable)
    assert tf.convert_to_tensor(none).numpy().tolist() == [0.0, 0.0]


def test_counts_without_other_ranks():
    pairs = [(x.numpy().tolist(), int(count)) for x, count in dp.count_examples(tf.data.Dataset.range(5).batch(2))]
    assert pairs == [([0, 1], 2), ([2, 3], 2), ([4], 1)]


def test_the_tape_passes_on_what_else_a_tape_has():
    x = tf.constant(3.0)
    with dp.DistributedGradientTape(tf.GradientTape(persistent=True)) as tape:
        tape.watch(x)
        y = x * x
        with tape.stop_recording():
            y + 1
    assert tape.gradient(y, x).numpy() == 6.0
    assert tape.watched_variables() == ()
    with pytest.raises(AttributeError):
        tape.nothing_of_the_kind  # noqa: B018
    with pytest.raises(NotImplementedError, match="test_one_worker"):
        tape.jacobian(y, x)


def test_dp_init_is_needed(monkeypatch):
    from tfdp.runtime.job import membership as job

    monkeypatch.setattr(job._process, "job", None)
    for call in (
        lambda: dp.DistributedGradientTape(tf.GradientTape()),
        lambda: dp.shard(tf.data.Dataset.range(3)),
        lambda: dp.scale_lr(0.1),
        dp.pin_gpu,
        dp.shuffle_seed,
        dp.broadcast_state,
    ):
        with pytest.raises(dp.NotInitializedError, match=r"dp\.init\(\)"):
            call()
