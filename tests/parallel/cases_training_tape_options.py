"""What a user may choose for the distributed tape, and what the ranks must have in common."""

import collections
import functools

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)

Pair = collections.namedtuple("Pair", ["kernel", "bias"])


def mine():
    return dp.rank() + 1.0


def mean(values=None):
    return float(np.mean(values or [rank + 1.0 for rank in range(dp.size())]))


def both_ways(function):
    """Eagerly, then as a tf.function, twice."""
    yield function
    compiled = tf.function(function)
    yield compiled
    yield compiled


def case_compressed_gradients_come_back_in_their_own_dtype():
    # 1 + 2**-9 needs ten bits: float16 keeps it, bfloat16 does not.
    fine = 1 + 2.0**-9
    wide, single, half = (tf.Variable([1.0, 2.0], dtype=dtype) for dtype in (tf.float64, tf.float32, tf.bfloat16))
    expected = {"none": fine, "fp16": fine, "bf16": 1.0}
    for name, value in expected.items():

        def step(name=name):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(wide) * fine + tf.cast(tf.reduce_sum(single), tf.float64) * fine
                loss += tf.cast(tf.reduce_sum(half), tf.float64) * mine()
            compression = getattr(dp.Compression, name)
            return dp.DistributedGradientTape(tape, compression=compression).gradient(loss, [wide, single, half])

        for run in both_ways(step):
            found = run()
            assert [each.dtype for each in found] == [tf.float64, tf.float32, tf.bfloat16]
            assert found[0].numpy().tolist() == [value] * 2
            assert found[1].numpy().tolist() == [value] * 2
            assert np.all(found[2].numpy().astype(np.float32) == mean())


def case_half_precision_does_not_overflow_in_the_average():
    variable = tf.Variable([1.0])
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(variable) * 60000.0
    for factor in (1.0, dp.size()):
        wrapped = dp.DistributedGradientTape(tape, compression=dp.Compression.fp16, gradient_predivide_factor=factor)
        assert abs(wrapped.gradient(loss, variable).numpy()[0] - 60000.0) <= 32


def case_predivision_changes_no_more_than_rounding():
    variables = [tf.Variable(np.random.default_rng(1).normal(size=[5, 3])), tf.Variable(tf.ones([3], tf.float32))]
    with tf.GradientTape(persistent=True) as tape:
        loss = tf.reduce_sum(variables[0] ** 2) * mine() + tf.cast(tf.reduce_sum(variables[1]), tf.float64)
    plain = dp.DistributedGradientTape(tape).gradient(loss, variables)
    for factor in (2, 0.5, float(dp.size())):
        divided = dp.DistributedGradientTape(tape, gradient_predivide_factor=factor).gradient(loss, variables)
        np.testing.assert_allclose(divided[0], plain[0], rtol=1e-14)
        np.testing.assert_allclose(divided[1], plain[1], rtol=1e-6)


def sparse_loss(table, weight, rows):
    return tf.reduce_sum(tf.gather(table, rows)) * tf.reduce_sum(weight) * mine()


def case_sparse_gradients_as_chosen():
    table, weight = tf.Variable(tf.ones([5, 2])), tf.Variable([0.5, 0.5])
    rows = [[1, 1, 3], [3, 0], [4]][dp.rank()]
    all_rows = [[1, 1, 3], [3, 0], [4]][: dp.size()]
    dense = np.zeros([5, 2], np.float32)
    for rank, part in enumerate(all_rows):
        for row in part:
            dense[row] += (rank + 1) / dp.size()

    def step(**options):
        with tf.GradientTape() as tape:
            loss = sparse_loss(table, weight, rows)
        return dp.DistributedGradientTape(tape, **options).gradient(loss, {"t": table, "w": weight})

    for run in both_ways(functools.partial(step, sparse_as_dense=True)):
        found = run()["t"]
        assert isinstance(found, tf.Tensor)
        np.testing.assert_allclose(found, dense, rtol=1e-6)
    for run in both_ways(functools.partial(step, deduplicate=True)):
        found = run()["t"]
        assert isinstance(found, tf.IndexedSlices)
        assert found.indices.numpy().tolist() == [[1, 3, 0], [1, 3, 0, 4]][dp.size() - 2]
        np.testing.assert_allclose(tf.convert_to_tensor(found), dense, rtol=1e-6)
    for run in both_ways(functools.partial(step, compression=dp.Compression.bf16)):
        found = run()["t"]
        assert found.values.dtype == tf.float32
        assert found.indices.numpy().tolist() == [row for part in all_rows for row in part]
        np.testing.assert_allclose(tf.convert_to_tensor(found), dense, rtol=1e-2)


