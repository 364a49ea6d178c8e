"""`dp.shard_batches`: sources that yield batches, in `fit` and in loops; equally many steps on every rank."""

# ruff: noqa: ARG002 - Keras says which arguments a hook has
import contextlib
import io
import itertools
import random
import re

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (3,)
DEVICE_RANKS = ()

keras = tf.keras
SEQUENCE = getattr(keras.utils, "PyDataset", keras.utils.Sequence)


def by_rank(value):
    return [dp.broadcast_object(value, root) for root in range(dp.size())]


def alike(value):
    every = by_rank(value)
    assert all(str(each) == str(every[0]) for each in every), every
    return every[0]


def raises(kind, said, call):
    with pytest.raises(kind, match=re.escape(said)):
        call()


def arrays(rows):
    x = np.arange(rows, dtype=np.float32)
    return np.stack([x, x], axis=1), x[:, None]


def batches(rows, size=32):
    x, y = arrays(rows)
    for start in range(0, rows, size):
        yield x[start : start + size], y[start : start + size]


def dataset(rows, size=32, known=True, drop=False):
    whole = tf.data.Dataset.from_tensor_slices(arrays(rows))
    return (whole if known else whole.filter(lambda *_: True)).batch(size, drop_remainder=drop)


def expected(rows, size=32):
    """The first numbers of this rank's batches: whole groups of N batches of one size."""
    starts = list(range(0, rows, size))
    groups = [starts[at : at + dp.size()] for at in range(0, len(starts) - len(starts) % dp.size(), dp.size())]
    whole = [group for group in groups if group[-1] + size <= rows or len(group) == 1]
    return [group[dp.rank()] for group in whole]


def firsts(source):
    return [int(np.asarray(x)[0, 0]) for x, _ in source]


class Steps(keras.callbacks.Callback):
    def __init__(self):
        super().__init__()
        self.count, self.by_epoch = 0, []

    def on_train_batch_end(self, batch, logs=None):
        self.count += 1

    def on_epoch_end(self, epoch, logs=None):
        self.by_epoch.append(self.count)
        self.count = 0


class Seen(keras.Model):
    """Remembers the first number of each batch it was trained on."""

    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.seen = []

    def call(self, inputs):
        return self.dense(inputs)

    def note(self, number):
        self.seen.append(int(number))
        return np.float32(0)

    def train_step(self, batch):
        x, y = batch
        noted = tf.numpy_function(self.note, [x[0, 0]], tf.float32)
        noted.set_shape([])
        return super().train_step((x, y + noted))


def fit(source, **arguments):
    model, steps = Seen(), Steps()
    model.compile(dp.DistributedOptimizer(keras.optimizers.SGD(0.0)), "mse")
    model.fit(source, verbose=0, callbacks=dp.fit_callbacks([steps]), **arguments)
    return model.seen, alike(steps.by_epoch)


def case_fit_on_1001_examples_of_all_kinds():
    want = expected(1001)
    assert len(want) == 1001 // 32 // dp.size()
    for source in (batches(1001), dataset(1001, known=False), dataset(1001)):
        seen, steps = fit(dp.shard_batches(source))
        assert seen == want, (source, seen, want)
        assert steps == [len(want)]


def case_one_line_says_what_is_left_out():
    for source, many in ((batches(1001), "1001"), (dataset(1001), "1001"), (Items(1001), "1001"), (batches(71), "71")):
        told = io.StringIO()
        with contextlib.redirect_stderr(told):
            list(iter(dp.shard_batches(source)))
        lines = [line for line in told.getvalue().splitlines() if "left out" in line]
        assert len(lines) == (dp.rank() == 0), (many, lines)
        assert all("cases_keras_batches.py" in line for line in lines)
    told = io.StringIO()
    with contextlib.redirect_stderr(told):
        list(iter(dp.shard_batches(batches(32 * 6))))
        list(iter(dp.shard_batches(Items(32 * 6))))
    assert told.getvalue() == ""


def case_ranks_that_read_ahead_wait_for_nobody_who_has_stopped():
    x, y = arrays(32)

    def endless():
        while True:
            yield x, y

    signature = tf.TensorSpec([None, 2]), tf.TensorSpec([None, 1])
    for ahead in (dp.rank() + 1, dp.size() - dp.rank()):
        source = tf.data.Dataset.from_generator(endless, output_signature=signature)
        _, steps = fit(dp.shard_batches(source).prefetch(4 * ahead), epochs=2, steps_per_epoch=3)
        assert steps == [3, 3]
        for number, _ in enumerate(dp.shard_batches(source).prefetch(4 * ahead)):
            if number == 2:
                break
        dp.barrier()


def case_several_epochs_of_a_dataset_and_of_an_endless_generator():
    want = expected(300)
    for known in (True, False):
        seen, steps = fit(dp.shard_batches(dataset(300, known=known)), epochs=3)
        assert steps == [len(want)] * 3
        assert seen == want * 3
    endless = dp.shard_batches(itertools.cycle(list(batches(32 * 6))))
    seen, steps = fit(endless, epochs=2, steps_per_epoch=4)
    order = [(dp.rank() + dp.size() * step) % 6 * 32 for step in range(8)]
    assert (seen, steps) == (order, [4, 4])


