"""What a rank puts into the user's graphs, what it publishes, and what it calls variables."""

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp
from tfdp.runtime.framework import Keys, collect, keyed, stream_element
from tfdp.runtime.start.state import _Following, _packed, _unpacked


def before(operation):
    """All operations that must have run before this one."""
    seen, waiting = set(), [operation]
    while waiting:
        current = waiting.pop()
        for other in (*current.control_inputs, *(each.op for each in current.inputs)):
            if other.name not in seen:
                seen.add(other.name)
                waiting.append(other)
    return seen


def test_collectives_keep_the_programs_order_around_the_first_check(be_rank):
    be_rank(0, 2)
    variable, table = tf.Variable([1.0, 2.0]), tf.Variable(tf.ones([3, 2]))

    @tf.function
    def step(x):
        dp.allreduce(x, dp.Sum)
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(variable * x) + tf.reduce_sum(tf.gather(table, [1, 1]))
        gradients = dp.DistributedGradientTape(tape).gradient(loss, [variable, table])
        dp.allreduce(x, dp.Sum)
        return gradients

    operations = step.get_concrete_function(tf.ones([2])).graph.get_operations()
    first, *later = [each for each in operations if each.type == "PyFunc"]
    check = next(each for each in operations if each.type in ("If", "StatelessIf"))
    assert first.name in before(check)
    # The dense gradient, the sparse one, and the last call.
    assert len(later) == 3
    for earlier, call in zip([check, *later], later, strict=False):
        assert earlier.name in before(call), call.name


def test_one_exchange_for_all_dense_gradients(be_rank):
    job = be_rank(0, 2)
    variables = [tf.Variable([1.0]), tf.Variable([1.0], dtype=tf.float64), tf.Variable(2.0)]
    with tf.GradientTape(persistent=True) as tape:
        loss = variables[0] * variables[2] + tf.cast(variables[1], tf.float32)
    dp.DistributedGradientTape(tape).gradient(loss, variables)
    dp.DistributedGradientTape(tape, batch_size=3).gradient(loss, variables)
    reductions = [call for call in job.transport.calls if call[0] == "allreduce"]
    assert [(op, count) for _, op, count, _ in reductions] == [(dp.Average, 4), (dp.Sum, 5)]  # with the fingerprint
    # The values were compared once, for both.
    assert len(job.transport.calls) == 3
    assert "test_training_graphs.py" in job.transport.calls[0][-1].site


def test_the_first_check_comes_before_an_exchange_that_depends_on_nothing(be_rank):
    be_rank(0, 2)
    table, unused = tf.Variable(tf.ones([3, 2])), tf.Variable(1.0)

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(tf.gather(table, [1, 1]))
        return dp.DistributedGradientTape(tape).gradient(loss, [table, unused])[0]

    operations = step.get_concrete_function().graph.get_operations()
    check = next(each for each in operations if each.type in ("If", "StatelessIf"))
    exchanges = [each for each in operations if each.type == "PyFunc"]
    assert len(exchanges) == 2
    assert all(check.name in before(each) for each in exchanges)
    # The look at what has come is over before the second exchange begins: an error would cut that one off.
    looks = [each for each in operations if each.type in ("If", "StatelessIf")]
    assert len(looks) == 4
    assert all(look.name in before(exchanges[1]) for look in looks)


def test_two_exchanges_with_any_number_of_sparse_gradients(be_rank):
    job = be_rank(0, 3)
    tables = [tf.Variable(tf.ones([4, 2], dtype)) for dtype in (tf.float32, tf.float64, tf.float16)]
    weight = tf.Variable(2.0)
    with tf.GradientTape() as tape:
        rows = [[1, 1], [[0], [3]], tf.zeros([0], tf.int32)]
        taken = [tf.gather(table, each) for table, each in zip(tables, rows, strict=True)]
        loss = weight * tf.add_n([tf.cast(tf.reduce_sum(each), tf.float32) for each in taken])
    found = dp.DistributedGradientTape(tape, op=dp.Sum).gradient(loss, [*tables, weight])
    assert [call[0] for call in job.transport.calls] == ["allgather", "allreduce", "allgather"]
    assert [each.indices.numpy().tolist() for each in found[:3]] == [[1, 1] * 3, [0, 3] * 3, []]
    assert [each.values.shape for each in found[:3]] == [(6, 2), (6, 2), (0, 2)]
    assert [each.values.dtype for each in found[:3]] == [tf.float32, tf.float64, tf.float16]
    assert np.all(found[1].values.numpy() == 2.0)


def test_the_check_is_repeated_for_new_variables_at_an_old_address(be_rank):
    job = be_rank(0, 2)
    for _ in range(5):
        variable = tf.Variable(1.0)
        with tf.GradientTape() as tape:
            loss = variable * variable
        dp.DistributedGradientTape(tape).gradient(loss, variable)
        del variable, loss, tape
    assert len([call for call in job.transport.calls if call[0] == "allgather"]) == 5


