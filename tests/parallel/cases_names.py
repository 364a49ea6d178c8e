"""`tfdp.runtime.horovod` and `tfdp.runtime.smdistributed`: the names, arguments and results of those systems."""

import random

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime.horovod.keras as hvd_keras
import tfdp.runtime.horovod.tensorflow as hvd
import tfdp.runtime.smdistributed.dataparallel.tensorflow as sdp
from tfdp.runtime.foundation import TfdpError

RANKS = (2, 3)
DEVICE_RANKS = (2,)
INIT = {"as_written": True}


def every(value):
    return hvd.allgather_object(value)


def case_each_rank_draws_by_itself():
    drawn = every((random.random(), float(np.random.rand()), float(tf.random.uniform([]))))
    assert len(set(drawn)) == hvd.size(), drawn


def case_generators_are_seeded_as_the_script_says():
    tf.keras.utils.set_random_seed(3)
    dropped = tf.keras.layers.Dropout(0.5)(tf.ones([4, 50]), training=True)
    masks = every(dropped.numpy().tobytes())
    assert len(set(masks)) == 1
    generator = tf.random.Generator.from_seed(5)
    assert len(set(every(float(generator.uniform([]))))) == 1


def case_variables_start_as_each_rank_makes_them():
    table = tf.Variable(np.arange(4.0 + hvd.rank()))
    assert every(table.numpy().tolist()) == [list(range(4 + rank)) for rank in range(hvd.size())]
    if hvd.rank() == 1:
        tf.Variable(5.0)


def case_a_rank_may_keep_its_data_in_variables():
    data, weight = tf.Variable([hvd.rank() + 1.0]), tf.Variable([2.0])

    @tf.function
    def gradient():
        with tf.GradientTape() as tape:
            loss = tf.reduce_sum(weight * data)
        return hvd.DistributedGradientTape(tape).gradient(loss, [weight])[0]

    for _ in range(3):
        np.testing.assert_allclose(gradient().numpy(), [sum(range(1, hvd.size() + 1)) / hvd.size()])
    assert float(data[0]) == hvd.rank() + 1.0


def case_who_is_who():
    assert hvd.is_initialized()
    assert sorted(every((hvd.rank(), hvd.local_rank(), hvd.cross_rank()))) == [(r, r, 0) for r in range(hvd.size())]
    assert (hvd.local_size(), hvd.cross_size(), hvd.is_homogeneous()) == (hvd.size(), 1, True)
    assert not any((hvd.mpi_enabled(), hvd.gloo_built(), hvd.nccl_built(), hvd.mpi_threads_supported()))
    assert (sdp.rank(), sdp.size(), hvd_keras.rank()) == (hvd.rank(), hvd.size(), hvd.rank())
    hvd.init()
    sdp.init()
    with pytest.raises(TfdpError, match="all ranks take part"):
        hvd.init(comm=[0, 1])


def case_allreduce_by_its_older_and_newer_words():
    mine, size = tf.constant([1.0, float(hvd.rank())]), hvd.size()
    total = [float(size), sum(range(size))]
    mean = [1.0, total[1] / size]
    for given, wanted in [
        ({}, mean),
        ({"average": True}, mean),
        ({"average": False}, total),
        ({"op": hvd.Sum}, total),
        ({"op": hvd.Average}, mean),
        ({"op": hvd.Max}, [1.0, size - 1.0]),
        ({"op": hvd.Min}, [1.0, 0.0]),
        ({"op": hvd.Sum, "prescale_factor": 2.0, "postscale_factor": 0.5}, total),
        ({"compression": hvd.Compression.fp16}, mean),
        ({"name": "loss", "device_dense": "/cpu:0"}, mean),
    ]:
        np.testing.assert_allclose(hvd.allreduce(mine, **given).numpy(), wanted, rtol=1e-3)
    np.testing.assert_allclose(hvd.allreduce(mine, False).numpy(), total)
    np.testing.assert_allclose(hvd_keras.allreduce(mine, "loss", False).numpy(), total)
    np.testing.assert_allclose(hvd_keras.allreduce(float(hvd.rank())).numpy(), mean[1])
    np.testing.assert_allclose(sdp.oob_allreduce(mine).numpy(), mean)
    np.testing.assert_allclose(sdp.allreduce(mine, 0, 1, op=sdp.ReduceOp.SUM).numpy(), total)
    with pytest.raises(ValueError, match="both op and average"):
        hvd.allreduce(mine, average=True, op=hvd.Sum)
    one, other = hvd.grouped_allreduce([mine, mine + 1], op=hvd.Sum, name="both")
    np.testing.assert_allclose((other - one).numpy(), [size, size])


