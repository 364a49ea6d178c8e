"""Sharded calls: what packages write and read for the script, by Python's `open` or by code of their own."""

import importlib
import os
import pathlib
import shelve
import shutil
import sqlite3
import tempfile
import threading
import urllib.request

import h5py
import matplotlib as mpl
import numpy as np
import tensorflow as tf
from whole_jobs import common, folder

import tfdp.runtime as dp
from tfdp.runtime.store import apart

mpl.use("Agg")

DEVICE_RANKS = ()
RANKS = (2, 3)
INIT = {"shard_calls": True}


def written(place):
    """The names of all that is there when rank 0 is through."""
    dp.barrier()
    with apart():
        return sorted(str(path.relative_to(place)) for path in pathlib.Path(place).rglob("*") if path.is_file())


def case_arrays_are_written_once_and_read_as_rank_0_reads_them():
    place = pathlib.Path(folder())
    for turn in range(3):
        np.save(place / "array.npy", np.full(100_000, turn))
        assert np.load(place / "array.npy").sum() == 100_000 * turn
        np.savez(place / "arrays.npz", a=np.arange(turn), b=[turn])
        with np.load(place / "arrays.npz") as arrays:
            assert common([arrays["a"].tolist(), arrays["b"].tolist()]) == [list(range(turn)), [turn]]
        np.savetxt(place / "table.txt", [[turn, 1]])
        assert common(np.loadtxt(place / "table.txt").tolist()) == [turn, 1]
        with open(place / "log", "a") as log:
            np.savetxt(log, [turn])
    assert written(place) == ["array.npy", "arrays.npz", "log", "table.txt"]
    for _ in range(3):
        np.save(place / "array.npy", [dp.rank()])
        np.savez(place / "arrays.npz", a=[dp.rank()])
        np.savetxt(place / "table.txt", [dp.rank()])
        dp.barrier()
        with apart():
            found = np.load(place / "array.npy"), np.load(place / "arrays.npz")["a"], np.loadtxt(place / "table.txt")
        assert [int(np.ravel(each)[0]) for each in found] == [0, 0, 0], "what rank 0 has written"
        dp.barrier()
    assert common((place / "log").read_text().count("\n")) == 3


def case_maps_of_files_are_each_workers_own():
    place = pathlib.Path(folder())
    counts = np.memmap(place / "counts", "int64", "w+", shape=(3,))
    for turn in range(3):
        counts[turn] += 1
        counts.flush()
        assert common(np.memmap(place / "counts", "int64", "r").tolist()) == [1] * (turn + 1) + [0] * (2 - turn)
    again = np.memmap(place / "counts", "int64", "r+", shape=(3,))
    again += 1
    assert common(again.tolist()) == [2, 2, 2]
    again.flush()
    dp.barrier()
    with apart():
        assert np.fromfile(place / "counts", "int64").tolist() == [2, 2, 2]


def case_databases_are_each_workers_own():
    place = pathlib.Path(folder())
    for turn in range(3):
        base = sqlite3.connect(place / "runs.db")
        base.execute("create table if not exists loss (value real)")
        base.execute("insert into loss values (?)", (turn,))
        base.commit()
        assert common(base.execute("select count(*), sum(value) from loss").fetchall()) == [
            (turn + 1, sum(range(turn + 1)))
        ]
        base.close()
        with shelve.open(str(place / "kept")) as kept:
            kept["turns"] = kept.get("turns", 0) + 1
            assert common(dict(kept)) == {"turns": turn + 1}
    dp.barrier()
    with apart(), sqlite3.connect(place / "runs.db") as base:
        assert base.execute("select count(*) from loss").fetchone() == (3,)


def case_hdf5_is_written_once():
    place = pathlib.Path(folder())
    for turn in range(3):
        with h5py.File(place / "features.h5", "a") as file:
            file[f"{turn}"] = np.arange(turn)
            assert common(sorted(file)) == [f"{each}" for each in range(turn + 1)]
        with h5py.File(place / "features.h5", "r") as file:
            assert common(len(file)) == turn + 1
    assert written(place) == ["features.h5"]


def case_models_are_saved_once_by_whoever_is_called():
    place = pathlib.Path(folder())
    model = tf.keras.Sequential([tf.keras.Input((2,)), tf.keras.layers.Dense(1)])
    names = ["model.keras", "model.h5", "one.weights.h5"] if hasattr(tf.keras, "version") else ["model.h5"]
    for name in names:
        for _ in range(2):
            (model.save_weights if "weights" in name else model.save)(place / name)
        if "weights" in name:
            model.load_weights(place / name)
        else:
            loaded = tf.keras.models.load_model(place / name)
            np.testing.assert_array_equal(loaded.get_weights()[0], model.get_weights()[0])
    tf.saved_model.save(model, str(place / "saved"))
    assert tf.saved_model.load(str(place / "saved")).signatures
    assert "saved/saved_model.pb" in written(place)
    assert set(names) <= set(written(place))


def case_checkpoints_are_written_once_and_counted_by_all():
    place = folder()
    number = tf.Variable(0)
    checkpoint = tf.train.Checkpoint(number=number)
    manager = tf.train.CheckpointManager(checkpoint, f"{place}/managed", max_to_keep=2)
    for turn in range(4):
        number.assign(turn)
        common(manager.save())
        common([checkpoint.save(f"{place}/saved"), checkpoint.write(f"{place}/written")])
        assert common(int(checkpoint.save_counter)) == turn + 2  # restored below
        assert len(common([manager.latest_checkpoint, *manager.checkpoints])) == min(turn + 1, 2) + 1
        number.assign(-1)
        checkpoint.restore(manager.latest_checkpoint)
        assert common(int(number)) == turn
        assert common(tf.train.latest_checkpoint(place)) is not None
    common(sorted(os.listdir(f"{place}/managed")))


