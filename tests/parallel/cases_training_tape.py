"""The distributed tape against the gradient of all ranks' examples taken in one process."""

import tempfile

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (2, 3)
DEVICE_RANKS = (2, 3)
KEPT = ((3, "shared_memory"), (3, "device"))
ROWS = 6


def data(rank, rows=ROWS, columns=4):
    return tf.constant(np.random.default_rng([9, rank]).normal(size=(rows, columns)), tf.float64)


def all_data(rows=ROWS):
    return tf.concat([data(rank, rows) for rank in range(dp.size())], 0)


def weights():
    random = np.random.default_rng(4)
    return {
        "pair": (tf.Variable(random.normal(size=(4, 3)), name="first"), tf.Variable(random.normal(size=3))),
        "last": [tf.Variable(random.normal(size=(3, 1)), name="last")],
    }


def loss_of(held, x):
    hidden = tf.tanh(x @ held["pair"][0] + held["pair"][1])
    return tf.reduce_mean((hidden @ held["last"][0]) ** 2)


def close(found, want, tolerance=1e-14):
    tf.nest.assert_same_structure(want, found)
    for one, other in zip(tf.nest.flatten(found), tf.nest.flatten(want), strict=True):
        mine, wanted = np.asarray(one, np.float64), np.asarray(other, np.float64)
        assert mine.shape == wanted.shape, (mine.shape, wanted.shape)
        largest = max(1.0, np.abs(wanted).max(initial=0))
        assert np.abs(mine - wanted).max(initial=0) <= tolerance * largest, (mine, wanted)


def reference(held, x, target=loss_of):
    with tf.GradientTape() as tape:
        loss = target(held, x)
    return tape.gradient(loss, held)


def case_nested_sources_eager_and_in_a_function():
    held = weights()
    want = reference(held, all_data())

    def found(x):
        with tf.GradientTape() as tape:
            loss = loss_of(held, x)
        return dp.DistributedGradientTape(tape).gradient(loss, held)

    close(found(data(dp.rank())), want)
    compiled = tf.function(found)
    for _ in range(2):
        close(compiled(data(dp.rank())), want)


def case_weights_that_are_complex_numbers():
    random = np.random.default_rng(4)
    held = {name: tf.Variable(random.normal(size=(4, 3, 2)) @ [1, 1j], name=name) for name in ("first", "second")}
    held["real"] = tf.Variable(random.normal(size=(4, 3)))

    def target(held, x):
        hidden = tf.cast(x, tf.complex128) @ held["first"] + tf.cast(x @ held["real"], tf.complex128)
        return tf.reduce_mean(tf.abs(hidden * tf.exp(tf.cast(x, tf.complex128) @ held["second"])) ** 2)

    with tf.GradientTape() as tape:
        loss = target(held, data(dp.rank()))
    found = dp.DistributedGradientTape(tape, compression=dp.Compression.none).gradient(loss, held)
    for name, want in reference(held, all_data(), target).items():
        assert found[name].dtype == want.dtype
        for part in (np.real, np.imag):
            close(part(found[name].numpy()), part(want.numpy()), 1e-13)


def case_one_variable_and_every_way_to_hold_the_tape():
    variable = tf.Variable([1.0, 2.0], dtype=tf.float64)
    x = tf.constant([3.0, 4.0], tf.float64) * (dp.rank() + 1)
    want = np.array([3.0, 4.0]) * (dp.size() + 1) / 2

    with tf.GradientTape() as closed:
        loss = tf.reduce_sum(variable * x)
    close(dp.DistributedGradientTape(closed).gradient(loss, variable), want)
    with dp.DistributedGradientTape(tf.GradientTape()) as wrapped:
        loss = tf.reduce_sum(variable * x)
    close(wrapped.gradient(loss, [variable]), [want])
    with tf.GradientTape() as opened:
        loss = tf.reduce_sum(variable * x)
        close(dp.DistributedGradientTape(opened).gradient(loss, variable), want)
    original = tf.GradientTape(persistent=True)
    with dp.DistributedGradientTape(original) as persistent:
        loss = tf.reduce_sum(variable * x)
        inside = persistent.gradient(loss, variable)
    close(inside, want)
    close(persistent.gradient(loss, (variable,)), (want,))
    summed = dp.DistributedGradientTape(original, op=dp.Sum)
    close(summed.gradient(loss, variable), want * dp.size())