def case_gradients_of_gathers_and_broadcasts_are_means():
    size, mine = hvd.size(), tf.Variable([1.0])
    with tf.GradientTape(persistent=True) as tape:
        gathered = tf.reduce_sum(hvd.allgather(mine * 1.0) * (hvd.rank() + 1.0))
        sent = tf.reduce_sum(hvd.broadcast(mine * 1.0, 0) * (hvd.rank() + 1.0))
    mean = sum(range(1, size + 1)) / size
    np.testing.assert_allclose(tape.gradient(gathered, mine).numpy(), [mean])
    np.testing.assert_allclose(tape.gradient(sent, mine).numpy(), [mean if hvd.rank() == 0 else 0.0])


def case_functions_are_sent():
    number = hvd.rank()
    assert hvd.broadcast_object(lambda: number)() == 0
    assert [each() for each in every(lambda: number)] == list(range(hvd.size()))


def case_integers_keep_their_type():
    found = hvd.allreduce(tf.constant([3, hvd.rank()]), op=hvd.Sum, prescale_factor=2.0)
    assert found.dtype == tf.int32
    assert found.numpy().tolist() == [6 * hvd.size(), 2 * sum(range(hvd.size()))]


def case_slices_of_all_ranks():
    slices = tf.IndexedSlices(tf.fill([1, 2], hvd.rank() + 1.0), tf.constant([hvd.rank()]), tf.constant([8, 2]))
    found = hvd.allreduce(slices)
    assert found.indices.numpy().tolist() == list(range(hvd.size()))
    np.testing.assert_allclose(found.values.numpy()[:, 0], [(r + 1) / hvd.size() for r in range(hvd.size())])
    summed, dense = hvd.grouped_allreduce([slices, tf.ones([2])], average=False)
    np.testing.assert_allclose(summed.values.numpy()[:, 0], [r + 1 for r in range(hvd.size())])
    np.testing.assert_allclose(dense.numpy(), [hvd.size()] * 2)
    with pytest.raises(NotImplementedError, match="not scaled"):
        hvd.allreduce(slices, prescale_factor=2.0)


def case_gathers_and_broadcasts():
    mine = tf.fill([hvd.rank() + 1, 1], float(hvd.rank()))
    wanted = [float(r) for r in range(hvd.size()) for _ in range(r + 1)]
    assert hvd.allgather(mine).numpy()[:, 0].tolist() == wanted
    assert hvd_keras.allgather(mine).numpy()[:, 0].tolist() == wanted
    assert hvd.grouped_allgather([mine, -mine])[1].numpy()[:, 0].tolist() == [-each for each in wanted]
    last = hvd.size() - 1
    assert float(hvd.broadcast(tf.constant(float(hvd.rank())), last)) == last
    assert float(hvd_keras.broadcast(hvd.rank() * 1.0, last, name="resume_from_epoch")) == last
    assert hvd.broadcast_object({"rank": hvd.rank()}, root_rank=last) == {"rank": last}
    assert every([hvd.rank()] * (hvd.rank() + 1)) == [[r] * (r + 1) for r in range(hvd.size())]
    every(None)


def case_variables_take_the_roots_values_from_a_list_or_a_method():
    variable = tf.Variable(0.0)
    for call in (hvd.broadcast_variables, hvd.broadcast_, sdp.broadcast_variables):
        for given in ([variable], lambda: [variable]):
            variable.assign(hvd.rank() + 1.0)
            call(given, root_rank=0)
            assert float(variable) == 1.0
    with pytest.raises(RuntimeError, match="sessions"):
        hvd.broadcast_global_variables(0)


