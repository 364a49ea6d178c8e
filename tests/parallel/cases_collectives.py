"""Collectives on tensors, eagerly and in `tf.function`, on real ranks."""

import itertools
import os

import numpy as np
import tensorflow as tf

import tfdp.runtime as dp
from tfdp.runtime.job import current

RANKS = (2, 3)
DEVICE_RANKS = (2, 3)
KEPT = ((3, "shared_memory"), (3, "device"))
INIT = {"same_start": False}

DTYPES = (tf.float16, tf.bfloat16, tf.float32, tf.float64, tf.int32, tf.int64)
OPS = (dp.Average, dp.Sum, dp.Min, dp.Max, dp.Product)


def in_shared_memory():
    return current().transport.name == "shared_memory"


def meeting():
    transport = current().transport
    return transport._wire._meeting if in_shared_memory() else transport._exchange.lane._meeting


def by_rank(function):
    return [function(rank) for rank in range(dp.size())]


def draw(rank, shape, dtype):
    random = np.random.default_rng([rank, *shape])
    # Of 0 and -0 either may be the smaller one.
    return tf.cast(tf.constant(np.round(random.normal(size=shape) * 4) + 0.0), dtype)


def wanted(op, parts):
    dtype = parts[0].dtype
    wide = [tf.cast(part, tf.float32) if dtype.size == 2 else part for part in parts]
    total = wide[0]
    for part in wide[1:]:
        total = {dp.Min: tf.minimum, dp.Max: tf.maximum, dp.Product: tf.multiply}.get(op, tf.add)(total, part)
    if op is dp.Average:
        total = tf.cast(tf.cast(total, tf.float64) / len(parts), total.dtype)
    return tf.cast(total, dtype)


def same(found, want):
    assert found.dtype == want.dtype, (found.dtype, want.dtype)
    assert found.shape == want.shape, (found.shape, want.shape)
    assert found.numpy().tobytes() == want.numpy().tobytes(), (found, want)


def case_every_operation_on_every_dtype_eagerly():
    for dtype, op, shape in itertools.product(DTYPES, OPS, [(), (1,), (17, 3), (0, 4)]):
        found = dp.allreduce(draw(dp.rank(), shape, dtype), op)
        same(found, wanted(op, by_rank(lambda rank, s=shape, d=dtype: draw(rank, s, d))))


def case_every_operation_on_every_dtype_in_a_function():
    @tf.function
    def together(tensors):
        return [dp.grouped_allreduce(tensors, op) for op in OPS]

    shapes = [(), (17, 3), (0, 4), (5000,)]
    mine = [draw(dp.rank(), shape, dtype) for dtype in DTYPES for shape in shapes]
    for op, found in zip(OPS, together(mine), strict=True):
        for (dtype, shape), tensor in zip(itertools.product(DTYPES, shapes), found, strict=True):
            same(tensor, wanted(op, by_rank(lambda rank, s=shape, d=dtype: draw(rank, s, d))))


def case_a_list_is_one_exchange():
    met, before = meeting(), meeting()._sequence
    dp.grouped_allreduce([tf.ones(3), tf.ones(2, tf.float64), tf.ones((), tf.int64)])
    assert met._sequence == before + 1
    dp.grouped_allreduce([tf.ones(50_000), tf.ones(60_000, tf.float64)])
    # Shared memory has one more meeting, for its results.
    assert met._sequence == before + (3 if in_shared_memory() else 2)


def case_large_tensors_go_in_chunks():
    x = tf.random.stateless_normal([3_000_001], [dp.rank(), 1])
    want = wanted(dp.Average, by_rank(lambda rank: tf.random.stateless_normal([3_000_001], [rank, 1])))
    for found in (dp.allreduce(x), tf.function(dp.allreduce)(x)):
        if in_shared_memory():
            same(found, want)
        else:  # added in the order of the ring
            np.testing.assert_allclose(found, want, rtol=1e-5, atol=1e-6)
            same(dp.broadcast(found, 1), found)


