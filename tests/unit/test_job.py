"""Joining a job; each case in a process of its own, since a process joins only once."""

import os
import subprocess
import sys

import pytest

JOINED = {
    "TFDP_RANK": "0",
    "TFDP_SIZE": "2",
    "TFDP_LOCAL_RANK": "0",
    "TFDP_LOCAL_SIZE": "2",
    "TFDP_CROSS_RANK": "0",
    "TFDP_CROSS_SIZE": "1",
    "TFDP_SEED": "5",
    "TFDP_JOB": "token",
    "TFDP_STORE_FD": "40",
    "TFDP_SHM_FD": "41",
}


def python(code, **environ):
    base = {name: value for name, value in os.environ.items() if not name.startswith("TFDP_")}
    return subprocess.run(
        [sys.executable, "-c", f"import tfdp.runtime as dp\n{code}"],
        capture_output=True,
        text=True,
        env={**base, **environ},
        check=False,
    )


def succeeds(code, **environ):
    done = python(code, **environ)
    assert done.returncode == 0, done.stderr
    return done.stdout


def fails(code, **environ):
    done = python(code, **environ)
    assert done.returncode == 1
    return done.stderr


def test_before_init_every_question_says_which_line_to_add():
    error = fails("dp.rank()")
    assert "NotInitializedError: tfdp is not initialised: call dp.init() at the top of the script" in error


def test_without_a_launcher_there_is_one_worker():
    code = "dp.init(); print(dp.rank(), dp.size(), dp.local_rank(), dp.local_size(), dp.cross_rank(), dp.cross_size())"
    assert succeeds(code) == "0 1 0 1 0 1\n"


def test_one_worker_needs_no_transport_whatever_is_asked_for():
    succeeds("dp.init()", TFDP_TRANSPORT="shared_memory")


def test_one_worker_is_not_seeded():
    code = "import random; random.seed(3); before = random.getstate(); dp.init(); assert random.getstate() == before"
    succeeds(code)


def test_init_again_does_nothing_unless_it_asks_for_something_else():
    succeeds("dp.init(); dp.init()")
    error = fails("dp.init(); dp.init(same_start=False)")
    assert "dp.init() has run with same_start=True; it cannot change afterwards" in error
    error = fails("dp.init(row_check=False); dp.init()")
    assert "dp.init() has run with row_check=False; it cannot change afterwards" in error


def test_is_initialized_and_shutdown():
    code = """
print(dp.is_initialized()); dp.init(); print(dp.is_initialized()); dp.shutdown(); print(dp.is_initialized())
dp.init(); print(dp.is_initialized())
"""
    assert succeeds(code) == "False\nTrue\nFalse\nTrue\n"


def test_a_forked_child_is_not_the_rank():
    code = """
import os
dp.init()
child = os.fork()
if child == 0:
    assert not dp.is_initialized()
    assert (dp.rank(), dp.shuffle_seed(3), dp.rank_seed(3)) == (0, 3, 3)
    try:
        dp.on_root(print)
    except dp.NotInitializedError as error:
        assert "was forked from rank 0" in str(error), error
        os._exit(0)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    succeeds(code)


def test_a_child_of_a_rank_gets_no_file_descriptors_and_is_told_so():
    error = fails("dp.init()", **JOINED)
    assert "LaunchEnvironmentError: file descriptor 40 does not lead to the launcher of a tfdp job" in error
    assert "Probably this process was started by a rank and not by `tfdp run`" in error


@pytest.mark.parametrize(
    ("environ", "message"),
    [
        ({"TFDP_RANK": "1"}, "the environment has TFDP_RANK but not TFDP_SIZE"),
        (
            {"TFDP_TRANSPORT": "mpi"},
            "TFDP_TRANSPORT is 'mpi'; it can be solo or shared_memory or device or nccl or ring",
        ),
        ({**JOINED, "TFDP_TRANSPORT": "solo"}, "TFDP_TRANSPORT=solo is for one worker; this job has 2"),
        ({**JOINED, "TFDP_STALL_SECONDS": "soon"}, "TFDP_STALL_SECONDS is 'soon': a number of seconds greater than 0"),
        ({**JOINED, "TFDP_SIZE": "x"}, "TFDP_SIZE is 'x': an integer is needed"),
        ({**JOINED, "TFDP_RANK": "2"}, "rank is 2: with size 2 it must be 0 to 1"),
    ],
)
def test_environments_that_cannot_be(environ, message):
    assert message in fails("dp.init()", **environ)