def case_generators_of_layers_stay_each_ranks_own():
    model = tf.keras.Sequential([tf.keras.layers.Dropout(0.5), tf.keras.layers.Dense(1)])
    model(tf.ones([2, 3]))
    for layer in model.layers:
        for each in getattr(getattr(layer, "seed_generator", None), "variables", None) or []:
            each.assign(each + hvd.rank())
    before = [np.array(each) for each in model.variables if "seed" in each.name]
    hvd.broadcast_variables(model.variables, root_rank=0)
    after = [np.array(each) for each in model.variables if "seed" in each.name]
    assert all(map(np.array_equal, before, after))
    assert len({kernel.tobytes() for kernel in every(np.array(model.layers[1].kernel))}) == 1


def gradient(wrap, entered=None, **options):
    variable = tf.Variable([2.0, 3.0])
    with entered or tf.GradientTape() as tape:
        loss = tf.reduce_sum(variable * (hvd.rank() + 1.0))
    return wrap(tape, **options).gradient(loss, [variable])[0].numpy().tolist()


def case_tapes():
    size = hvd.size()
    mean = sum(range(1, size + 1)) / size
    for options in ({}, {"device_dense": "/cpu:0"}, {"gradient_predivide_factor": 2.0}, {"groups": 1, "num_groups": 1}):
        np.testing.assert_allclose(gradient(hvd.DistributedGradientTape, **options), [mean] * 2, rtol=1e-6)
    np.testing.assert_allclose(gradient(hvd.DistributedGradientTape, op=hvd.Sum), [mean * size] * 2)
    np.testing.assert_allclose(gradient(sdp.DistributedGradientTape, sparse_as_dense=True), [mean] * 2)
    wrapped = hvd.DistributedGradientTape(tf.GradientTape(), "", "", hvd.Compression.fp16)
    np.testing.assert_allclose(gradient(lambda tape: tape, wrapped), [mean] * 2, rtol=1e-3)
    assert isinstance(wrapped, tf.GradientTape)
    with pytest.raises(TfdpError, match="all ranks take part"):
        hvd.DistributedGradientTape(tf.GradientTape(), process_set=object())


def case_slices_are_sent_as_they_are():
    table = tf.Variable(np.ones([4, 2], "float32"))
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.gather(table, [hvd.rank()])) * 1e-8  # nothing in float16
    found = hvd.DistributedGradientTape(tape, compression=hvd.Compression.fp16).gradient(loss, [table])[0]
    np.testing.assert_allclose(found.values.numpy(), np.full([hvd.size(), 2], 1e-8 / hvd.size()), rtol=1e-6)


def case_optimizers_in_both_orders_of_arguments():
    keras = tf.keras.optimizers
    for made in (
        hvd.DistributedOptimizer(keras.SGD(1.0), None, False, "", "", hvd.Compression.none, False, 1, hvd.Sum),
        hvd_keras.DistributedOptimizer(keras.SGD(1.0), None, "", "", hvd.Compression.none, False, 1.0, hvd.Sum),
        sdp.DistributedOptimizer(keras.SGD(1.0), op=sdp.ReduceOp.SUM),
    ):
        variable = tf.Variable(0.0)
        made.apply_gradients([(tf.constant(hvd.rank() + 1.0), variable)])
        assert float(variable) == -sum(range(1, hvd.size() + 1))


def case_an_optimizer_is_made_anew_of_its_configuration():
    base, variable = tf.keras.optimizers.SGD(0.5, momentum=0.9, clipnorm=3.0), tf.Variable(0.0)
    base.apply_gradients([(tf.constant(1.0), variable)])
    made = [hvd.DistributedOptimizer(base), hvd.DistributedOptimizer(base), hvd_keras.DistributedOptimizer(base)]
    assert len({id(each) for each in (base, *made)}) == 4
    assert all(type(each) is type(base) and int(each.iterations) == 0 and each.clipnorm == 3.0 for each in made)
    variable.assign(0.0)
    made[0].apply_gradients([(tf.constant(hvd.rank() + 1.0), variable)])
    np.testing.assert_allclose(float(variable), -0.5 * sum(range(1, hvd.size() + 1)) / hvd.size())


