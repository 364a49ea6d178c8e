"""Sharding data, counting examples, work on rank 0 alone, seeds: on real ranks."""

import itertools
import pathlib
import random
import re
import tempfile

import numpy as np
import pytest
import tensorflow as tf

import tfdp.runtime as dp

RANKS = (2, 3)


def by_rank(value):
    """The value of every rank, by rank: any object that can be pickled."""
    return [dp.broadcast_object(value, root) for root in range(dp.size())]


def numbers(dataset):
    return [int(each) for each in dataset.as_numpy_iterator()]


def sharded(stream):
    whole = len(stream) - len(stream) % dp.size()
    return list(stream[:whole][dp.rank() :: dp.size()])


def raises(kind, said, call):
    with pytest.raises(kind, match=re.escape(said)):
        call()


def case_record_i_goes_to_rank_i_mod_n():
    for count in (3, 4, 7, 12, 100):
        stream = range(count)
        known = dp.shard(tf.data.Dataset.range(count))
        unknown = dp.shard(tf.data.Dataset.range(1000).filter(lambda x, count=count: x < count))
        for dataset in (known, unknown):
            for _ in range(2):
                assert numbers(dataset) == sharded(stream), (count, numbers(dataset))
    assert known.cardinality().numpy() == 100 // dp.size()


def case_over_epochs_and_after_a_leading_repeat():
    stream = [*range(10)] * 3
    assert numbers(dp.shard(tf.data.Dataset.range(10)).repeat(3)) == sharded(range(10)) * 3
    assert numbers(dp.shard(tf.data.Dataset.range(10).repeat(3))) == sharded(stream)


def case_sources_that_differ_by_rank():
    other = np.random.default_rng(dp.rank()).permutation(50)
    raises(dp.TfdpError, "differ on rank(s) 1", lambda: dp.shard(tf.data.Dataset.from_tensor_slices(other)))
    raises(dp.TfdpError, "from rank 0's", lambda: dp.shard(tf.data.Dataset.range(50 + dp.rank())))
    subset = np.sort(np.concatenate([[0], np.random.default_rng(dp.rank()).choice(np.arange(1, 999), 49), [999]]))
    for dataset in (
        tf.data.Dataset.from_tensor_slices((subset, subset)).map(lambda x, y: (x % 1, y // 1000)),
        tf.data.Dataset.zip(tf.data.Dataset.range(51), tf.data.Dataset.from_tensor_slices(subset.astype(str))),
    ):
        raises(dp.TfdpError, "differ on rank(s) 1", lambda dataset=dataset: dp.shard(dataset))
    assert len(numbers(dp.shard(tf.data.Dataset.from_tensor_slices(other), source_check=False))) == 50 // dp.size()
    same = np.random.permutation(50)  # NumPy's own generator is seeded alike by init
    assert numbers(dp.shard(tf.data.Dataset.from_tensor_slices(same))) == sharded(list(same))


def case_infinite_streams():
    dataset = dp.shard(tf.data.Dataset.range(5).repeat())
    assert dataset.cardinality() == tf.data.INFINITE_CARDINALITY
    assert numbers(dataset.take(10)) == [(dp.rank() + dp.size() * step) % 5 for step in range(10)]


def case_generators_with_shapes_that_differ():
    def records():
        for number in range(11):
            yield {"x": np.full(number % 4, number), "y": (np.int64(number), b"s" * number)}

    spec = {
        "x": tf.TensorSpec([None], tf.int64),
        "y": (tf.TensorSpec([], tf.int64), tf.TensorSpec(None, tf.string)),
    }
    dataset = tf.data.Dataset.from_generator(records, output_signature=spec)
    share = dp.shard(dataset)
    assert share.element_spec == dataset.element_spec
    for _ in range(2):
        found = list(share.as_numpy_iterator())
        assert [int(each["y"][0]) for each in found] == sharded(range(11))
        assert all(each["x"].tolist() == [each["y"][0]] * (each["y"][0] % 4) for each in found)
        assert all(each["y"][1] == b"s" * each["y"][0] for each in found)


def case_structures_of_known_and_unknown_length():
    x, y = np.arange(22).reshape(11, 2), np.arange(11)
    for structure in ((x, y), {"a": x, "b": {"c": y}}, (x, (y, {"d": y})), y):
        source = tf.data.Dataset.from_tensor_slices(structure)
        for dataset in (source, source.filter(lambda *_: True)):
            share = dp.shard(dataset)
            assert share.element_spec == dataset.element_spec
            last = [tf.nest.flatten(each)[-1] for each in share]
            assert [int(each) for each in last] == sharded(range(11))


def case_ragged_and_sparse_records():
    ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[[1], [2, 3]], [[4]], [[]], [[5, 6]], [[7]]] * 2))
    sparse = tf.data.Dataset.from_tensor_slices(tf.sparse.eye(10, 4))
    for source in (ragged, sparse):
        want = sharded([str(each) for each in source])
        for dataset in (source, source.filter(lambda *_: True)):
            assert [str(each) for each in dp.shard(dataset)] == want


