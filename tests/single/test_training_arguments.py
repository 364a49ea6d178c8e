"""Numbers that become a rank's own: steps, batch sizes, rates, seeds, devices; and what is refused."""

import copy
import types

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp
from tfdp.runtime.training import learning_rate, schedules


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"batch_norm": "Local", "shard_calls": True}, 'it is "global" or "local"'),
        ({"batch_norm": "local"}, "is for sharded calls"),
        ({"shard_calls": True, "same_start": False}, "needs same_start=True"),
    ],
)
def test_what_init_cannot_do_is_said_before_anything_is_joined(options, said):
    with pytest.raises(ValueError, match=said):
        dp.init(**options)


@pytest.mark.parametrize(
    ("steps", "size", "want"),
    [(100, 4, 25), (10, 4, 3), (9, 4, 2), (1, 4, 1), (2, 4, 1), (3, 2, 2), (0, 4, 0), (-1, 4, -1), (1, 3, 1)],
)
def test_local_steps_round_half_up_and_keep_all_and_none(be_rank, steps, size, want):
    be_rank(0, size)
    assert dp.local_steps(steps) == want
    assert dp.local_steps(np.int32(steps)) == want
    for dtype in (tf.int32, tf.int64):
        found = dp.local_steps(tf.constant(steps, dtype))
        assert found.numpy() == want
        assert found.dtype == dtype


def test_local_steps_of_a_list_and_of_a_float(be_rank):
    be_rank(0, 4)
    assert dp.local_steps([100, 10]) == [25, 3]
    assert dp.local_steps((100.0, 0.0)) == [25.0, 0.0]
    assert dp.local_steps(10.0) == 2.5
    assert [dp.local_steps(n, whole=False) for n in (100, 10, 1, 0)] == [25, 2.5, 0.25, 0]
    assert float(dp.local_steps(tf.constant(10), whole=False)) == 2.5
    with pytest.raises(TypeError, match="an integer is needed"):
        dp.local_steps([10, "20"])


def test_local_batch_size(be_rank):
    be_rank(1, 3)
    assert dp.local_batch_size(96) == 32
    with pytest.raises(
        ValueError, match=r"batch size 100 at .*test_training_arguments.* 3 ranks.*\(1, 2, 4, 5, 10, 20"
    ):
        dp.local_batch_size(100)
    with pytest.raises(ValueError, match="at least 1"):
        dp.local_batch_size(0)
    for wrong in (1.5, "32", True, None):
        with pytest.raises(TypeError, match="an integer is needed"):
            dp.local_batch_size(wrong)
    for wrong in ("32", True, None):
        with pytest.raises(TypeError, match="an integer is needed"):
            dp.local_steps(wrong)
    with pytest.raises(TypeError, match="float32"):
        dp.local_steps(tf.constant(1.5))


def test_rates_that_are_numbers(be_rank):
    be_rank(0, 4)
    assert dp.scale_lr(0.001) == 0.001 * 4
    assert dp.scale_lr(1) == 4
    for wrong in (None, "0.1", True, {}):
        with pytest.raises(TypeError, match="a number, a tensor"):
            dp.scale_lr(wrong)


SCHEDULES = tf.keras.optimizers.schedules
BUILT_IN = {
    "CosineDecay": lambda: SCHEDULES.CosineDecay(0.1, 10, alpha=0.2),
    "CosineDecay, warm-up": lambda: SCHEDULES.CosineDecay(0.0, 10, warmup_target=0.3, warmup_steps=4),
    "CosineDecayRestarts": lambda: SCHEDULES.CosineDecayRestarts(0.1, 4, alpha=0.1),
    "ExponentialDecay": lambda: SCHEDULES.ExponentialDecay(0.1, 3, 0.5, staircase=True, name="mine"),
    "InverseTimeDecay": lambda: SCHEDULES.InverseTimeDecay(0.1, 3, 0.5),
    "PiecewiseConstantDecay": lambda: SCHEDULES.PiecewiseConstantDecay([3, 6], [0.1, 0.05, 0.01]),
    "PolynomialDecay": lambda: SCHEDULES.PolynomialDecay(0.1, 8, 0.02, power=2.0),
}


@pytest.mark.parametrize("make", BUILT_IN.values(), ids=BUILT_IN)
def test_keras_schedules_keep_their_class(be_rank, make):
    be_rank(0, 4)
    schedule = make()
    scaled = dp.scale_lr(schedule)
    assert type(scaled) is type(schedule)
    for step in range(0, 15):
        np.testing.assert_allclose(scaled(step), 4 * np.asarray(schedule(step)), rtol=1e-6)
    again = SCHEDULES.deserialize(SCHEDULES.serialize(scaled))
    np.testing.assert_allclose(again(5), scaled(5))