def case_several_sparse_gradients_of_other_dtypes_and_lengths():
    tables = [tf.Variable(tf.ones([6, 2], tf.float64)), tf.Variable(tf.ones([6, 1, 3])), tf.Variable(tf.ones([6, 2]))]
    # The second rank has no row of the second table.
    rows = [([0, 1], [[5]], [2]), ([3, 3, 3], [], [1, 1]), ([], [[1], [2]], [])]
    taken = rows[dp.rank()]

    def step():
        with tf.GradientTape() as tape:
            parts = [
                tf.reduce_sum(tf.gather(tables[0], tf.constant(taken[0], tf.int64))),
                tf.cast(tf.reduce_sum(tf.gather(tables[1], tf.constant(taken[1], tf.int32))), tf.float64),
                tf.cast(tf.reduce_sum(tf.gather(tables[2], tf.constant(taken[2], tf.int32))), tf.float64),
            ]
            loss = tf.add_n(parts) * mine()
        return dp.DistributedGradientTape(tape).gradient(loss, tables)

    for run in both_ways(step):
        for position, found in enumerate(run()):
            parts = [np.ravel(rows[rank][position]).astype(int).tolist() for rank in range(dp.size())]
            assert found.indices.numpy().tolist() == [row for part in parts for row in part]
            want = [(rank + 1) / dp.size() for rank, part in enumerate(parts) for _ in part]
            assert found.values.shape[1:] == tables[position].shape[1:]
            assert found.values.dtype == tables[position].dtype
            np.testing.assert_allclose(found.values.numpy().reshape(len(want), -1)[:, 0], want, rtol=1e-6)


def case_structures_of_keras_variables():
    layer = tf.keras.layers.Dense(2)
    layer.build([None, 3])
    x = tf.ones([1, 3]) * mine()

    def step():
        with tf.GradientTape(persistent=True) as tape:
            loss = tf.reduce_sum(layer(x))
        wrapped = dp.DistributedGradientTape(tape)
        held = {"pair": Pair(layer.kernel, layer.bias), "list": [(layer.bias,)]}
        return wrapped.gradient(loss, layer.kernel), wrapped.gradient(loss, held)

    for run in both_ways(step):
        alone, nested = run()
        np.testing.assert_allclose(alone, np.full([3, 2], mean()), rtol=1e-6)
        assert isinstance(nested["pair"], Pair)
        np.testing.assert_allclose(nested["pair"].kernel, alone)
        np.testing.assert_allclose(nested["list"][0][0], np.ones(2))


def refused_everywhere(step, *said, error=dp.CollectiveMismatchError):
    """Both ways of running fail on every rank, and the job goes on."""
    with pytest.raises(error) as eager:
        step()
    with pytest.raises((tf.errors.UnknownError, error)) as compiled:
        tf.function(step)()
    for caught in (eager, compiled):
        for text in said:
            assert text in str(caught.value), caught.value


def case_a_gradient_that_only_some_ranks_have():
    first, second = tf.Variable([1.0, 2.0], name="first"), tf.Variable([3.0, 4.0], name="second")
    last = dp.size() - 1

    def missing_on_one():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(first) + (0.0 if dp.rank() == last else tf.reduce_sum(second))
        return dp.DistributedGradientTape(tape).gradient(loss, [first, second])

    refused_everywhere(missing_on_one, "second:0 (no gradient)", f"rank {last}", "cases_training_tape_options.py")

    def another_on_each():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(second if dp.rank() == last else first)
        return dp.DistributedGradientTape(tape).gradient(loss, [first, second])

    refused_everywhere(another_on_each, "first:0 (no gradient)", "The first difference is in tensor 0")


def case_a_gradient_that_is_sparse_on_some_ranks():
    table = tf.Variable(tf.ones([3, 2]), name="table")

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(table if dp.rank() == 0 else tf.gather(table, [1]))
        return dp.DistributedGradientTape(tape).gradient(loss, table)

    refused_everywhere(step, "table:0 (sparse)", "float32[0,2] on rank 1")


def case_another_order_of_variables():
    # Equal values: only their order tells them apart.
    first, second = tf.Variable([0.0, 0.0], name="first"), tf.Variable([0.0, 0.0], name="second")

    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(first + second)
        listed = [first, second] if dp.rank() == 0 else [second, first]
        return dp.DistributedGradientTape(tape).gradient(loss, listed)

    name = "first" if dp.rank() == 0 else "second"
    refused_everywhere(step, "another order", f"number 1 is {name}:0 on rank {dp.rank()}", error=dp.TfdpError)


def case_what_cannot_be_combined():
    variable = tf.Variable([1.0, 2.0], name="mine")
    ragged = tf.RaggedTensor.from_row_lengths(variable, [2])
    with tf.GradientTape(persistent=True) as tape:
        tape.watch(ragged)
        loss = tf.reduce_sum(ragged * ragged)
    with pytest.raises(TypeError, match=r"source 0.*RaggedTensor.*flat_values"):
        dp.DistributedGradientTape(tape).gradient(loss, ragged)
    refused = [
        (ValueError, "does not go with op=Sum", {"op": dp.Sum, "gradient_predivide_factor": 2.0}),
        (ValueError, "greater than 0", {"gradient_predivide_factor": 0}),
        (ValueError, "compression", {"batch_size": 3, "compression": dp.Compression.fp16}),
        (ValueError, "predivide", {"batch_size": 3, "gradient_predivide_factor": 2.0}),
        (TypeError, "dp.Compression.none", {"compression": "fp16"}),
    ]
    for kind, said, options in refused:
        with pytest.raises(kind, match=said):
            dp.DistributedGradientTape(tape, **options)