def case_inside_a_function():
    @tf.function
    def total():
        result = tf.constant(0, tf.int64)
        for each in dp.shard(tf.data.Dataset.range(10)):
            result += each
        return result

    assert total().numpy() == sum(sharded(range(10)))


def case_an_unseeded_shuffle_after_sharding_covers_everything():
    share = dp.shard(tf.data.Dataset.range(12 * dp.size())).shuffle(100).batch(4)
    seen = itertools.chain(*by_rank(numbers(share.unbatch())))
    assert sorted(seen) == list(range(12 * dp.size()))


def case_remainder_weight_shards_all():
    for count in (dp.size(), 10, 11):
        for dataset in (tf.data.Dataset.range(count), tf.data.Dataset.range(50).filter(lambda x, n=count: x < n)):
            share = dp.shard(dataset, remainder="weight")
            assert numbers(share) == list(range(count))[dp.rank() :: dp.size()]


def case_counts_and_equal_numbers_of_steps():
    for count, batch in ((10, 2), (11, 3), (4 * dp.size() + 1, 4), (dp.size(), 1)):
        source = tf.data.Dataset.from_tensor_slices((np.arange(count), np.ones([count, 2])))
        share = dp.count_examples(dp.shard(source, remainder="weight").batch(batch))
        for _ in range(2):
            steps = [(x.tolist(), int(number)) for (x, _), number in share.as_numpy_iterator()]
            assert len(set(by_rank(len(steps)))) == 1
            assert len(steps) == share.cardinality().numpy() == -(-count // (batch * dp.size()))
            mine = [each for x, number in steps for each in x[:number]]
            assert mine == list(range(count))[dp.rank() :: dp.size()]
            assert all(number in (0, len(x)) for x, number in steps)
            assert sum(sum(each) for each in by_rank([number for _, number in steps])) == count


def case_counts_of_one_part_dictionaries_and_ragged_batches():
    for source in (
        tf.data.Dataset.range(2 * dp.size() + 1),
        tf.data.Dataset.range(2 * dp.size() + 1).map(lambda x: {"a": x}),
        tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3]] * dp.size() + [[4]])),
        tf.data.Dataset.from_tensor_slices(tf.sparse.eye(2 * dp.size() + 1)),
    ):
        share = dp.count_examples(dp.shard(source, remainder="weight").batch(2))
        assert [int(number) for _, number in share] == [2, 1 if dp.rank() == 0 else 0]
    endless = dp.count_examples(dp.shard(tf.data.Dataset.range(5).repeat()).batch(2))
    assert [int(number) for _, number in endless.take(3)] == [2, 2, 2]


def case_data_that_cannot_be_counted():
    raises(ValueError, "needs batches", lambda: dp.count_examples(tf.data.Dataset.range(4)))
    unknown = tf.data.Dataset.range(9).filter(lambda x: x > 3).batch(2)
    raises(ValueError, "assert_cardinality", lambda: dp.count_examples(unknown))
    few = dp.shard(tf.data.Dataset.range(dp.size()), remainder="weight").take(1 - min(dp.rank(), 1)).batch(2)
    raises(ValueError, "too few records", lambda: dp.count_examples(few))