def test_every_schedule_of_keras_is_known():
    """A new one may not be linear in the arguments that we know."""
    names = {
        name
        for name, thing in vars(SCHEDULES).items()
        if isinstance(thing, type) and issubclass(thing, SCHEDULES.LearningRateSchedule)
    }
    assert names - {"LearningRateSchedule"} == set(learning_rate._LINEAR_ARGUMENTS)


class Steep(SCHEDULES.LearningRateSchedule):
    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def __call__(self, step):
        return self.rate / (1.0 + tf.cast(step, tf.float32))

    def get_config(self):
        return {"rate": self.rate}


def test_a_schedule_of_the_users_own_is_wrapped(be_rank):
    be_rank(0, 4)
    scaled = dp.scale_lr(Steep(0.5))
    assert isinstance(scaled, schedules.ScaledSchedule)
    assert scaled(tf.constant(1)).numpy() == 1.0
    with tf.keras.utils.custom_object_scope({"Steep": Steep}):
        again = SCHEDULES.deserialize(SCHEDULES.serialize(scaled))
    assert type(again) is schedules.ScaledSchedule
    assert again(tf.constant(1)).numpy() == 1.0
    variable = tf.Variable(1.0)
    optimizer = tf.keras.optimizers.SGD(scaled)
    optimizer.apply_gradients([(tf.constant(0.25), variable)])
    assert variable.numpy() == 0.5


def test_a_subclass_of_a_built_in_schedule_is_wrapped(be_rank):
    class Half(SCHEDULES.ExponentialDecay):
        def __call__(self, step):
            return super().__call__(step) + 1.0

    be_rank(0, 2)
    scaled = dp.scale_lr(Half(0.5, 10, 1.0))
    assert scaled(0).numpy() == 3.0


def test_the_square_root_of_the_workers(be_rank):
    be_rank(0, 4)
    assert dp.scale_lr(0.5, scale="sqrt") == 1.0
    assert dp.scale_lr(np.float32(0.5), scale="sqrt").dtype == np.float32
    assert dp.scale_lr(1, scale="none") == 1
    exponential = SCHEDULES.ExponentialDecay(0.5, 10, 0.5)
    assert dp.scale_lr(exponential, scale="none") is exponential
    np.testing.assert_allclose(dp.scale_lr(exponential, scale="sqrt")(10), 0.5)
    with pytest.raises(ValueError, match="linear, sqrt, none"):
        dp.scale_lr(0.5, scale="square")


@pytest.mark.parametrize("rate", [0.5, np.float32(0.5), Steep(1.0)], ids=["number", "numpy", "schedule"])
def test_a_rate_that_warms_up(be_rank, rate):
    be_rank(0, 4)
    warm = dp.scale_lr(rate, warmup_steps=10)
    plain = [float(rate(tf.constant(k))) if callable(rate) else 0.5 for k in (0, 5, 10, 50)]
    found = [float(warm(tf.constant(k, tf.int64))) for k in (0, 5, 10, 50)]
    np.testing.assert_allclose(found, [f * p for f, p in zip((1, 2.5, 4, 4), plain, strict=True)], rtol=1e-6)
    with tf.keras.utils.custom_object_scope({"Steep": Steep}):
        again = SCHEDULES.deserialize(SCHEDULES.serialize(warm))
    np.testing.assert_allclose(again(5), warm(5))
    assert float(tf.keras.optimizers.SGD(warm).learning_rate) == plain[0]
    be_rank(0, 1)
    assert dp.scale_lr(rate, warmup_steps=10) is rate


def test_what_cannot_warm_up_is_said(be_rank):
    be_rank(0, 2)
    with pytest.raises(TypeError, match="a number, a tensor"):
        dp.scale_lr(lambda: 0.1, warmup_steps=5)
    with pytest.raises(ValueError, match="not negative"):
        dp.scale_lr(0.1, warmup_steps=-1)


def test_a_schedule_that_sees_the_steps_of_one_process(be_rank):
    be_rank(0, 1)
    steep = Steep(0.5)
    assert dp.local_schedule(steep) is steep
    be_rank(0, 4)
    local = dp.local_schedule(steep)
    assert [float(local(tf.constant(k))) for k in (0, 1, 2)] == [float(steep(tf.constant(4 * k))) for k in (0, 1, 2)]
    assert local.rate == 0.5
    np.testing.assert_allclose(dp.scale_lr(local)(tf.constant(1)), 4 * 0.5 / 5, rtol=1e-6)
    optimizer = tf.keras.optimizers.SGD(dp.scale_lr(local))
    variable = tf.Variable(1.0)
    for _ in range(2):
        optimizer.apply_gradients([(tf.constant(0.25), variable)])
    np.testing.assert_allclose(variable.numpy(), 1.0 - 0.25 * (4 * 0.5 + 4 * 0.5 / 5), rtol=1e-6)
    with tf.keras.utils.custom_object_scope({"Steep": Steep}):
        again = SCHEDULES.deserialize(SCHEDULES.serialize(local))
    assert float(again(tf.constant(1))) == float(local(tf.constant(1)))
    assert float(copy.deepcopy(local)(tf.constant(1))) == float(local(tf.constant(1)))
    with pytest.raises(AttributeError, match="LocalSchedule"):
        _ = type(local).__new__(type(local)).anything
    for wrong in (0.1, float, None):
        with pytest.raises(TypeError, match="needs a Keras LearningRateSchedule"):
            dp.local_schedule(wrong)


