"""Sharded calls: clocks, numbers and names that a process has for itself are rank 0's."""

import datetime
import datetime as dates
import os
import pathlib
import pickle
import random
import resource
import secrets
import signal
import socket
import tempfile
import time
import uuid
from datetime import date
from os import getpid

import tensorflow as tf
from whole_jobs import common, folder

import tfdp.runtime as dp
from tfdp.runtime.store import apart

DEVICE_RANKS = ()
RANKS = (2, 3)
INIT = {"shard_calls": True}


def case_clocks_and_names_are_common():
    common([time.time(), time.time_ns(), time.perf_counter(), time.monotonic(), time.strftime("%X"), time.localtime()])
    common([time.clock_gettime(time.CLOCK_MONOTONIC), time.thread_time(), resource.getrusage(resource.RUSAGE_SELF)])
    common(float(tf.timestamp()))
    common([str(uuid.uuid4()), os.urandom(8), secrets.token_hex(4), os.cpu_count()])
    common([random.SystemRandom().random(), secrets.randbelow(9)])
    begun, turns = time.time(), 0
    while time.time() - begun < 0.01:
        turns += 1
    assert common(turns) > 0


def case_dates_are_common_by_any_name():
    class Moment(datetime.datetime):
        pass

    found = [datetime.datetime.now(), datetime.datetime.now(datetime.timezone.utc), dates.datetime.today()]
    found += [datetime.datetime.utcnow(), date.today(), Moment.now().isoformat(), datetime.datetime.now(tz=None)]
    common(found)
    assert [type(each) for each in found[:5]] == [datetime.datetime] * 4 + [date]
    assert type(Moment.now()) is Moment
    assert pickle.loads(pickle.dumps(found)) == found
    assert abs(found[0] - datetime.datetime.fromtimestamp(time.time())) < datetime.timedelta(hours=1)
    end, turns = datetime.datetime.now() + datetime.timedelta(milliseconds=10), 0
    while datetime.datetime.now() < end:
        turns += 1
    assert common(turns) > 0


def case_the_number_of_the_process_is_common():
    assert common([os.getpid(), getpid(), uuid.uuid1(), socket.gethostname(), os.uname()])[0] == os.getpid()
    with apart():
        own = os.getpid()
    assert (own == os.getpid()) == (dp.rank() == 0)
    handled = []
    before = signal.signal(signal.SIGUSR1, lambda *_: handled.append(True))
    try:
        os.kill(os.getpid(), signal.SIGUSR1)
        assert handled == [True]
    finally:
        signal.signal(signal.SIGUSR1, before)


def case_a_temporary_folder_is_one_until_all_are_through_with_it():
    for _ in range(5):
        with tempfile.TemporaryDirectory() as name:
            common(name)
            if dp.rank() == 0:
                (pathlib.Path(name) / "records").write_text("x")
            dp.barrier()
            assert tf.io.read_file(f"{name}/records").numpy() == b"x"
        assert not os.path.exists(name)
        dp.barrier()
        with apart():
            assert not os.path.exists(name)
    made = tempfile.mkdtemp()
    assert common(made) == made


def case_a_temporary_file_beside_others_is_one():
    place = pathlib.Path(folder())
    for number in range(3):
        with tempfile.NamedTemporaryFile("w", dir=place, suffix=".tmp", delete=False) as file:
            file.write(f"{number}")
        os.replace(common(file.name), place / "state")
        descriptor, path = tempfile.mkstemp(dir=place)
        os.write(descriptor, b"x")
        os.close(descriptor)
        os.replace(path, place / "other")
        assert common(sorted(os.listdir(place))) == ["other", "state"]
    dp.barrier()
    with apart():
        assert sorted(os.listdir(place)) == ["other", "state"]
        assert (place / "state").read_text() == "2"