def case_what_cannot_be_sharded():
    whole = tf.data.Dataset.range(9)
    assert dp.shard(whole, only_if=False) is whole
    assert dp.local_batch_size(9, only_if=False) == dp.local_steps(9, only_if=False) == 9
    raises(TypeError, "use dp.shard_batches", lambda: dp.shard(iter([1, 2])))
    raises(TypeError, "which has no rows", lambda: dp.shard("rows"))
    raises(ValueError, "'all'", lambda: dp.shard(tf.data.Dataset.range(9), remainder="all"))
    raises(ValueError, "1 record(s)", lambda: dp.shard(tf.data.Dataset.range(1)))
    raises(ValueError, "1 record(s)", lambda: dp.shard(tf.data.Dataset.range(1), remainder="weight"))
    assert numbers(dp.shard(tf.data.Dataset.range(0))) == []


def case_order_check_lets_equal_streams_pass():
    count = 1998
    seed = dp.shuffle_seed()
    source = tf.data.Dataset.from_tensor_slices({"a": np.arange(count), "b": [str(each) for each in range(count)]})
    shuffled = source.shuffle(count, seed=seed)
    share = dp.shard(shuffled, order_check=True)
    assert share.cardinality().numpy() == count // dp.size()
    for _ in range(2):
        parts = by_rank([int(each["a"]) for each in share.as_numpy_iterator()])
        assert sorted(itertools.chain(*parts)) == list(range(count))
    ragged = tf.data.Dataset.from_tensor_slices(tf.ragged.constant([[1], [2, 3], []] * 4)).filter(lambda _: True)
    assert len(list(dp.shard(ragged, order_check=True))) == 12 // dp.size()


def case_order_check_finds_another_order_whoever_reads_first():
    for first in range(dp.size()):
        source = tf.data.Dataset.range(40).shuffle(40, seed=dp.rank() + 1)
        share = dp.shard(source, order_check=True)
        found = ""
        for turn in sorted(range(dp.size()), key=lambda rank, first=first: (rank != first, rank)):
            if turn == dp.rank():
                try:
                    numbers(share)
                except tf.errors.UnknownError as error:
                    found = str(error)
            dp.barrier()
        messages = [each for each in by_rank(found) if each]
        assert messages, "not found"
        assert "differ between rank" in messages[0], messages
        assert "cases_training_data.py" in messages[0], messages


def case_order_check_refuses_what_it_cannot_compare():
    nested = tf.data.Dataset.range(9).window(3)
    raises(ValueError, "cannot be compared", lambda: dp.shard(nested, order_check=True))


def record_files(sizes):
    """TFRecord files of so many records each, in one folder for all ranks: b"2/0" is the first record of file 2."""
    folder = pathlib.Path(dp.broadcast_object(tempfile.mkdtemp() if dp.rank() == 0 else None))
    paths = [folder / f"{number:02}.tfrecord" for number in range(len(sizes))]
    for number, (path, size) in enumerate(zip(paths, sizes, strict=True)):
        if dp.rank() == 0:
            with tf.io.TFRecordWriter(str(path)) as writer:
                for record in range(size):
                    writer.write(f"{number}/{record}".encode())
    dp.barrier()
    return paths, [[f"{number}/{record}".encode() for record in range(size)] for number, size in enumerate(sizes)]


def share_of(records):
    """This rank's records, as many as the rank with the fewest has."""
    by_rank = [list(itertools.chain(*records[rank :: dp.size()])) for rank in range(dp.size())]
    return by_rank[dp.rank()][: min(map(len, by_rank))]


def case_files_go_to_ranks_and_all_end_together():
    for sizes in ([3, 5, 2, 4, 1, 6, 2], [2] * dp.size()):
        paths, records = record_files(sizes)
        share = dp.shard(paths, by="file", read=tf.data.TFRecordDataset)
        for _ in range(2):
            assert list(share.as_numpy_iterator()) == share_of(records)
        assert share.cardinality() == len(share_of(records))
        batches = by_rank([len(each) for each in share.repeat(3).shuffle(9).batch(4).as_numpy_iterator()])
        assert all(each == batches[0] for each in batches)
    whole = dp.shard(paths, by="file", read=tf.data.TFRecordDataset, only_if=False)
    assert list(whole.as_numpy_iterator()) == list(itertools.chain(*records))