def test_an_optimizer_whose_rate_is_not_written(be_rank):
    optimizers = tf.keras.optimizers
    be_rank(0, 4)
    for made in (optimizers.get("adam"), optimizers.get({"class_name": "SGD", "config": {"learning_rate": 0.5}})):
        scaled = dp.scale_optimizer(made)
        assert type(scaled) is type(made)
        np.testing.assert_allclose(float(scaled.learning_rate), 4 * float(made.learning_rate), rtol=1e-6)
    kept = dp.scale_optimizer(optimizers.SGD(0.5, momentum=0.75, nesterov=True), scale="sqrt", warmup_steps=2)
    assert (kept.momentum, kept.nesterov) == (0.75, True)
    assert float(kept.learning_rate) == 0.5  # the first step of the warm-up
    with pytest.raises(TypeError, match="a number is needed"):
        dp.scale_optimizer(optimizers.SGD(SCHEDULES.CosineDecay(0.1, 10)))
    with pytest.raises(TypeError, match="a number is needed"):
        dp.scale_optimizer(0.1)
    be_rank(0, 1)
    plain = optimizers.SGD(0.5)
    assert dp.scale_optimizer(plain) is plain


def test_seeds_by_rank(be_rank):
    seeds = []
    for rank in range(8):
        be_rank(rank, 8)
        seeds.append(dp.rank_seed(np.int64(42)))
    assert seeds[0] == 42
    assert len(set(seeds)) == 8
    assert all(isinstance(seed, int) and 0 <= seed < 2**31 for seed in seeds)
    for wrong in (1.5, "a", True):
        with pytest.raises(TypeError, match="an integer is needed"):
            dp.rank_seed(wrong)
    with pytest.raises(ValueError, match="NumPy needs"):
        dp.set_random_seed(-1)


def test_masks_of_streams_differ_for_all_ranks():
    from tfdp.runtime.job import stream_mask

    masks = [stream_mask(rank) for rank in range(5000)]
    assert masks[0] == 0
    assert len(set(masks)) == 5000
    assert max(masks) < 2**30


def test_left_out_records_are_said_once_per_place(be_rank, capsys):
    be_rank(0, 2)
    for _ in range(3):
        dp.shard(tf.data.Dataset.range(1797))
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "the last 1 of 1797 records" in said[0]
    assert "test_training_arguments.py" in said[0]
    dp.shard(tf.data.Dataset.range(1796))
    be_rank(1, 2)
    dp.shard(tf.data.Dataset.range(1797))
    assert capsys.readouterr().err == ""


@pytest.fixture
def gpus(monkeypatch):
    """Stand-ins for GPUs; gives what was asked of TensorFlow."""
    asked = []

    def install(count, error=None):
        devices = [types.SimpleNamespace(name=f"/physical_device:GPU:{number}") for number in range(count)]

        def set_visible_devices(device, kind):
            if error:
                raise error
            asked.append((device.name, kind))

        monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: devices if kind == "GPU" else [])
        monkeypatch.setattr(tf.config, "set_visible_devices", set_visible_devices)
        monkeypatch.setattr(
            tf.config.experimental, "set_memory_growth", lambda device, on: asked.append((device.name, on))
        )
        return asked

    return install


def test_pin_gpu(be_rank, gpus):
    be_rank(2, 3)
    asked = gpus(4)
    dp.pin_gpu()
    assert asked == [("/physical_device:GPU:2", "GPU"), ("/physical_device:GPU:2", True)]


def test_pin_gpu_without_gpus_and_with_too_few(be_rank, gpus):
    be_rank(2, 3)
    assert gpus(0) == []
    dp.pin_gpu()
    gpus(2)
    with pytest.raises(dp.TfdpError, match=r"2 GPU\(s\) visible for 3 ranks.*-np 2.*CUDA_VISIBLE_DEVICES"):
        dp.pin_gpu()
    gpus(3, RuntimeError("Visible devices cannot be modified after being initialized"))
    with pytest.raises(dp.TfdpError, match=r"right after dp\.init\(\)"):
        dp.pin_gpu()
