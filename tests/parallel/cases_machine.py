"""Sharded calls: what the script asks of its machine, and does to it, is rank 0's, however far the ranks are apart."""

import gc
import glob
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref

import numpy as np
import pytest
import tensorflow as tf
from whole_jobs import after_root, common, filled, folder

import tfdp.runtime as dp
from tfdp.runtime.job import current
from tfdp.runtime.store import apart

DEVICE_RANKS = ()
RANKS = (2, 3)
INIT = {"shard_calls": True}


def case_each_run_gets_the_next_folder():
    def by_error(place):
        for number in range(5):
            try:
                os.mkdir(place / f"run{number}")
            except FileExistsError:
                continue
            return number
        return None

    def by_length(place):
        name = f"run{len(os.listdir(place))}"
        os.makedirs(place / name)
        return name

    def by_glob(place):
        number = max([int(name[-1]) for name in glob.glob(f"{place}/run*")], default=-1) + 1
        (place / f"run{number}").mkdir(parents=True)
        return number

    def by_looking(place):
        number = next(n for n in range(9) if not os.path.isdir(place / f"run{n}"))
        tf.io.gfile.makedirs(str(place / f"run{number}"))
        return number

    def runs(next_run):
        return lambda place: [next_run(place) for _ in range(3)] + sorted(os.listdir(place))

    every = ["run0", "run1", "run2"]
    assert after_root(runs(by_error)) == [0, 1, 2, *every]
    assert after_root(runs(by_length)) == [*every, *every]
    assert after_root(runs(by_glob)) == [0, 1, 2, *every]
    assert after_root(runs(by_looking)) == [0, 1, 2, *every]


def case_all_ways_to_look_at_files():
    def story(place):
        filled(place)
        names = [sorted(os.path.relpath(each, place) for each in found) for found in (
            [entry.path for entry in os.scandir(place)],
            [entry.path for entry in os.scandir(place) if entry.is_dir() and not entry.is_symlink()],
            glob.glob(f"{place}/**", recursive=True),
            place.iterdir(),
            place.rglob("*.txt"),
            [top for top, _, _ in os.walk(place)],
            tf.io.gfile.glob(f"{place}/*"),
            [top for top, _, _ in tf.io.gfile.walk(str(place))],
        )]  # fmt: skip
        assert place.is_dir()
        assert (place / "a.txt").is_file()
        assert not (place / "x").exists()
        assert os.path.getsize(place / "a.txt") == 5
        assert os.path.getmtime(place / "a.txt") > 0
        assert os.access(place, os.R_OK)
        assert tf.io.gfile.exists(str(place))
        assert tf.io.gfile.isdir(str(place))
        assert tf.train.latest_checkpoint(str(place)) is None
        with os.scandir(place) as entries:
            sizes = {entry.name: entry.stat().st_size for entry in entries if entry.is_file()}
        return names, sizes, os.stat(place / "a.txt").st_mtime_ns

    names, sizes, _ = after_root(story)
    assert names[0] == ["a.txt", "b"]
    assert names[1] == ["b"]
    assert names[2] == [".", "a.txt", "b", "b/c.txt"]
    assert names[3:] == [["a.txt", "b"], ["a.txt", "b/c.txt"], [".", "b"], ["a.txt", "b"], [".", "b"]]
    assert sizes == {"a.txt": 5}


def case_errors_are_common():
    def raised(ask, *arguments):
        try:
            ask(*arguments)
        except (OSError, tf.errors.NotFoundError) as error:
            return type(error).__name__
        return None

    def story(place):
        filled(place)
        return [
            raised(open, place / "none"),
            raised((place / "none").read_text),
            raised(os.stat, place / "none"),
            raised(os.remove, place / "none"),
            raised(os.rmdir, place / "b"),
            raised(os.listdir, place / "a.txt"),
            raised(tf.io.gfile.listdir, str(place / "none")),
            raised(os.remove, place / "a.txt"),
            raised(os.remove, place / "a.txt"),
            raised(os.rename, place / "b", place / "d"),
            raised(shutil.rmtree, place / "d"),
            raised(shutil.rmtree, place / "d"),
        ]

    missing = "FileNotFoundError"
    assert after_root(story) == [
        *(missing, missing, missing, missing, "OSError", "NotADirectoryError", "NotFoundError"),
        *(None, missing, None, None, missing),
    ]


def case_a_file_is_read_when_rank_0_has_read_it():
    place = pathlib.Path(folder())
    for number in range(20):
        if dp.rank() == 0:
            (place / "state").write_text(f"{number}")
        assert common((place / "state").read_text()) == f"{number}"