def case_lists_and_datasets_of_files():
    paths, records = record_files(range(1, 2 * dp.size() + 1))
    names, mixed = [str(path) for path in paths], [*paths]
    random.Random(dp.rank()).shuffle(mixed)
    pattern = str(paths[0].with_name("*.tfrecord"))
    for files in (mixed, tuple(names), np.array(names), tf.constant(names), tf.data.Dataset.list_files(pattern)):
        share = dp.shard(
            files, by="file", read=lambda files: tf.data.TFRecordDataset(files).map(lambda x: (x, {"a": x}))
        )
        assert [record.numpy() for record, _ in share] == share_of(records)


def case_files_of_known_and_infinite_numbers_of_records():
    def known(files):
        return tf.data.TFRecordDataset(files).apply(tf.data.experimental.assert_cardinality(4 * len(files)))

    missing = [f"/missing/{number}" for number in range(dp.size() + 1)]
    share = dp.shard(missing, by="file", read=known)  # counting would have opened them
    assert share.cardinality() == 4
    endless = dp.shard(missing, by="file", read=lambda files: tf.data.Dataset.range(len(files) + 4).repeat())
    assert endless.cardinality() == tf.data.INFINITE_CARDINALITY
    length = 6 if dp.rank() == 0 else 5
    assert numbers(endless.take(7)) == [number % length for number in range(7)]


def case_files_of_which_all_records_are_kept():
    paths, records = record_files([3] + [5] * dp.size())
    mine = list(itertools.chain(*records[dp.rank() :: dp.size()]))
    share = dp.shard(paths, by="file", read=tf.data.TFRecordDataset, remainder="weight")
    assert list(share.as_numpy_iterator()) == mine
    counts = by_rank([int(count) for _, count in dp.count_examples(share.batch(4))])
    assert len({len(each) for each in counts}) == 1
    assert list(map(sum, counts)) == by_rank(len(mine))


def case_files_that_cannot_be_sharded():
    paths, _ = record_files([2] * dp.size())
    read = tf.data.TFRecordDataset
    mine = [*paths, paths[dp.rank()]]
    raises(dp.TfdpError, "others on rank(s) 1", lambda: dp.shard(mine, by="file", read=read))
    assert list(dp.shard(mine, by="file", read=read, source_check=False))
    raises(ValueError, "1 file(s)", lambda: dp.shard(paths[:1], by="file", read=read))
    raises(ValueError, "'folder'", lambda: dp.shard(paths, by="folder", read=read))
    raises(ValueError, "needs read=", lambda: dp.shard(paths, by="file"))
    raises(ValueError, "is for by='file'", lambda: dp.shard(tf.data.Dataset.range(9), read=read))
    raises(ValueError, "leave out order_check", lambda: dp.shard(paths, by="file", read=read, order_check=True))
    raises(TypeError, "dataset of paths is needed", lambda: dp.shard(str(paths[0]), by="file", read=read))
    raises(TypeError, "what is no path", lambda: dp.shard(list(range(9)), by="file", read=read))
    raises(TypeError, "gives a list", lambda: dp.shard(paths, by="file", read=list))
    raises(ValueError, "inside a tf.function", tf.function(lambda: dp.shard(paths, by="file", read=read)))
    raises(ValueError, "not in read=", lambda: dp.shard(
        paths, by="file", read=lambda files: read(files).repeat().filter(lambda x: x != b"1/0")))  # fmt: skip
    empty, _ = record_files([*[1] * (dp.size() - 1), 0])
    raises(ValueError, f"rank(s) {dp.size() - 1} hold no records", lambda: dp.shard(empty, by="file", read=read))
    # A pass with fewer records than were counted ends the training; it does not end this rank's alone.
    left = tf.Variable(3)
    fading = dp.shard(paths, by="file", read=lambda files: read(files).filter(lambda _: left.assign_sub(1) >= 0))
    raises(tf.errors.FailedPreconditionError, "expected to contain 2", lambda: list(fading))