def case_a_rank_whose_generator_ends_early_ends_all():
    shorter = 32 * dp.size() * (4 if dp.rank() == dp.size() - 1 else 9)
    seen, steps = fit(dp.shard_batches(batches(shorter)))
    assert steps == [4]
    assert seen == [32 * (dp.size() * step + dp.rank()) for step in range(4)]
    assert alike(len(firsts(dp.shard_batches(batches(shorter))))) == 4
    assert alike(len(firsts(dp.shard_batches(dataset(shorter, known=False))))) == 4
    raises(dp.TfdpError, "different numbers of batches", lambda: dp.shard_batches(dataset(shorter)))


def case_loops_get_what_the_source_yields():
    for rows in (1001, 32 * 6, 32 * 6 + 1, 32 * dp.size() + 5):
        for source in (
            batches(rows),
            dataset(rows, known=False),
            dataset(rows),
            list(batches(rows)),
            dataset(rows, drop=True),
        ):
            share = dp.shard_batches(source)
            assert firsts(share) == expected(rows)
    x, _ = next(iter(dp.shard_batches(batches(200))))
    assert isinstance(x, np.ndarray)
    share = dp.shard_batches(list(batches(200)))
    assert firsts(share) == firsts(share) == expected(200)
    function = dp.shard_batches(batches)
    assert firsts(function(200)) == firsts(function(200, size=32)) == expected(200)


def case_loops_inside_a_function():
    @tf.function
    def total(share):
        found = tf.constant(0.0)
        for x, _ in share:
            found += x[0, 0]
        return found

    for source in (batches(500), dataset(500), dataset(500, known=False)):
        if isinstance(source, tf.data.Dataset):
            source.class_names = ["a", "b"]
            assert dp.shard_batches(source).class_names == ["a", "b"]
        assert int(total(dp.shard_batches(source))) == sum(expected(500))

    @tf.function
    def made_inside():
        found = tf.constant(0.0)
        for x, _ in dp.shard_batches(dataset(500, known=False)):
            found += x[0, 0]
        return found

    assert int(made_inside()) == sum(expected(500))


def case_batches_split_by_rows():
    def part(start, stop):
        rows = list(range(start, stop))
        return rows[: len(rows) - len(rows) % dp.size()][dp.rank() :: dp.size()]

    want = [part(0, 32), part(32, 64), part(64, 71)]
    sources = batches(71), dataset(71), dataset(71, known=False), list(batches(71)), Items(71)
    for source in sources:
        assert [x[:, 0].tolist() for x, _ in map(numpy, dp.shard_batches(source, split=True))] == want
    few = [x[:, 0].tolist() for x, _ in map(numpy, dp.shard_batches(batches(65), split=True))]
    assert few == want[:2]
    assert [x[:, 0].tolist() for x, _ in map(numpy, dp.shard_batches(dataset(65), split=True))] == want[:2]


def numpy(batch):
    return tuple(np.asarray(part) for part in batch)


class Items(SEQUENCE):
    """A sequence that shuffles at the end of each epoch."""

    def __init__(self, rows, shuffle=None, **arguments):
        super().__init__(**arguments)
        self.batches, self.order, self.shuffle = list(batches(rows)), None, shuffle
        self.read, self.classes = [], ["a", "b"]
        self.order = np.arange(len(self.batches))

    def __len__(self):
        return len(self.batches)

    def __getitem__(self, index):
        self.read.append(index)
        return self.batches[self.order[index]]

    def on_epoch_end(self):
        if self.shuffle is not None:
            self.shuffle.shuffle(self.order)


def case_sequences_are_read_lazily():
    for rows in (1001, 32 * 6, 32 * 6 - 5):
        source = Items(rows)
        share = dp.shard_batches(source)
        assert isinstance(share, SEQUENCE)
        assert len(share) == len(expected(rows))
        source.read.clear()
        assert firsts(share[index] for index in range(len(share))) == expected(rows)
        assert source.read == [index * dp.size() + dp.rank() for index in range(len(share))]
    assert share.classes == ["a", "b"]
    for workers in (1, 2):
        many = {} if SEQUENCE is keras.utils.Sequence and not hasattr(SEQUENCE, "workers") else {"workers": workers}
        seen, steps = fit(dp.shard_batches(Items(1001, **many)), epochs=2, shuffle=False)
        assert seen == expected(1001) * 2
        assert steps == [len(expected(1001))] * 2


