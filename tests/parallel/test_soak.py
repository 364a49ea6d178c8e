"""Nothing grows with the number of collectives."""

import json
import pathlib

import pytest

pytest.importorskip("tensorflow")

SCRIPT = pathlib.Path(__file__).with_name("soak.py")
# What an allocator may take at its own times; a leak of one small object for each collective would be more.
SPARE_KIB = 4096


@pytest.mark.long
def test_ten_thousand_small_collectives_leave_nothing(launch):
    done = launch(2, SCRIPT.read_text(), "10000")
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line.partition("] ")[2]) for line in done.stdout.splitlines()]
    assert sorted(line["rank"] for line in lines) == [0, 1]
    for line in lines:
        early, middle, end = line["seen"]
        assert end["collectives"] >= 10_000
        assert (middle["fds"], middle["python_threads"]) == (end["fds"], end["python_threads"])
        # TensorFlow starts the threads of its pools when it first needs them.
        assert end["threads"] <= middle["threads"] + 2, line
        assert end["rss_kib"] - middle["rss_kib"] < SPARE_KIB, line
        assert end["fds"] == early["fds"], line