def case_on_root_runs_once_and_gives_its_value_to_all():
    calls = []

    def work(number, *, name):
        calls.append(name)
        return {"rank": dp.rank(), "array": np.arange(number)}

    value = dp.on_root(work, 3, name="a")
    assert value["rank"] == 0
    assert value["array"].tolist() == [0, 1, 2]
    assert len(calls) == (1 if dp.rank() == 0 else 0)
    assert dp.on_root(lambda: None) is None
    with tempfile.TemporaryDirectory() as folder:
        checkpoint = tf.train.Checkpoint(number=tf.Variable(1.0))
        manager = tf.train.CheckpointManager(checkpoint, folder, max_to_keep=2)
        dp.on_root(checkpoint.save, f"{folder}/of")
        dp.on_root(manager.save)
        assert int(checkpoint.save_counter) == 2  # on each rank
        other = tf.train.Checkpoint(v=tf.Variable(1.0))
        dp.on_root(other.write, f"{folder}/written")
        assert other._save_counter is None, "which would be a variable that rank 0 has not"
    assert dp.on_root(lambda: tf.constant([1, 2])).numpy().tolist() == [1, 2]


class OddError(Exception):
    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fail(error):
    raise error


def case_on_root_leaves_generators_where_rank_0_does():
    for take in (0, 2, 5):
        made = []
        numbers = (made.append(n) or n for n in range(5))
        found = dp.on_root(
            lambda some, more, take=take: [*itertools.islice(some, take), *more], numbers, more=map(abs, [-7])
        )
        assert found == [*range(take), 7]
        assert made == list(range(take))
        assert list(numbers) == list(range(take, 5))
    done = []
    frames = (each if each < 3 else done.append(each) or each for each in range(4))
    assert dp.on_root(sum, frames) == 6
    assert done == [3]


def case_on_root_raises_on_all():
    raises(KeyError, "lost", lambda: dp.on_root(fail, KeyError("lost")))
    # Made from two arguments, remembered with one: pickle cannot make it again.
    odd = OddError if dp.rank() == 0 else dp.TfdpError
    raises(odd, "this and that", lambda: dp.on_root(fail, OddError("this", "that")))
    raises(TypeError, "cannot be sent", lambda: dp.on_root(lambda: lambda: None))


def case_on_root_finds_ranks_in_different_calls():
    if dp.rank() == 0:
        dp.on_root(lambda: 1)
    else:
        raises(dp.CollectiveMismatchError, "met rank 0's", lambda: dp.on_root(lambda: 1))


def case_seeds():
    assert len(set(by_rank(random.random()))) == 1
    assert len(set(by_rank(np.random.random()))) == 1
    seeds = [dp.shuffle_seed() for _ in range(3)] + [dp.shuffle_seed()]
    assert len(set(seeds)) == 4
    assert len({tuple(each) for each in by_rank(seeds)}) == 1
    assert by_rank(dp.shuffle_seed(7)) == [7] * dp.size()
    assert len(set(by_rank(dp.shuffle_seed(None)))) == 1
    np.random.seed(dp.shuffle_seed(None))
    assert len(set(by_rank(np.random.random()))) == 1
    ours = by_rank(dp.rank_seed(42))
    assert ours[0] == 42
    assert len(set(ours)) == dp.size()
    dp.set_random_seed(7)
    assert len(set(by_rank(random.random()))) == 1
    assert len(set(by_rank(np.random.random()))) == 1
    drawn = tf.random.normal([4]).numpy().tobytes()
    assert len(set(by_rank(drawn))) == dp.size()
    if dp.rank() == 0:
        tf.keras.utils.set_random_seed(7)
        assert tf.random.normal([4]).numpy().tobytes() == drawn


def case_learning_rates():
    for rate in (0.5, 2, np.float32(0.5), tf.constant(0.5), tf.Variable(0.5), np.float64(0.25)):
        found = dp.scale_lr(rate)
        assert np.asarray(found) == np.asarray(rate) * dp.size()
        assert getattr(found, "dtype", None) == getattr(rate, "dtype", None)
    assert dp.scale_lr(lambda: 0.5)() == 0.5 * dp.size()
