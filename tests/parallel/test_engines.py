"""Ranks that another engine than `tfdp run` has started: here by the variables that Open MPI sets, one process each.

`tests/peers/test_engines.py` has them started by mpirun and srun themselves.
"""

import contextlib
import os
import pathlib
import re
import select
import signal
import subprocess
import sys
import uuid
import zlib

import pytest

LIMIT_SECONDS = 120
BEGIN = "import os, signal, sys\nimport tfdp.runtime as dp\n"


class Job:
    """Two processes of one job, as an engine starts them: each by itself, neither knowing the other."""

    def __init__(self, folder):
        self.folder, self.name = folder, str(uuid.uuid4())
        self.processes = {}

    def start(self, rank, text, *, size=2, command=None, cwd=None, **environ):
        script = self.folder / f"train{zlib.crc32(text.encode())}.py"
        script.write_text(BEGIN + text)
        base = {name: value for name, value in os.environ.items() if not name.startswith(("TFDP_", "PYTHONHASHSEED"))}
        place = {
            "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": str(size),
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank),
            "OMPI_COMM_WORLD_LOCAL_SIZE": str(size),
            "PMIX_NAMESPACE": self.name,
        }
        self.processes[rank] = subprocess.Popen(
            [sys.executable, *(command or [str(script)])],
            cwd=cwd,
            env={**base, "TF_CPP_MIN_LOG_LEVEL": "3", **place, **environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def ends(self):
        """Exit status, stdout and stderr of each rank. The agent's words are among the first rank's."""
        found = {}
        for rank, process in sorted(self.processes.items()):
            out, err = process.communicate(timeout=LIMIT_SECONDS)
            found[rank] = process.returncode, out, err
        return found


@pytest.fixture
def job(tmp_path):
    made = Job(tmp_path)
    yield made
    for process in made.processes.values():
        process.kill()
        process.communicate()


def agent_of(job):
    """A file descriptor of the process that serves the ranks of this job, None without one."""
    for each in pathlib.Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            is_agent = b"tfdp.runtime.agent" in (each / "cmdline").read_bytes()
            if is_agent and job.name.encode() in (each / "environ").read_bytes():
                return os.pidfd_open(int(each.name))
    return None


def outlived_by_agent(job):
    """Whether an agent of this job is still there a while after its ranks."""
    there = agent_of(job)
    return there is not None and not select.select([there], [], [], LIMIT_SECONDS)[0]


def test_they_train_together_and_begin_once_more_for_one_order_of_sets(job):
    text = """
dp.init()
import tensorflow as tf
total = dp.allreduce(tf.constant(float(dp.rank() + 1)), op=dp.Sum).numpy()
told = dp.broadcast_object({"seed": dp.shuffle_seed(), "order": hash("x")} if dp.rank() == 0 else None)
print(dp.rank(), dp.size(), dp.local_rank(), dp.cross_rank(), dp.cross_size(), total, told["order"] == hash("x"))
print(dp.on_root(os.getpid) != os.getpid() or dp.rank() == 0, os.environ["PYTHONHASHSEED"])
"""
    job.start(1, text)
    job.start(0, text)
    ends = job.ends()
    assert [status for status, *_ in ends.values()] == [0, 0], ends
    for rank, (_, out, _) in ends.items():
        assert out.splitlines() == [f"{rank} 2 {rank} 0 1 3.0 True", "True 0"]
    assert "Open MPI has started this script; it begins once more" in ends[0][2]
    assert "begins once more" not in ends[1][2]


@pytest.mark.long
def test_what_runs_after_it_in_the_same_job_finds_an_agent_of_its_own(job):
    text = "dp.init()\ndp.barrier()\nprint('joined', flush=True)\nif len(sys.argv) < 2:\n"
    text += "    import subprocess\n    env = {k: v for k, v in os.environ.items() if not k.startswith('TFDP_')}\n"
    text += "    sys.exit(subprocess.run([sys.executable, __file__, 'again'], env=env).returncode)\n"
    for rank in range(2):
        job.start(rank, text, PYTHONHASHSEED="0")
    for status, out, err in job.ends().values():
        assert status == 0, err
        assert out.splitlines() == ["joined", "joined"]


@pytest.mark.long(keeps=2)
@pytest.mark.parametrize(
    ("end", "said", "status"),
    [
        ("os.kill(os.getpid(), signal.SIGKILL)", r"rank 1 \(process \d+\) has ended without a word", -signal.SIGKILL),
        ("os._exit(0)", r"rank 1 \(process \d+\) has ended without a word", 0),
        ("raise ValueError('no data')", r"rank 1 ended with ValueError: no data \(at .*py:5\)", 1),
        ("sys.exit(0)", "waits in barrier .* for rank 1, which has ended without an error", 0),
    ],
)
def test_the_end_of_one_ends_the_others_with_its_name(job, end, said, status):
    job.start(0, "dp.init()\ndp.barrier()\ndp.barrier()\n", PYTHONHASHSEED="0")
    job.start(1, f"dp.init()\ndp.barrier()\n{end}\n", PYTHONHASHSEED="0")
    ends = job.ends()
    assert ends[1][0] == status
    assert ends[0][0] not in (0, -signal.SIGKILL)
    assert re.search(said, ends[0][2]), ends[0][2]
    assert not outlived_by_agent(job)


def test_ranks_whose_agent_is_killed_say_so_and_end(job):
    for rank in range(2):
        job.start(rank, "dp.init()\ndp.barrier()\nprint('in', flush=True)\nsignal.pause()\n", PYTHONHASHSEED="0")
    for process in job.processes.values():
        assert process.stdout.readline() == "in\n"
    signal.pidfd_send_signal(agent_of(job), signal.SIGKILL)
    for status, _, err in job.ends().values():
        assert status == 1
        assert "what serves the ranks of this host has ended; this rank ends, too" in err


@pytest.mark.long
def test_one_that_hangs_is_stopped_when_another_has_failed(job):
    job.start(0, "dp.init()\ndp.barrier()\nsignal.pause()\n", PYTHONHASHSEED="0")
    job.start(1, "dp.init()\ndp.barrier()\nraise KeyError('x')\n", PYTHONHASHSEED="0")
    ends = job.ends()
    assert ends[1][0] == 1
    assert "JobAborted: rank 0 was at" in ends[0][2]
    assert "rank 1 ended with KeyError: 'x'" in ends[0][2]


@pytest.mark.parametrize(
    ("text", "environ", "said"),
    [
        ("", {"PYTHONHASHSEED": "7"}, "in another order than rank 0: start all with the same PYTHONHASHSEED"),
        (
            "import importlib.metadata as m\nm.version = lambda name: '9.9'\n",
            {"PYTHONHASHSEED": "0"},
            r"it has tfdp 9\.9, and rank 0 has",
        ),
        ("", {"PYTHONHASHSEED": "0", "OMPI_COMM_WORLD_SIZE": "3"}, "it is one of 3, and local rank 0 one of 2"),
        ("", {"PYTHONHASHSEED": "0", "OMPI_COMM_WORLD_RANK": "0"}, "is this rank already; process"),
    ],
)
def test_a_rank_that_is_not_of_this_job_is_refused(job, text, environ, said):
    job.start(0, "dp.init()\nprint('in', flush=True)\nsignal.pause()\n", PYTHONHASHSEED="0")
    assert job.processes[0].stdout.readline() == "in\n"
    job.start(1, f"{text}dp.init()\n", **environ)
    _, err = job.processes[1].communicate(timeout=LIMIT_SECONDS)
    assert job.processes[1].returncode == 1
    assert re.search(f"rank ., started by Open MPI: .*{said}", err), err
    job.processes[0].terminate()


def test_a_module_that_changes_the_folder_is_found_again(job, tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").touch()
    text = "import os\nos.chdir('/')\nimport tfdp.runtime as dp\ndp.init()\nprint(dp.size(), os.getcwd())\n"
    (tmp_path / "package" / "train.py").write_text(text)
    for rank in range(2):
        job.start(rank, "", command=["-m", "package.train"], cwd=tmp_path)
    for status, out, err in job.ends().values():
        assert (status, out) == (0, "2 /\n"), err


def test_a_script_from_standard_input_cannot_begin_once_more(job):
    done = subprocess.run(
        [sys.executable, "-"],
        input="import tfdp.runtime as dp\ndp.init()\n",
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTHONHASHSEED"},
            "OMPI_COMM_WORLD_RANK": "0",
            "OMPI_COMM_WORLD_SIZE": "2",
            "OMPI_COMM_WORLD_LOCAL_RANK": "0",
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            "PMIX_NAMESPACE": job.name,
        },
        capture_output=True,
        text=True,
        timeout=LIMIT_SECONDS,
        check=False,
    )
    assert done.returncode == 1
    assert "give all ranks the same PYTHONHASHSEED, as by `mpirun -x PYTHONHASHSEED=0`" in done.stderr


HELPER = "import random, numpy as np\nRATE, SPLIT = random.random(), np.random.permutation(9).tolist()\n"
HELPER += "GENERATOR = np.random.default_rng().random()\n"
HELPED = """
import helper
dp.init()
import random, subprocess
import numpy as np
apart = subprocess.run([sys.executable, "-c", "import random; print(random.random())"], capture_output=True).stdout
print([helper.RATE, helper.SPLIT, helper.GENERATOR, random.random(), np.random.rand()], apart, sep="|")
"""


def test_what_is_drawn_before_joining_is_the_same_on_all(job):
    (job.folder / "helper.py").write_text(HELPER)
    for rank in range(2):
        job.start(rank, HELPED)
    (status, out, err), (_, other, _) = job.ends().values()
    assert status == 0, err
    assert out.split("|")[0] == other.split("|")[0]
    assert out.split("|")[1] != other.split("|")[1], "what a rank starts draws by itself"


def test_what_a_rank_starts_is_no_rank(job):
    text = """
dp.init()
dp.barrier()
import subprocess
done = subprocess.run([sys.executable, "-c", "import tfdp.runtime as dp; dp.init()"], capture_output=True, text=True)
print(done.returncode, "this process is a child of rank" in done.stderr)
"""
    for rank in range(2):
        job.start(rank, text, PYTHONHASHSEED="0")
    for status, out, err in job.ends().values():
        assert (status, out) == (0, "1 True\n"), err


def test_what_every_worker_of_a_sharded_script_says_one_says(job):
    text = """
import logging
dp.init(shard_calls=True)
logging.warning("logged")
print("said", file=sys.stdout)
print("of this rank", dp.rank(), file=sys.stderr)
"""
    for rank in (0, 1):
        job.start(rank, text)
    ends = job.ends()
    assert [ends[rank][0] for rank in (0, 1)] == [0, 0], ends
    assert [ends[rank][1] for rank in (0, 1)] == ["said\n", ""]
    assert ["logged" in ends[rank][2] for rank in (0, 1)] == [True, False]
    assert all(f"of this rank {rank}" in ends[rank][2] for rank in (0, 1))