def case_variables_arrays_and_numbers_are_tensors_too():
    assert dp.allreduce(tf.Variable([1.0, dp.rank()]), dp.Sum).numpy().tolist() == [dp.size(), sum(by_rank(int))]
    assert dp.allreduce(np.float64(dp.rank()), dp.Max).numpy() == dp.size() - 1
    assert dp.allreduce(2, dp.Product).numpy() == 2 ** dp.size()
    layer = tf.keras.layers.Dense(1, kernel_initializer="ones")
    layer.build((None, 2))
    assert dp.allreduce(layer.kernel, dp.Sum).numpy().tolist() == [[dp.size()], [dp.size()]]
    assert dp.grouped_allreduce([]) == []


def case_static_shapes_are_kept_in_graphs():
    seen = []

    @tf.function(input_signature=[tf.TensorSpec([None, 3])])
    def shapes(x):
        outs = (dp.allreduce(x), dp.allgather(x), dp.broadcast(x), dp.allreduce(tf.zeros([2, 5])))
        seen.extend(out.shape.as_list() for out in outs)
        return outs

    shapes(tf.zeros([4, 3]))
    assert seen == [[None, 3], [None, 3], [None, 3], [2, 5]]


def case_several_collectives_in_a_function_keep_their_order():
    @tf.function
    def series(x):
        # Nothing but the order of the program ties these to one another.
        one = dp.allreduce(x, dp.Sum, name="one")
        two = dp.allgather(x[None], name="two")
        dp.barrier(name="three")
        three = dp.broadcast(x, dp.size() - 1, name="four")
        for step in tf.range(5):
            x += dp.allreduce(tf.cast(step, tf.float32), dp.Max, name="in a loop")
        if tf.reduce_sum(one) > 0:
            x = dp.allreduce(x, dp.Sum, name="in a branch")
        return one, two, three, x

    for _ in range(20):
        one, two, three, x = series(tf.constant(float(dp.rank())))
        total = float(sum(by_rank(int)))
        assert (one.numpy(), two.numpy().tolist()) == (total, [float(rank) for rank in range(dp.size())])
        assert (three.numpy(), x.numpy()) == (dp.size() - 1, total + 10 * dp.size())


def case_calls_of_a_function_keep_their_order():
    """And so do those of its gradient. Nothing else ties them to one another, and some have to wait on some ranks."""
    weights = tf.Variable(tf.eye(100))

    @tf.function
    def summed(x):
        return dp.allreduce(x @ weights, dp.Sum, name="one")

    def late(x):
        for _ in range(50):
            x = tf.tanh(x @ x)
        return x * 0

    @tf.function
    def series(x):
        found, target = [], 0.0
        with tf.GradientTape() as tape:
            tape.watch(x)
            for number in range(1, 5):
                waits = number % 2 == dp.rank() % 2
                found.append(summed(number * x + (late(x) if waits else 0.0)))
                target += number * tf.reduce_sum(found[-1])
        return found, tape.gradient(target, x)

    for _ in range(5):
        found, gradient = series(tf.ones([100, 100]))
        assert [float(each[0, 0]) for each in found] == [number * dp.size() for number in range(1, 5)]
        assert np.all(gradient.numpy() == dp.size() * sum(number**2 for number in range(1, 5))), gradient


def case_rows_are_gathered_whatever_their_numbers():
    for dtype in (*DTYPES, tf.bool, tf.uint8, tf.complex64):
        for call in (dp.allgather, tf.function(dp.allgather)):
            found = call(tf.cast(tf.fill([dp.rank() * 2, 3], dp.rank()), dtype))
            parts = by_rank(lambda rank, d=dtype: tf.cast(tf.fill([rank * 2, 3], rank), d))
            same(found, tf.concat(parts, 0))
    assert dp.allgather([dp.rank()]).numpy().tolist() == by_rank(int)


def case_broadcast_from_every_root():
    for root, dtype in itertools.product(range(dp.size()), (*DTYPES, tf.bool, tf.uint8)):
        mine = tf.cast(tf.reshape(tf.range(6) * (dp.rank() + 1), [2, 3]), dtype)
        want = tf.cast(tf.reshape(tf.range(6) * (root + 1), [2, 3]), dtype)
        same(dp.broadcast(mine, root), want)
        same(tf.function(lambda x, r=root: dp.broadcast(x, r))(mine), want)