def case_watched_tensors_and_output_gradients():
    x = tf.constant([1.0, 2.0], tf.float64)
    factor = tf.constant(dp.rank() + 1.0, tf.float64)
    with dp.DistributedGradientTape(tf.GradientTape(watch_accessed_variables=False)) as tape:
        tape.watch(x)
        y = x * x * factor
    found = tape.gradient(y, x, output_gradients=tf.constant([10.0, 1.0], tf.float64))
    close(found, np.array([20.0, 4.0]) * (dp.size() + 1) / 2)


def case_unconnected_sources():
    used, unused = tf.Variable(1.0), tf.Variable([2.0, 3.0])
    with dp.DistributedGradientTape(tf.GradientTape(persistent=True)) as tape:
        loss = used * used
    assert tape.gradient(loss, {"a": unused, "b": used})["a"] is None
    assert tape.gradient(loss, [unused]) == [None]
    zeros = tape.gradient(loss, [unused, used], unconnected_gradients=tf.UnconnectedGradients.ZERO)
    assert zeros[0].numpy().tolist() == [0.0, 0.0]
    assert zeros[1].numpy() == 2.0


def case_sparse_gradients_keep_every_slice():
    table = tf.Variable(np.random.default_rng(1).normal(size=(5, 2)))
    dense = tf.Variable(np.random.default_rng(2).normal(size=(2, 2)))
    rows = [[1, 1, 3], [0, 1], [4, 4, 4, 2]][: dp.size()]
    scale = float(len(rows[dp.rank()]))

    def taken(indices, divisor):
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, indices) @ dense) / divisor
        return loss, tape

    def found(indices):
        loss, tape = taken(indices, scale)
        return dp.DistributedGradientTape(tape).gradient(loss, [table, dense])

    for step in (found, tf.function(found)):
        sparse, other = step(tf.constant(rows[dp.rank()]))
        assert isinstance(sparse, tf.IndexedSlices)
        assert sparse.indices.numpy().tolist() == [index for part in rows for index in part]
        want_table, want_dense = np.zeros((5, 2)), np.zeros((2, 2))
        for part in rows:
            loss, tape = taken(tf.constant(part), float(len(part)))
            local = tape.gradient(loss, [table, dense])
            want_table += tf.convert_to_tensor(local[0]).numpy() / dp.size()
            want_dense += local[1].numpy() / dp.size()
        close(tf.convert_to_tensor(sparse), want_table)
        close(other, want_dense)


def case_keras_variables():
    model = tf.keras.Sequential(
        [tf.keras.layers.Embedding(7, 3), tf.keras.layers.Reshape([6]), tf.keras.layers.Dense(2)]
    )
    rows = tf.constant([[0, 1], [1, 1], [5, 6], [2, 5], [6, 6], [3, 0]][: 2 * dp.size()])
    model(rows)

    def gradient(x, wrap):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(model(x) ** 2)
        return [tf.convert_to_tensor(each) for each in wrap(tape).gradient(loss, model.trainable_variables)]

    want = gradient(rows, lambda tape: tape)
    mine = rows[dp.rank() :: dp.size()]
    close(gradient(mine, dp.DistributedGradientTape), want, 1e-6)
    close(tf.function(gradient)(mine, dp.DistributedGradientTape), want, 1e-6)


def case_mixed_dtypes_and_half_precision_with_counts():
    wide, half = tf.Variable([1.0, 2.0], dtype=tf.float64), tf.Variable([1.0, 2.0], dtype=tf.float16)
    # 60000 fits into float16, twice 60000 does not.
    factor = tf.constant(60000.0, tf.float16)
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(wide) + tf.cast(tf.reduce_sum(half * factor), tf.float64)
    found = dp.DistributedGradientTape(tape, batch_size=dp.rank() + 2).gradient(loss, [wide, half])
    assert found[1].dtype == tf.float16
    assert found[1].numpy().tolist() == [60000.0, 60000.0]
    close(found[0], np.ones(2))


def case_counts_weigh_the_ranks():
    held = {**weights(), "scale": tf.Variable(1.5, dtype=tf.float64)}

    def scaled(held, x):
        # The mean over no examples is NaN, and so is the gradient for what it is multiplied with.
        return held["scale"] * loss_of(held, x)

    counts = [5, 0, 2][: dp.size()]
    parts = [data(rank, rows) for rank, rows in enumerate(counts)]
    want = reference(held, tf.concat(parts, 0), scaled)

    def found(x, count):
        with tf.GradientTape() as tape:
            loss = scaled(held, x)
        return dp.DistributedGradientTape(tape, batch_size=count).gradient(loss, held)

    mine, count = parts[dp.rank()], counts[dp.rank()]
    close(found(mine, count), want)
    close(found(mine, np.int64(count)), want)
    signature = [tf.TensorSpec([None, 4], tf.float64), tf.TensorSpec([], tf.int32)]
    compiled = tf.function(found, input_signature=signature)
    for _ in range(2):
        close(compiled(mine, tf.constant(count, tf.int32)), want)


