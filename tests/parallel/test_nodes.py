"""Two launchers, each with ranks of its own, that meet over TCP: here on one host, by its loopback address.

`tests/peers/test_two_hosts.py` has them in network namespaces of their own, with a link that can be taken down.
"""

import contextlib
import os
import random
import re
import signal
import socket
import subprocess
import sys

import pytest

LIMIT_SECONDS = 120
BEGIN = "import os, signal, sys\nimport tensorflow as tf\nimport tfdp.runtime as dp\ndp.init()\n"


class Pair:
    """Two launchers of one job."""

    def __init__(self, folder):
        self.script = folder / "train.py"
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.launchers = []

    def start(self, text, counts=(1, 1), *options, **environ):
        self.script.write_text(BEGIN + text)
        for node, count in enumerate(counts):
            place = ["-np", str(count), "--nnodes", "2", "--node-rank", str(node), "--root", f"127.0.0.1:{self.port}"]
            self.launch([*place, *options], **environ)

    def launch(self, options, **environ):
        base = {name: value for name, value in os.environ.items() if not name.startswith("TFDP_")}
        self.launchers.append(
            subprocess.Popen(
                [sys.executable, "-m", "tfdp.runtime.launch", *options, str(self.script)],
                env={**base, "TF_CPP_MIN_LOG_LEVEL": "3", "TFDP_SECRET": "of this test only", **environ},
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
        )

    def ends(self):
        """Exit status, stdout and stderr of each launcher."""
        found = []
        for each in self.launchers:
            out, err = each.communicate(timeout=LIMIT_SECONDS)
            found.append((each.returncode, out, err))
        return found


def free_ports(count):
    """The first of so many that nobody listens at, one after the other."""
    with contextlib.ExitStack() as held:
        while True:
            low = random.randrange(11_000, 20_000)
            try:
                for port in range(low, low + count):
                    held.enter_context(socket.socket()).bind(("", port))
            except OSError:
                continue
            return low


@pytest.fixture
def pair(tmp_path):
    made = Pair(tmp_path)
    yield made
    for each in made.launchers:
        each.kill()
        each.communicate()


def test_ranks_of_two_hosts_are_one_job(pair):
    text = """
rank = dp.rank()
total = float(dp.allreduce(tf.constant(float(rank + 1)), op=dp.Sum))
rows, told = dp.allgather(tf.fill([rank + 1], rank)).numpy().tolist(), dp.broadcast_object({"from": rank})
seeds = dp.allgather(tf.constant([dp.shuffle_seed()])).numpy().tolist()
assert len(set(seeds)) == 1 and "TFDP_SECRET" not in os.environ
assert dp.on_root(lambda: rank) == 0

@tf.function
def step(x):
    for _ in tf.range(3):
        x = dp.allreduce(x, op=dp.Average)
    return x

tables = [line.split() for name in ("tcp", "tcp6") for line in open(f"/proc/net/{name}").read().splitlines()[1:]]
ports = {int(line[1].rpartition(":")[2], 16) for line in tables if line[3] == "0A"}
low, high = map(int, os.environ["TFDP_PORT_RANGE"].split("-"))
print(rank, dp.size(), dp.local_rank(), dp.local_size(), dp.cross_rank(), dp.cross_size(), total, rows, told["from"],
      float(step(tf.constant(float(rank)))), len(ports & set(range(low, high + 1))), sep="|")
"""
    low = free_ports(5)
    pair.start(text, (1, 2), "--port-range", f"{low}-{low + 4}")
    (first, out, err), (second, more, error) = pair.ends()
    assert (first, second) == (0, 0), err + error
    rest = "6.0|[0, 1, 1, 2, 2, 2]|0|1.0|3"  # a port for each rank
    assert out.splitlines() == [f"[0] 0|3|0|1|0|2|{rest}"]
    assert sorted(more.splitlines()) == [f"[1] 1|3|0|2|1|2|{rest}", f"[2] 2|3|1|2|0|1|{rest}"]


@pytest.mark.long(keeps=2)
@pytest.mark.parametrize(
    ("end", "there", "here"),
    [
        ("raise ValueError('no data')", "ValueError: no data", r"rank 1 ended with ValueError: no data \(at .*\) on "),
        ("os.kill(os.getpid(), signal.SIGKILL)", "signal SIGKILL", "rank 1 ended with signal SIGKILL on "),
        ("os.kill(os.getppid(), signal.SIGKILL)", "", "has ended without a word, with rank 1"),
        ("dp.allgather(tf.zeros([1]))", "CollectiveMismatchError", "the ranks met in different collectives"),
    ],
)
def test_the_end_of_a_rank_ends_the_other_host_with_its_name(pair, end, there, here):
    pair.start(f"dp.barrier()\nif dp.rank() == 1:\n    {end}\ndp.barrier()\ndp.barrier()\n")
    (first, _, err), (second, _, error) = pair.ends()
    assert (first, second) == (1, {"": -signal.SIGKILL, "signal SIGKILL": 128 + signal.SIGKILL}.get(there, 1))
    assert there in error
    assert re.search(f"the job was ended by another host: .*{here}|{here}", err), err


@pytest.mark.long(keeps=1)
def test_a_root_that_is_interrupted_while_it_serves_the_others_ends_them(pair):
    text = """
if dp.rank() == 1:
    try:
        dp.on_root(lambda: None)
    except RuntimeError:
        print("alone", flush=True)  # rank 0 has ended
    signal.pause()
"""
    pair.start(text, TFDP_GRACE_SECONDS="2")
    root, other = pair.launchers
    assert other.stdout.readline() == "[1] alone\n"
    root.send_signal(signal.SIGTERM)
    (first, _, _), (second, _, error) = pair.ends()
    assert (first, second) == (128 + signal.SIGTERM, 1)
    assert "the job was ended by another host: SIGTERM on" in error


@pytest.mark.long
def test_the_root_serves_the_others_until_they_have_ended(pair):
    pair.start("print(dp.on_root(lambda: 7))\nif dp.rank() == 1:\n    dp.shutdown()\n    sys.stdin.read()\n", (1, 1))
    assert [status for status, *_ in pair.ends()] == [0, 0]


@pytest.mark.parametrize(
    ("options", "secret", "said"),
    [
        (
            ["--nnodes", "2"],
            "of this test only",
            "--nnodes without --node-rank, --root: each host of several needs all",
        ),
        (["--link-timeout", "3"], "of this test only", "--link-timeout without --nnodes, --node-rank, --root"),
        (
            ["--nnodes", "2", "--node-rank", "2", "--root", "a"],
            "of this test only",
            "--node-rank is 2: with --nnodes 2",
        ),
        (["--nnodes", "2", "--node-rank", "0", "--root", "a:b"], "of this test only", "--root: 'a:b' is no address"),
        (["--nnodes", "2", "--node-rank", "0", "--root", "a"], "", "TFDP_SECRET is not set"),
        (
            ["--nnodes", "2", "--node-rank", "0", "--root", "a", "--link-timeout", "0"],
            "of this test only",
            "--link-timeout is 0: a number of seconds greater than 0",
        ),
        (["--port-range", "80-90"], "of this test only", "TFDP_PORT_RANGE (--port-range) is '80-90'"),
        (["--nnodes", "2", "--node-rank", "0", "--root", "a"], "short", "TFDP_SECRET has 5 characters"),
        (
            ["--nnodes", "2", "--node-rank", "0", "--root", "203.0.113.7"],
            "of this test only",
            "cannot listen at 203.0.113.7",
        ),
        (
            ["--nnodes", "2", "--node-rank", "1", "--root", "127.0.0.1:1", "--start-timeout", "0.5"],
            "of this test only",
            "did not answer at 127.0.0.1:1 within 0.5 s",
        ),
    ],
)
def test_what_cannot_be_is_said_before_anything_starts(pair, options, secret, said):
    pair.script.write_text("print('started')")
    pair.launch(["-np", "1", *options], TFDP_SECRET=secret)
    [(status, out, err)] = pair.ends()
    assert (status, out) == (2, "")
    assert said in err


def test_a_transport_that_does_not_reach_the_other_host(pair):
    pair.start("", TFDP_TRANSPORT="shared_memory")
    for status, _, err in pair.ends():
        assert status == 1
        assert re.search("shared_memory reaches the 1 ranks of this host|ended by another host", err), err