@pytest.mark.parametrize(
    "array",
    [
        np.arange(12, dtype=np.float32).reshape(3, 4),
        np.zeros((1000, 10)),
        np.full((3, 2), -0.0),
        np.array([0.0, -0.0]),
        np.full(4, np.nan, np.float16),
        np.array(5, np.int64),
        np.zeros((0, 3), np.float32),
        np.array([True, False]),
        np.asfortranarray(np.arange(6).reshape(2, 3)),
        np.array([1 + 2j, 3]),
        tf.constant([1, 2], tf.bfloat16).numpy(),
    ],
    ids=lambda array: f"{array.dtype}{array.shape}",
)
def test_values_come_out_as_they_went_in(array):
    payload = _packed(array)
    found = _unpacked(payload, array.dtype)
    assert found.shape == array.shape
    assert found.dtype == array.dtype
    assert found.tobytes() == array.tobytes()
    assert found.flags.writeable
    assert len(payload) < 300


def test_rank_0_publishes_and_others_take(be_rank):
    root = be_rank(0, 3)
    with tf.variable_creator_scope(_Following(root, row_check=False).create):
        original = tf.Variable([1.0, 2.0], name="dense_4/kernel")
        tf.Variable([5.0, 6.0], name="dense_5/kernel")
    other = be_rank(2, 3)
    other.store.values = root.store.values
    with tf.variable_creator_scope(_Following(other, row_check=False).create):
        first = tf.Variable([0.0, 0.0], name="dense/kernel")
        second = tf.Variable([0.0, 0.0], name="dense_1/kernel")
    assert original.numpy().tolist() == first.numpy().tolist() == [1.0, 2.0]
    assert second.numpy().tolist() == [5.0, 6.0]


def test_what_the_others_wait_for_in_vain_is_named(be_rank):
    job = be_rank(1, 2)

    def fetch(key, timeout=None, publisher=None):  # noqa: ARG001 - the store's signature
        raise dp.StoreTimeout(f"waited for {key}")

    job.store.fetch = fetch
    with (
        tf.variable_creator_scope(_Following(job, row_check=False).create),
        pytest.raises(
            dp.StoreTimeout, match=r"variable 'mine' \(float32, shape \(2,\), number 1 of its kind\).*graphs"
        ),
    ):
        tf.Variable([1.0, 2.0], name="mine")


def test_only_the_live_are_remembered(be_rank):
    following = _Following(be_rank(0, 2), row_check=False)
    with tf.variable_creator_scope(following.create):
        kept, dropped = tf.Variable(1.0), tf.Variable(1.0)
    assert len(following.live()) == 2
    del dropped
    assert [each is kept for each in following.live().values()] == [True]


@pytest.mark.parametrize(
    ("names", "number"),
    [
        (["kernel", "kernel"], 2),
        (["dense/kernel", "dense_1/kernel", "dense_12/kernel"], 3),
        (["sequential_1_dense_1_kernel_momentum", "sequential_dense_kernel_momentum"], 2),
        (["bias", "kernel"], 1),
        (["block_1a", "block"], 1),
        ([None, "Variable"], 2),
    ],
)
def test_keys_count_what_keras_numbers(names, number):
    keys = Keys()
    found = [keys.next(name, tf.float32, tf.TensorShape([2])) for name in names]
    assert len(set(found)) == len(names)
    assert max(key.occurrence for key in found) == number - 1


def test_generator_states_by_name():
    assert stream_element("StateVar:0") == -1
    assert stream_element("seed_generator/seed_generator_state:0") == 0
    assert stream_element("dropout_3/seed_generator_7/seed_generator_state") == 0
    assert stream_element("kernel:0") is None
    assert stream_element(None) is None


def test_each_variable_comes_once():
    model = tf.keras.Sequential([tf.keras.layers.Dense(2), tf.keras.layers.Dropout(0.5)])
    model(tf.ones([1, 3]))
    optimizer = tf.keras.optimizers.Adam()
    optimizer.build(model.trainable_variables)
    found = keyed(collect([model, [model, optimizer], tf.train.Checkpoint(m=model, o=optimizer), model.weights]))
    shapes = [tuple(each.shape) for each in found.values()]
    assert shapes.count((3, 2)) == 3
    assert shapes.count((2,)) == 3
    # The checkpoint has a counter as soon as it has saved.
    assert shapes.count(()) == 2


@pytest.mark.parametrize("wrong", [3, "model", 1.5, len], ids=str)
def test_what_holds_no_variables(wrong):
    with pytest.raises(TypeError, match="holds no variables"):
        collect([wrong])