def case_counts_weigh_sparse_gradients():
    table = tf.Variable(np.random.default_rng(1).normal(size=(5, 2)))
    rows = [[1, 1, 3], [], [0]][: dp.size()]

    def gradient(indices, wrap):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.gather(table, tf.constant(indices, tf.int32)) ** 2)
        return wrap(tape).gradient(loss, table)

    want = gradient([index for part in rows for index in part], lambda tape: tape)
    mine = rows[dp.rank()]
    found = gradient(mine, lambda tape: dp.DistributedGradientTape(tape, batch_size=len(mine)))
    assert found.indices.numpy().tolist() == want.indices.numpy().tolist()
    close(found.values, want.values)


def whole_data_gradients(examples, batch, steps):
    """Each rank's batches of all the data, sharded; the weighted gradient of each step and the reference's."""
    random = np.random.default_rng(8)
    x, y = random.normal(size=(examples, 5)), random.normal(size=(examples, 1))
    hidden, out = tf.Variable(random.normal(size=(5, 4))), tf.Variable(random.normal(size=(4, 1)))

    def gradient(features, labels, wrap):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((tf.tanh(features @ hidden) @ out - labels) ** 2)
        return wrap(tape).gradient(loss, [hidden, out])

    @tf.function(reduce_retracing=True)
    def step(features, labels, count):
        return gradient(features, labels, lambda tape: dp.DistributedGradientTape(tape, batch_size=count))

    source = tf.data.Dataset.from_tensor_slices((x, y))
    sharded = dp.count_examples(dp.shard(source, remainder="weight").batch(batch))
    wholes = source.batch(batch * dp.size())
    found = 0
    for ((features, labels), count), whole in zip(sharded, wholes, strict=True):
        close(step(features, labels, count), gradient(*whole, lambda tape: tape), 1e-12)
        found += 1
    assert found == steps == sharded.cardinality().numpy(), found