def case_variables_take_the_roots_values_in_place():
    def made(rank):
        return [
            tf.Variable(tf.fill([2, 3], float(rank)), name="weights"),
            tf.Variable(rank, name="count", dtype=tf.int64),
            tf.Variable(rank == 1, name="flag"),
            tf.Variable(tf.zeros([0]), name="empty"),
        ]

    variables = made(dp.rank())
    for root in range(dp.size()):
        mine = made(dp.rank())
        dp.broadcast_variables(mine, root)
        for variable, want in zip(mine, made(root), strict=True):
            same(variable.value(), want.value())
    tf.function(lambda: dp.broadcast_variables(variables, 1))()
    assert variables[0].numpy().tolist() == [[1.0] * 3] * 2
    layer = tf.keras.layers.Dense(3)
    layer.build((None, 2))
    dp.broadcast_variables(layer.variables)
    same(dp.allreduce(layer.kernel, dp.Min), dp.allreduce(layer.kernel, dp.Max))
    dp.broadcast_variables([])


def case_objects_of_any_size():
    for root in range(dp.size()):
        for mine in ({"rank": dp.rank(), "list": [1, None]}, bytes([dp.rank()]) * 3_000_000, None):
            want = mine if not isinstance(mine, dict) else {**mine, "rank": root}
            want = want if not isinstance(mine, bytes) else bytes([root]) * len(mine)
            assert dp.broadcast_object(mine, root) == want


def case_gradients_of_sums_and_averages():
    for op, in_function in itertools.product((dp.Sum, dp.Average), (False, True)):

        def slope(x, op=op):
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = dp.allreduce(x * x, op) * float(dp.rank() + 1)
            return tape.gradient(y, x)

        x = tf.constant([3.0, float(dp.rank())])
        found = (tf.function(slope) if in_function else slope)(x)
        weights = sum(rank + 1.0 for rank in range(dp.size()))
        want = 2 * x * (weights if op is dp.Sum else weights / dp.size())
        same(found, want)