def case_sequences_that_shuffle():
    seen, _ = fit(dp.shard_batches(Items(32 * 6, np.random.RandomState(3))), epochs=2)
    for epoch in (seen[: len(seen) // 2], seen[len(seen) // 2 :]):
        everywhere = itertools.chain(*by_rank(epoch))
        assert len(set(everywhere)) == 6 - 6 % dp.size()
    other = dp.shard_batches(Items(32 * 6, np.random.RandomState(dp.rank())))
    found = ""
    for turn in range(dp.size()):
        if turn == dp.rank():
            try:
                other.on_epoch_end()
            except dp.TfdpError as error:
                found = str(error)
        dp.barrier()
    messages = [each for each in by_rank(found) if each]
    assert messages
    assert "'order'" in messages[0]
    raises(ValueError, "cannot be sharded", lambda: dp.shard_batches(Items(32)))


class Drawn(SEQUENCE):
    """Items made of examples that are drawn when they are read, not equally many numbers for each."""

    def __init__(self, rows):
        super().__init__()
        self.rows, self.order, self.kept = rows, np.arange(rows), np.random.default_rng(5)
        self.first = None

    def __len__(self):
        return 3 * dp.size()

    def __getitem__(self, index):
        if self.first is None:
            self.first = random.random()
        drawn = [np.random.randint(2**30), random.randrange(2**30), self.kept.integers(2**30)]
        np.random.rand(1 + index)
        return np.array([drawn, drawn]), np.zeros(2)

    def on_epoch_end(self):
        np.random.shuffle(self.order)


def case_sequences_that_draw():
    source = Drawn(8)
    share = dp.shard_batches(source)
    for _ in range(2):
        drawn = [share[index][0][0].tolist() for index in range(len(share))]
        everywhere = list(itertools.chain(*by_rank(drawn)))
        for numbers in zip(*everywhere, strict=True):
            # The first item of each rank may be drawn alike, with what is drawn once for all of them.
            assert len(set(numbers)) > len(numbers) - dp.size()
        share.on_epoch_end()  # compares the order
    alike([source.first, source.order.tolist(), random.random(), np.random.rand()])


def case_image_data_generators():
    try:
        from keras.src.legacy.preprocessing.image import ImageDataGenerator
    except ImportError:
        ImageDataGenerator = keras.preprocessing.image.ImageDataGenerator  # noqa: N806
    images = np.arange(40 * 8 * 8 * 3, dtype=np.float32).reshape(40, 8, 8, 3)
    flow = ImageDataGenerator().flow(images, np.arange(40), batch_size=4, shuffle=True)
    share = dp.shard_batches(flow)
    assert len(share) == 10 // dp.size()
    taken = [labels.tolist() for _, labels in itertools.islice(iter(share), len(share))]
    everywhere = list(itertools.chain(*itertools.chain(*by_rank(taken))))
    assert len(everywhere) == len(set(everywhere)) == 4 * len(share) * dp.size()
    again = [labels.tolist() for _, labels in itertools.islice(iter(share), 2 * len(share))]
    assert len(again) == 2 * len(share)


def case_batches_that_differ_by_rank():
    def other():
        for number, (x, y) in enumerate(batches(32 * 9)):
            yield x + (number == 4 and dp.rank() == 1), y

    raises(dp.TfdpError, "differ on rank(s) 1 from rank 0's: batch", lambda: list(iter(dp.shard_batches(other()))))
    assert len(list(iter(dp.shard_batches(other(), order_check=False)))) == 9 // dp.size()
    shuffled = dataset(32 * 9).shuffle(9, seed=dp.rank() + 1)
    share = dp.shard_batches(shuffled)
    found = ""
    for turn in range(dp.size()):
        if turn == dp.rank():
            try:
                firsts(share)
            except tf.errors.UnknownError as error:
                found = str(error)
        dp.barrier()
    assert any("differ between rank" in each for each in by_rank(found))


def case_structures():
    def dictionaries():
        for start in range(0, 24, 4):
            part = np.arange(start, start + 4)
            yield {"a": part, "b": [part * 2, part[:, None]]}, part, None

    share = dp.shard_batches(dictionaries())
    spec = share.element_spec
    assert spec[0]["a"].shape.as_list() == [None]
    assert len(spec) == 2
    starts = [int(x["a"][0]) for x, _ in share.map(lambda x, y: (x, y))]
    assert starts == [4 * (dp.rank() + dp.size() * step) for step in range(6 // dp.size())]

    def growing():
        for length in range(1, 2 * dp.size() + 1):
            yield np.ones((2, (length - 1) // dp.size() + 1)), np.ones(2)

    assert dp.shard_batches(growing()).element_spec[0].shape.as_list() == [None, None]
    ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], [], [4]] * 3)).batch(2)
    whole = dp.shard_batches(ragged)
    assert len(list(iter(whole))) == 6 // dp.size()


def case_what_cannot_be_sharded():
    raises(TypeError, "use dp.shard for arrays", lambda: dp.shard_batches(np.ones((3, 2))))
    raises(TypeError, "use dp.shard for arrays", lambda: dp.shard_batches(3))
    raises(ValueError, "dp.shard shards records", lambda: dp.shard_batches(tf.data.Dataset.range(4)))
    raises(ValueError, "1 batch(es)", lambda: dp.shard_batches(dataset(32)))
    raises(ValueError, "no batch for every rank", lambda: dp.shard_batches(batches(32)).element_spec)
    source = batches(3)
    assert dp.shard_batches(source, only_if=False) is source