def case_an_optimizer_leaves_gradients_to_a_tape_that_has_averaged_them():
    variable = tf.Variable(0.0)
    optimizer = hvd.DistributedOptimizer(tf.keras.optimizers.SGD(1.0), op=hvd.Sum)
    for step in (1, 2):
        with tf.GradientTape() as tape:
            loss = variable * (hvd.rank() + 1.0)
        gradient = hvd.DistributedGradientTape(tape).gradient(loss, [variable])[0]
        optimizer.apply_gradients([(gradient, variable)])
        np.testing.assert_allclose(float(variable), -step * sum(range(1, hvd.size() + 1)) / hvd.size(), rtol=1e-6)


def case_the_model_takes_the_roots_values_after_the_first_batch():
    class Seen(tf.keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002
            kernels.append(np.array(self.model.layers[0].kernel))

    kernels = []
    start = tf.keras.initializers.Constant(hvd.rank() + 1.0)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1, kernel_initializer=start)])
    model.compile(hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(0.0)), "mse")
    given = [Seen(), hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0), Seen()]
    model.fit(np.ones([4, 2]), np.ones([4, 1]), batch_size=2, epochs=1, verbose=0, callbacks=given)
    assert [float(each[0, 0]) for each in kernels] == [hvd.rank() + 1.0, 1.0, 1.0, 1.0]


def case_models_of_one_rank_train_by_themselves():
    if hvd.rank() == 0:
        model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(np.ones([4, 2]), np.ones([4, 1]), epochs=1, verbose=0)
    every(None)


def case_bytes_and_numbers_as_tensors():
    for dtype in (tf.int8, tf.uint8):
        found = hvd.allreduce(tf.constant([hvd.rank() + 3], dtype), op=hvd.Sum)
        assert (found.dtype, int(found[0])) == (dtype, sum(range(3, 3 + hvd.size())))
    numbers = tf.function(lambda: [hvd.rank_op(), hvd.size_op(), hvd.local_rank_op(), hvd.local_size_op()])()
    assert [int(each) for each in numbers] == [hvd.rank(), hvd.size(), hvd.rank(), hvd.size()]


class Rates(tf.keras.callbacks.Callback):
    """The rate at each batch."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def on_train_batch_end(self, batch, logs=None):  # noqa: ARG002
        self.seen.append(round(float(np.asarray(self.model.optimizer.learning_rate)), 6))


def rates(*callbacks, rate=0.5, epochs=4):
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    model.compile(hvd_keras.DistributedOptimizer(tf.keras.optimizers.SGD(rate)), "mse")
    seen = Rates()
    given = [hvd_keras.callbacks.BroadcastGlobalVariablesCallback(0), *callbacks, seen]
    model.fit(np.ones([4, 2]), np.ones([4, 1]), batch_size=2, epochs=epochs, verbose=0, callbacks=given)
    return seen.seen


def case_a_constant_multiplier_is_a_decay_as_in_horovod():
    schedule = hvd_keras.callbacks.LearningRateScheduleCallback(initial_lr=1.0, multiplier=0.5, start_epoch=1)
    assert rates(schedule) == [0.5, 0.5, 1.0, 1.0, 0.5, 0.5, 0.25, 0.25]


def case_a_warm_up_rises_to_the_scaled_rate():
    size = hvd.size()
    warm_up = hvd_keras.callbacks.LearningRateWarmupCallback(initial_lr=1.0, warmup_epochs=2)
    done = [(1 + (size - 1) * step / 4) / size for step in range(1, 5)]
    np.testing.assert_allclose(rates(warm_up, epochs=3), [*done, 1.0, 1.0], atol=1e-6)
    without = rates(hvd_keras.callbacks.LearningRateWarmupCallback(warmup_epochs=2), rate=1.0, epochs=3)
    np.testing.assert_allclose(without, [*done, 1.0, 1.0], atol=1e-6)


def case_what_is_left_out_says_so():
    for module, name in ((hvd, "join"), (hvd, "alltoall"), (hvd_keras, "elastic"), (hvd_keras.callbacks, "Best")):
        with pytest.raises(AttributeError, match=name):
            getattr(module, name)
    with pytest.raises(AttributeError, match="sessions"):
        sdp.BroadcastGlobalVariablesHook(0)