def case_records_are_written_once():
    place = folder()
    taken = []

    def made():
        for each in range(3):
            taken.append(each)
            yield f"{each}"

    records = tf.data.Dataset.from_generator(made, output_signature=tf.TensorSpec((), tf.string))
    tf.data.experimental.TFRecordWriter(f"{place}/one").write(records)
    assert common(taken) == [0, 1, 2]
    with tf.io.TFRecordWriter(f"{place}/two") as writer:
        for each in range(1000):
            writer.write(f"{each}" * 100)
    writer = tf.io.TFRecordWriter(f"{place}/three")
    writer.write("x")
    writer.close()
    read = tf.data.TFRecordDataset
    assert [len(list(read(f"{place}/{name}"))) for name in ("one", "two", "three")] == [3, 1000, 1]
    tf.io.write_file(f"{place}/four", "text")
    assert tf.io.read_file(f"{place}/four").numpy() == b"text"

    @tf.function
    def note(text):
        tf.io.write_file(f"{place}/graph", text)

    note(f"{dp.rank()}")
    dp.barrier()
    assert tf.io.read_file(f"{place}/graph").numpy() == b"0"
    with tf.io.gfile.GFile(f"{place}/five", "w") as file:
        file.write("text")
    assert tf.io.read_file(f"{place}/five").numpy() == b"text"
    records.save(f"{place}/six")
    assert len(list(tf.data.Dataset.load(f"{place}/six"))) == 3


def case_a_cache_in_a_file_is_filled_by_each_worker():
    place = folder()
    for turn in range(2):
        numbers = tf.data.Dataset.range(5).map(lambda each, turn=turn: each + turn).cache(f"{place}/cache")
        assert [common([int(each) for each in numbers]) for _ in range(2)] == [[0, 1, 2, 3, 4]] * 2
    assert any(name.startswith("cache") for name in common(os.listdir(place)))


def case_figures_are_written_once():
    import matplotlib.pyplot as plt

    place = pathlib.Path(folder())
    plt.plot([1, 2])
    for kind in ("png", "svg", "pdf"):
        plt.savefig(place / f"figure.{kind}")
    assert written(place) == ["figure.pdf", "figure.png", "figure.svg"]
    assert plt.imread(place / "figure.png").shape[2] == 4


def write_all(place, done):
    """By all ways, with the rank in what is written; and what was changed before is changed once."""
    rank = dp.rank()
    with open(place / "text", "w") as file:
        file.write(f"{rank}")
    (place / "more").write_text(f"{rank}")
    os.close(os.open(place / f"number{rank}", os.O_WRONLY | os.O_CREAT))
    np.save(place / "array.npy", [rank])
    with h5py.File(place / "data.h5", "w") as file:
        file["rank"] = [rank]
    os.mkdir(place / "folder")
    os.rename(place / "old", place / "new")
    shutil.copy(place / "kept", place / "copied")
    variable = tf.Variable(rank)
    tf.train.Checkpoint(v=variable).write(str(place / "checkpoint"))
    with tf.io.TFRecordWriter(str(place / "records")) as writer:
        writer.write(b"%d" % rank)
    tf.saved_model.save(tf.Module(), str(place / f"model{rank}"))
    done.append((place / "kept").read_text())


def case_what_threads_write_is_rank_0s():
    place, done = pathlib.Path(folder()), []
    if dp.rank() == 0:
        with apart():
            for name in ("old", "kept"):
                (place / name).write_text(name)
    dp.barrier()
    before, tempfile.tempdir = tempfile.tempdir, str(place / "temporary")
    try:
        thread = threading.Thread(target=write_all, args=(place, done))
        thread.start()
        thread.join()
    finally:
        tempfile.tempdir = before
    assert done == ["kept"]
    names = [name.split(".")[0] for name in written(place) if not name.startswith("model0")]
    assert names == [
        "array",
        "checkpoint",
        "checkpoint",
        "copied",
        "data",
        "kept",
        "more",
        "new",
        "number0",
        "records",
        "text",
    ]
    with apart():
        found = [(place / "text").read_text(), (place / "more").read_text(), str(np.load(place / "array.npy")[0])]
        with h5py.File(place / "data.h5") as file:
            found.append(str(file["rank"][0]))
        found += [each.numpy().decode() for each in tf.data.TFRecordDataset(str(place / "records"))]
        found.append(
            str(tf.train.load_checkpoint(str(place / "checkpoint")).get_tensor("v/.ATTRIBUTES/VARIABLE_VALUE"))
        )
    assert found == ["0"] * 6
    dp.barrier()


def case_a_download_is_rank_0s():
    place = pathlib.Path(folder())
    if not os.path.exists(place / "words.txt"):
        with apart():
            (place / f"source{dp.rank()}").write_text(f"{dp.rank()}")
        source = (place / f"source{dp.rank()}").as_uri()
        found, _ = urllib.request.urlretrieve(source.replace(f"source{dp.rank()}", "source0"), place / "words.txt")
        assert common(str(found)) == str(place / "words.txt")
    assert common((place / "words.txt").read_text()) == "0"


def case_summaries_are_rank_0s_by_whatever_name():
    summary = importlib.import_module("tensorflow.summary")  # as Keras' TensorBoard has it
    assert importlib.import_module("tensorflow.io").write_file is tf.io.write_file
    place = folder()
    for number, module in enumerate((summary, tf.summary)):
        with module.create_file_writer(f"{place}/{number}").as_default():
            tf.summary.write("loss", 1.0, step=1)
    dp.barrier()
    with apart():
        assert len([name for _, _, names in os.walk(place) for name in names]) == 2