def case_what_rank_0_has_read_is_read_although_it_is_written_anew():
    def story(place):
        state, seen = place / "state.json", []
        for number in range(5):
            if dp.rank() == 0:
                state.write_text(f"{number} ä\r\n" + "x" * number * 100_000)
            with open(state, encoding="utf-8", newline="") as text, open(state, "rb") as data:
                seen += [text.readline(), text.read().count("x"), len(data.read()), data.seek(0), text.name, data.name]
                seen += [data.read(1), np.fromfile(data, "uint8", count=2).tolist()]
        return seen

    found = after_root(story)
    assert found[:4] == ["0 ä\r\n", 0, 6, 0]
    assert found[-8:-4] == ["4 ä\r\n", 400_000, 400_006, 0]


def case_what_the_script_writes_is_written_once():
    place = pathlib.Path(folder())

    def noted(text):
        with open(place / "log", "a") as log:
            log.write(text)
            return log.tell()

    assert [common(noted("ä\n")) for _ in range(3)] == [3, 6, 9]
    with (place / "table").open("w", 1, encoding="latin-1", newline="\r\n") as table:
        print("ä", 1, file=table)
        assert common(table.tell()) == 5
        assert (table.mode, table.name, table.writable(), table.readable()) == ("w", str(place / "table"), True, False)
    with open(place / "array", "wb") as array:
        np.save(array, np.arange(100_000))
    assert np.load(place / "array").sum() == 4999950000
    with open(place / "raw", "wb", buffering=0) as raw:
        assert common([raw.write(b"0123"), raw.seek(2), raw.write(b"x"), raw.tell()]) == [4, 2, 1, 3]
    with open(place / "binary", "xb") as binary:
        binary.writelines([b"0", b"1"])
        assert common(binary.truncate()) == 2
    (place / "left").open("w").write("dropped")
    for mode, error, options in (
        ("x", FileExistsError, {}),
        ("w", LookupError, {"encoding": "none"}),
        ("wb", ValueError, {"encoding": "utf-8"}),
        ("w", ValueError, {"buffering": 0}),
    ):
        with pytest.raises(error):
            (place / "log").open(mode, **options)
    with pytest.raises(IsADirectoryError):
        (place / ".").open("w")
    (place / "log").write_text("ä\n" * 3)
    descriptor = os.open(place / "lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    os.write(descriptor, b"held")
    os.close(descriptor)
    with pytest.raises(FileExistsError):
        os.open(place / "lock", os.O_CREAT | os.O_EXCL | os.O_WRONLY)
    with apart():
        dp.barrier()
        assert (place / "log").read_bytes() == "ä\n".encode() * 3
        assert (place / "table").read_bytes() == "ä 1\r\n".encode("latin-1")
        assert (place / "raw").read_bytes() == b"01x3"
        assert (place / "binary").read_bytes() == b"01"
        assert (place / "left").read_bytes() == b"dropped"
        assert (place / "lock").read_bytes() == b"held"


def case_what_is_written_and_read_is_a_copy_of_rank_0s():
    def story(place):
        state, seen = place / "state", []
        for mode in ("w+", "r+", "a+", "r+b", "a+b", "rb+"):
            with open(state, mode) as file:
                file.write("x" if "b" not in mode else b"y")
                seen.append(file.tell())
                file.seek(0)
                seen += [file.read(), file.name == str(state)]
        with open(place / "new", "x+") as new:
            new.write("0")
        descriptor = os.open(state, os.O_RDWR | os.O_APPEND)
        os.lseek(descriptor, 0, os.SEEK_SET)
        seen += [os.write(descriptor, b"z"), os.lseek(descriptor, 0, os.SEEK_SET), os.read(descriptor, 100)]
        os.close(descriptor)
        return [*seen, state.read_text(), (place / "new").read_text()]

    found = after_root(story)
    assert found[-5:] == [1, 0, b"yxyz", "yxyz", "0"], found
    assert found[:6] == [1, "x", True, 1, "x", True]


def case_what_is_written_by_gfile_is_written_once():
    place = pathlib.Path(folder())
    for _ in range(3):
        with tf.io.gfile.GFile(str(place / "log"), "a") as log:
            log.write("x")
    dp.barrier()
    assert common((place / "log").read_text()) == "xxx"


def case_the_null_device_stands_for_what_rank_0_writes():
    place = pathlib.Path(folder())
    with open(dp.root_path(place / "log"), "w") as log:
        log.write("0123")
        assert common(log.tell()) == 4
    assert common((place / "log").read_text()) == "0123"
    np.save(dp.root_path(str(place / "array.npy")), np.arange(3))
    with pytest.raises(FileNotFoundError), open(dp.root_path(place / "none" / "log"), "w"):
        pass


def case_finalizers_ask_for_themselves():
    place = filled(pathlib.Path(folder()))

    class Node:
        def __init__(self):
            self.me = self
            weakref.finalize(self, os.path.exists, place)

    for _ in range(10 * (1 + dp.rank())):
        Node()
        gc.collect()
    assert common(sorted(os.listdir(place))) == ["a.txt", "b"]


def case_handlers_of_signals_ask_for_themselves():
    place = filled(pathlib.Path(folder()))
    handled = []
    before = signal.signal(signal.SIGALRM, lambda *_: handled.append(time.time()))
    try:
        if dp.rank() > 0:
            signal.setitimer(signal.ITIMER_REAL, 0.2)  # comes while the next line waits
        else:
            current().store.fetch("handled", publisher=1)
        if dp.rank() == 1:
            threading.Thread(target=tell_when, args=(handled,)).start()
        assert sorted(os.listdir(place)) == ["a.txt", "b"]
    finally:
        signal.signal(signal.SIGALRM, before)


def tell_when(handled):
    while not handled:
        time.sleep(0.01)
    current().store.publish("handled", b"", 1)


def case_with_words_of_its_own_a_question_is_a_ranks_own():
    place = pathlib.Path(folder())
    os.makedirs(place / f"of {dp.rank()}")
    with tempfile.TemporaryFile() as nameless, tempfile.NamedTemporaryFile("w+") as named:
        assert nameless.write(b"0") == 1
        assert isinstance(nameless.name, int)
        named.write(f"{dp.rank()}")
        named.seek(0)
        assert named.read() == f"{dp.rank()}"
        assert os.path.exists(named.name)
    dp.barrier()
    assert common(sorted(os.listdir(place))) == [f"of {rank}" for rank in range(dp.size())]


def case_what_rank_0_asks_alone_is_no_answer_to_others():
    place = filled(pathlib.Path(folder()))

    def names():
        return sorted(os.listdir(place))

    for number in range(3):
        if dp.rank() == 0:
            assert len(names()) == 2 + number
            (place / f"{number}").touch()
        assert dp.on_root(names) == names()
        assert len(common(names())) == 3 + number


def case_what_each_does_after_rank_0_is_its_own():
    place = pathlib.Path(folder())

    def fetched(name):
        if not os.path.exists(place / name):
            (place / name).mkdir()
            return "made"
        return "found"

    assert dp.root_first(fetched, "data") == ("made" if dp.rank() == 0 else "found")


def case_a_command_runs_once():
    place = pathlib.Path(folder())
    log = place / "log"
    append = [sys.executable, "-c", f"open({str(log)!r}, 'a').write('x\\n'); print('one'); print('two')"]
    process = subprocess.Popen(append, stdout=subprocess.PIPE, text=True, env={**os.environ, "OF": str(dp.rank())})
    assert common([line.strip() for line in process.stdout]) == ["one", "two"]
    assert common(process.wait()) == 0
    assert common(process.returncode) == 0
    assert common(process.pid) > 0
    with subprocess.Popen(append, stdout=subprocess.PIPE) as process:
        assert common(process.communicate(timeout=60)) == (b"one\ntwo\n", None)
    assert common(process.poll()) == 0
    with subprocess.Popen([sys.executable, "-c", "print(input())"], stdin=-1, stdout=-1, text=True) as process:
        process.stdin.write("said\n")
        process.stdin.close()
        assert common(process.stdout.read()) == "said\n"
    assert common(subprocess.run(append, capture_output=True, check=True).stdout) == b"one\ntwo\n"
    assert common(subprocess.check_output(append)) == b"one\ntwo\n"
    assert common(os.popen(f"echo y >> {log}; echo z").read()) == "z\n"
    assert common(os.system(f"echo y >> {log}")) == 0
    assert common(os.spawnlp(os.P_WAIT, "sh", "sh", "-c", f"echo y >> {log}")) == 0
    assert common(log.read_text()) == "x\n" * 4 + "y\n" * 3
    with pytest.raises(subprocess.CalledProcessError, match="status 1"):
        subprocess.run(["false"], check=True)


def case_threads_ask_for_themselves():
    place = filled(pathlib.Path(folder()))
    found = []

    def look():
        for _ in range(1 + dp.rank()):
            found.append(sorted(os.listdir(place)))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [["a.txt", "b"]] * (1 + dp.rank())

    def in_a_stage(number):
        return tf.numpy_function(lambda _: len(os.listdir(place)), [number], tf.int64)

    assert [int(each) for each in tf.data.Dataset.range(3).map(in_a_stage)] == [2, 2, 2]