def case_all_data_counts_exactly():
    whole_data_gradients(1797, 32, -(-1797 // (32 * dp.size())))


def case_some_ranks_have_no_example_in_the_last_step():
    whole_data_gradients(8 * dp.size() * 3 + 1, 8, 4)


def case_gradients_of_a_gradient_penalty_stay_local():
    x = tf.Variable(2.0 + dp.rank(), dtype=tf.float64, name="x")
    x.assign(2.0)
    factor = tf.constant(dp.rank() + 1.0, tf.float64)
    with dp.DistributedGradientTape(tf.GradientTape()) as outer:
        with tf.GradientTape() as inner:
            y = factor * x**3
        slope = inner.gradient(y, x)
        loss = slope * slope
    want = np.mean([36.0 * 8 * (rank + 1) ** 2 for rank in range(dp.size())])
    close(outer.gradient(loss, x), want)


def case_the_same_bits_on_every_rank():
    held = weights()
    with tf.GradientTape() as tape:
        loss = loss_of(held, data(dp.rank()))
    for each in tf.nest.flatten(dp.DistributedGradientTape(tape).gradient(loss, held)):
        by_rank = dp.allgather(each[tf.newaxis]).numpy()
        assert all(other.tobytes() == by_rank[0].tobytes() for other in by_rank)


def spoiled(name):
    variables = [tf.Variable([1.0, 2.0], name="fine"), tf.Variable([1.0, 2.0], name=name)]
    if dp.rank() == dp.size() - 1:
        variables[1].assign([1.0, 2.5])
    return variables


def assert_named(step, error_type, name):
    said = rf"{name}.* differs? on rank\(s\) {dp.size() - 1} .*cases_training_tape\.py"
    with pytest.raises(error_type, match=said):
        step()


def case_different_variables_are_found_at_the_first_gradient():
    for compiled in (False, True):
        variables = spoiled(f"spoiled_{compiled}")

        def step(variables=variables):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(variables[0] * variables[1])
            return dp.DistributedGradientTape(tape).gradient(loss, variables)

        run = tf.function(step) if compiled else step
        assert_named(run, tf.errors.UnknownError if compiled else dp.TfdpError, f"spoiled_{compiled}")


def case_the_first_check_runs_once_and_whatever_is_traced():
    """Ranks that trace at different steps still meet in the same collectives."""
    variable = tf.Variable([1.0, 2.0])
    traces = []

    @tf.function
    def step(x):
        traces.append(x.shape)
        # A collective before the check: their order must be the program's.
        total = dp.allreduce(tf.reduce_sum(x), dp.Sum)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variable) * tf.reduce_sum(x)
        return total, dp.DistributedGradientTape(tape).gradient(loss, variable)

    for number in range(4):
        rows = 3 if dp.rank() == 0 else 3 + number
        total, gradient = step(tf.ones([rows]))
        want = 3.0 + (dp.size() - 1) * (3.0 + number)
        assert total.numpy() == want
        close(gradient, np.full(2, want / dp.size()), 1e-6)
    assert len(traces) == (1 if dp.rank() == 0 else 4)
    # Ranks that have traced at different steps count the same ones.
    variable.assign([dp.rank() + 1.0, 0.0])
    with pytest.raises(tf.errors.UnknownError, match=r"differs on rank\(s\) 1.* after 4 exchange"):
        step(tf.ones([3]))


def case_in_a_loop_inside_a_function():
    variable = tf.Variable([1.0, 2.0])

    @tf.function
    def train(x):
        total = tf.zeros([2])
        for _ in tf.range(3):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(variable * x)
            total += dp.DistributedGradientTape(tape).gradient(loss, variable)
            variable.assign_sub([0.1, 0.1])
        return total

    mean = np.full(2, 3 * (dp.size() + 1) / 2)
    close(train(tf.fill([2], dp.rank() + 1.0)), mean, 1e-6)


def case_a_function_with_a_tape_can_be_saved():
    class Trainer(tf.Module):
        def __init__(self):
            super().__init__()
            self.w = tf.Variable([1.0, 2.0])

        @tf.function(input_signature=[tf.TensorSpec([2])])
        def step(self, x):
            with tf.GradientTape() as tape:
                loss = tf.reduce_sum(self.w * x)
            return dp.DistributedGradientTape(tape).gradient(loss, self.w)

    trainer = Trainer()
    trainer.step(tf.ones([2]))
    if dp.rank() == 0:
        with tempfile.TemporaryDirectory() as folder:
            tf.saved_model.save(trainer, folder)
    dp.barrier()


def case_what_is_refused():
    variable = tf.Variable([1.0])
    tape = tf.GradientTape(persistent=True)
    wrapped = dp.DistributedGradientTape(tape)
    with wrapped:
        y = variable * variable
    refused = [
        (NotImplementedError, "jacobian", lambda: wrapped.jacobian(y, variable)),
        (NotImplementedError, "batch_jacobian", lambda: wrapped.batch_jacobian(y, variable)),
        (TypeError, "already", lambda: dp.DistributedGradientTape(wrapped)),
        (TypeError, "tf.GradientTape", lambda: dp.DistributedGradientTape([variable])),
        (ValueError, "dp.Average or dp.Sum", lambda: dp.DistributedGradientTape(tape, op=dp.Max)),
        (ValueError, "weighted mean", lambda: dp.DistributedGradientTape(tape, op=dp.Sum, batch_size=3)),
        (ValueError, "-1", lambda: dp.DistributedGradientTape(tape, batch_size=-1)),
        (TypeError, "1.5", lambda: dp.DistributedGradientTape(tape, batch_size=1.5)),
        (ValueError, "one number", lambda: dp.DistributedGradientTape(tape, batch_size=tf.constant([3]))),
        (TypeError, "float32", lambda: dp.DistributedGradientTape(tape, batch_size=tf.constant(1.5))),
    ]
    for kind, said, call in refused:
        with pytest.raises(kind, match=said):
            call()


def case_the_tape_is_an_optimizers_tape():
    """Keras 2 takes a tape in `minimize`."""
    optimizer, variable = tf.keras.optimizers.SGD(1.0), tf.Variable(1.0)
    if not hasattr(optimizer, "minimize"):
        return
    with dp.DistributedGradientTape(tf.GradientTape()) as tape:
        loss = variable * (dp.rank() + 1.0)
    optimizer.minimize(loss, [variable], tape=tape)
    np.testing.assert_allclose(variable.numpy(), 1.0 - (dp.size() + 1) / 2)