def case_gradients_of_mixed_lists_leave_integers_out():
    x = tf.constant([2.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        double, count, half = dp.grouped_allreduce([2 * x, tf.constant(dp.rank()), x / 2], dp.Sum)
        y = double + half
    assert count.numpy() == sum(by_rank(int))
    assert tape.gradient(y, x).numpy().tolist() == [2.5 * dp.size()]


def case_gradients_of_gathered_rows_and_broadcasts():
    for in_function in (False, True):

        def slopes(x):
            with tf.GradientTape(persistent=True) as tape:
                tape.watch(x)
                rows = dp.allgather(x)
                places = tf.cast(tf.range(tf.shape(rows)[0]), tf.float32)[:, None]
                gathered = tf.reduce_sum(rows * places)
                spread = tf.reduce_sum(dp.broadcast(x[0], 1)) * float(dp.rank() + 1)
            return tape.gradient(gathered, x), tape.gradient(spread, x)

        x = tf.ones([dp.rank() + 1, 2])
        of_rows, of_spread = (tf.function(slopes) if in_function else slopes)(x)
        first = sum(range(1, dp.rank() + 1))
        want = [[float(dp.size() * (first + row))] * 2 for row in range(dp.rank() + 1)]
        assert of_rows.numpy().tolist() == want
        total = sum(rank + 1.0 for rank in range(dp.size())) if dp.rank() == 1 else 0.0
        assert of_spread.numpy().tolist() == [[total] * 2] + [[0.0] * 2] * dp.rank()


def case_second_derivatives():
    x = tf.constant(3.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            y = dp.allreduce(x**3, dp.Average)
        slope = inner.gradient(y, x)
    assert outer.gradient(slope, x).numpy() == 18.0


def raises(kind, function, *args, **kwargs):
    try:
        function(*args, **kwargs)
    except kind as error:
        return str(error)
    raise AssertionError(f"no {kind.__name__}")


def case_other_operations_cannot_be_differentiated():
    x = tf.constant([1.0])
    with tf.GradientTape() as tape:
        tape.watch(x)
        y = dp.allreduce(x, dp.Max)
    message = raises(NotImplementedError, tape.gradient, y, x)
    assert "allreduce with Max at" in message
    assert "cases_collectives.py:" in message


def case_what_cannot_be_sent():
    here = "cases_collectives.py:"
    for message in (
        raises(TypeError, dp.allreduce, tf.constant(["text"])),
        raises(TypeError, dp.allreduce, tf.constant([True])),
        raises(TypeError, dp.allreduce, tf.IndexedSlices(tf.ones([1, 2]), tf.constant([0]))),
        raises(TypeError, dp.broadcast, tf.constant(["text"])),
        raises(ValueError, dp.broadcast, tf.ones(1), dp.size()),
        raises(ValueError, dp.broadcast_variables, [], -1),
        raises(TypeError, dp.broadcast, tf.ones(1), tf.constant(0)),
    ):
        assert here in message, message
    assert "use tf.expand_dims(x, 0)" in raises(ValueError, dp.allgather, 1.0)
    assert "it must be dp.Average, dp.Sum" in raises(TypeError, dp.allreduce, 1.0, "sum")
    message = raises(RuntimeError, tf.function(lambda: dp.broadcast_object(1)))
    assert "is inside a tf.function" in message


def case_a_mismatch_names_both_calls_and_places():
    message = raises(dp.CollectiveMismatchError, dp.allreduce, tf.ones(2 + dp.rank()), dp.Sum, name="loss")
    assert "rank 0 called allreduce Sum named 'loss' of float32[2] at" in message
    assert "rank 1 called allreduce Sum named 'loss' of float32[3] at" in message
    assert "cases_collectives.py:" in message

    @tf.function
    def step(x):
        return dp.allreduce(x)

    message = raises(tf.errors.OpError, step, tf.ones(2 + dp.rank()))
    assert "CollectiveMismatchError: the ranks met in different collectives" in message
    assert "cases_collectives.py:" in message
    variables = [tf.Variable(tf.zeros(3), name="a"), tf.Variable(tf.zeros(dp.rank() + 1), name="b")]
    assert "b" in raises(dp.CollectiveMismatchError, dp.broadcast_variables, variables)
    assert dp.allreduce(1, dp.Sum).numpy() == dp.size(), "the ranks have met and can go on"


def case_python_data_generators_run_while_a_rank_waits():
    store, arena = current().store, meeting()._arena
    before = arena.sequence(dp.rank())

    def items():
        yield 0
        # By now rank 0 is in the barrier, and this needs the interpreter lock of rank 0.
        if dp.rank() == 0:
            store.fetch("rank 0 waits in the barrier", 60)
            store.publish("the generator went on", b"", readers=1)
        yield 1

    data = tf.data.Dataset.from_generator(items, output_signature=tf.TensorSpec([], tf.int64)).prefetch(2)
    iterator = iter(data)
    assert next(iterator).numpy() == 0
    if dp.rank() == 1:
        while arena.sequence(0) == before:
            os.sched_yield()
        store.publish("rank 0 waits in the barrier", b"", readers=1)
        store.fetch("the generator went on", 60)
    dp.barrier()
    assert next(iterator).numpy() == 1


def case_the_job_has_one_seed_for_data_decisions():
    import random

    drawn = [random.random(), np.random.rand(), current().seed]
    assert dp.broadcast_object(drawn) == drawn


def case_topology():
    assert dp.allgather([dp.rank()]).numpy().tolist() == list(range(dp.size()))
    assert (dp.local_rank(), dp.local_size(), dp.cross_rank(), dp.cross_size()) == (dp.rank(), dp.size(), 0, 1)


def case_the_store_over_real_processes():
    store = current().store
    if dp.rank() == 0:
        store.publish("large", b"x" * 5_000_000)
    else:
        assert store.fetch("large") == b"x" * 5_000_000
        assert "which nobody has published" in raises(dp.StoreTimeout, store.fetch, "never", 0.01)
    dp.barrier()
