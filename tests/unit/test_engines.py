"""Which rank a process is by the variables of the engine that has started it: those that the engines have set here."""

import json
import os
import socket

import pytest

from tfdp.runtime.clusters import engines, slurm
from tfdp.runtime.foundation import LaunchEnvironmentError, TopologyError
from tfdp.runtime.launch import CommandError, nodes

OPEN_MPI = {
    "OMPI_COMM_WORLD_RANK": "1",
    "OMPI_COMM_WORLD_SIZE": "2",
    "OMPI_COMM_WORLD_LOCAL_RANK": "1",
    "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
    "PMIX_NAMESPACE": "prterun-vm-30706@1",
    "PMIX_RANK": "1",
}
SLURM = {
    "SLURM_JOB_ID": "7",
    "SLURM_STEP_ID": "0",
    "SLURM_PROCID": "3",
    "SLURM_LOCALID": "0",
    "SLURM_NODEID": "1",
    "SLURM_NTASKS": "4",
    "SLURM_STEP_NUM_TASKS": "4",
    "SLURM_STEP_TASKS_PER_NODE": "3,1",
    "SLURM_STEP_NODELIST": "a[1-2]",
}
TORCHRUN = {
    "TORCHELASTIC_RUN_ID": "none",
    "RANK": "2",
    "WORLD_SIZE": "4",
    "LOCAL_RANK": "0",
    "LOCAL_WORLD_SIZE": "2",
    "MASTER_ADDR": "a",
    "MASTER_PORT": "29500",
}


@pytest.fixture
def mpich():
    """The variables of a rank of MPICH, and the socket to its manager."""
    ours, theirs = socket.socketpair()
    yield {
        "PMI_RANK": "0",
        "PMI_SIZE": "2",
        "PMI_FD": str(theirs.fileno()),
        "MPI_LOCALRANKID": "0",
        "MPI_LOCALNRANKS": "2",
    }
    ours.close()
    theirs.close()


def place(environ):
    found = engines.recognise(environ)
    assert found is not None
    return found.engine, found.rank, found.size, found.local_rank, found.local_size, found.job


def test_without_an_engine_a_process_is_no_rank():
    assert engines.recognise({"PATH": "/bin", "RANK": "1"}) is None


def test_open_mpi():
    assert place(OPEN_MPI) == ("Open MPI", 1, 2, 1, 2, "prterun-vm-30706@1")


def test_open_mpi_4_has_another_name_for_the_job():
    environ = {**OPEN_MPI, "OMPI_MCA_ess_base_jobid": "3012345857"}
    del environ["PMIX_NAMESPACE"]
    assert place(environ)[-1] == "3012345857"


def test_mpich_is_one_job_for_all_that_its_manager_has_started(mpich):
    assert place(mpich) == ("MPICH or Intel MPI", 0, 2, 0, 2, str(os.getpid()))


def test_slurm_counts_the_ranks_of_each_node():
    assert place(SLURM) == ("Slurm", 3, 4, 0, 1, "7.0")
    assert engines.recognise(SLURM).root == "a1"


def test_torchrun():
    assert place(TORCHRUN) == ("torchrun", 2, 4, 0, 2, "none/0/a/29500")


WORKERS = {"worker": ["a:1", "b:1", "b:2"]}


def config(kind, index, cluster):
    return {"TF_CONFIG": json.dumps({"cluster": cluster, "task": {"type": kind, "index": index}})}


def test_sagemaker_has_one_process_a_host():
    environ = {"SM_HOSTS": '["algo-2", "algo-1"]', "SM_CURRENT_HOST": "algo-2"}
    assert place(environ) == ("SageMaker", 1, 2, 0, 1, "algo-1,algo-2")
    assert engines.recognise(environ).root == "algo-1"
    assert place({**environ, **OPEN_MPI})[0] == "Open MPI"


@pytest.mark.parametrize(
    ("kind", "index", "cluster", "found"),
    [
        ("worker", 0, WORKERS, (0, 3, 0, 1)),
        ("worker", 2, WORKERS, (2, 3, 1, 2)),
        ("chief", 0, {"chief": ["c:1"], **WORKERS}, (0, 4, 0, 1)),
        ("worker", 1, {"chief": ["c:1"], **WORKERS}, (2, 4, 0, 2)),
        ("evaluator", 0, {**WORKERS, "evaluator": ["e:1"]}, None),
        ("worker", 0, {"worker": ["a:1"]}, None),
    ],
)
def test_the_workers_of_tf_config(kind, index, cluster, found):
    recognised = engines.recognise(config(kind, index, cluster))
    assert (recognised and (recognised.rank, recognised.size, recognised.local_rank, recognised.local_size)) == found


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        (config("ps", 0, {**WORKERS, "ps": ["p:1"]}), "is ps 0 of 3 workers"),
        (config("worker", 0, {**WORKERS, "ps": ["p:1"]}), "has parameter servers"),
        (config("worker", 3, WORKERS), "is worker 3 of 3 workers"),
        ({"TF_CONFIG": "x"}, "a JSON object with cluster and task is needed"),
        ({"SM_HOSTS": '["a"]', "SM_CURRENT_HOST": "b"}, "is none of the hosts a"),
        ({"SM_HOSTS": '["a"]'}, "but not SM_CURRENT_HOST"),
        ({**OPEN_MPI, "TFDP_ENGINE": "mpi"}, "TFDP_ENGINE is 'mpi'"),
    ],
)
def test_lists_that_cannot_be(environ, said):
    with pytest.raises(LaunchEnvironmentError, match=said):
        engines.recognise(environ)


def test_one_worker_where_the_user_says_so():
    assert engines.recognise({**OPEN_MPI, "TFDP_ENGINE": "none"}) is None


def test_a_launcher_on_each_host_of_an_engine():
    environ = {**SLURM, "SLURM_STEP_TASKS_PER_NODE": "1(x4)", "SLURM_NODEID": "3", "SLURM_STEP_NODELIST": "n[1-4]"}
    assert nodes.of_environment(environ) == nodes.Nodes(4, 3, "n1")
    assert nodes.of_environment({**environ, "TFDP_ROOT": "n1:80"}) == nodes.Nodes(4, 3, "n1:80")
    assert nodes.of_environment({"PATH": "/bin"}) is None


@pytest.mark.parametrize(
    ("environ", "said"),
    [
        (OPEN_MPI, "Open MPI has started `tfdp run` 2 times on this host"),
        ({**OPEN_MPI, "OMPI_COMM_WORLD_LOCAL_SIZE": "1", "OMPI_COMM_WORLD_LOCAL_RANK": "0"}, "set TFDP_ROOT to host"),
        ({"OMPI_COMM_WORLD_SIZE": "2"}, "TFDP_ENGINE=none is for a job of this host only"),
    ],
)
def test_launchers_that_cannot_be(environ, said):
    with pytest.raises(CommandError, match=said):
        nodes.of_environment(environ)


@pytest.mark.parametrize(
    ("text", "counts"), [("2", [2]), ("2(x3),1", [2, 2, 2, 1]), ("1,3(x2)", [1, 3, 3]), ("16(x2)", [16, 16])]
)
def test_the_tasks_of_slurm_by_node(text, counts):
    assert slurm.tasks_per_node(text) == counts


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a", ["a"]),
        ("a,b", ["a", "b"]),
        ("n[08-10]", ["n08", "n09", "n10"]),
        ("rack[1-2]n[01-02]", ["rack1n01", "rack1n02", "rack2n01", "rack2n02"]),
        ("a[1,3-4],b[2]-x,c", ["a1", "a3", "a4", "b2-x", "c"]),
    ],
)
def test_the_hosts_of_slurm(text, hosts):
    assert slurm.hostnames(text) == hosts


@pytest.mark.parametrize("text", ["", "a[1-", "a,", "a[x-2]", "a[1-b]"])
def test_what_is_no_list_of_hosts(text):
    with pytest.raises(LaunchEnvironmentError, match="SLURM_STEP_NODELIST"):
        slurm.hostnames(text)


def test_the_shell_of_a_batch_script_is_no_rank():
    environ = {"SLURM_JOB_ID": "7", "SLURM_PROCID": "0", "SLURM_LOCALID": "0", "SLURM_NODEID": "0", "SLURM_NTASKS": "2"}
    assert engines.recognise(environ) is None


def test_mpirun_in_a_step_of_slurm_starts_the_ranks():
    assert place({**SLURM, **OPEN_MPI})[0] == "Open MPI"


def test_torchrun_in_a_step_of_slurm_starts_the_ranks():
    assert place({**SLURM, **TORCHRUN})[0] == "torchrun"


def test_what_slurm_sets_for_pmi_is_no_rank_of_mpich():
    assert place({**SLURM, "PMI_RANK": "3", "PMI_SIZE": "4", "PMI_FD": "5"})[0] == "Slurm"


def test_two_kinds_of_mpi_that_disagree_are_named(mpich):
    with pytest.raises(LaunchEnvironmentError, match="rank 1 of 2 by Open MPI and rank 0 of 2 by MPICH or Intel MPI"):
        engines.recognise({**mpich, **OPEN_MPI})


@pytest.mark.parametrize(
    ("environ", "gone"),
    [
        *((OPEN_MPI, name) for name in OPEN_MPI if name != "PMIX_RANK"),
        *((TORCHRUN, name) for name in TORCHRUN if name != "TORCHELASTIC_RUN_ID"),
        *((SLURM, name) for name in SLURM if name not in ("SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")),
    ],
)
def test_a_variable_that_is_missing_is_named(environ, gone):
    with pytest.raises(LaunchEnvironmentError, match=f"but not {gone}"):
        engines.recognise({name: value for name, value in environ.items() if name != gone})


@pytest.mark.parametrize(
    ("change", "error", "said"),
    [
        ({"OMPI_COMM_WORLD_RANK": "one"}, LaunchEnvironmentError, "OMPI_COMM_WORLD_RANK is 'one'"),
        ({"OMPI_COMM_WORLD_RANK": "2"}, TopologyError, "rank is 2: with size 2"),
        ({"OMPI_COMM_WORLD_LOCAL_SIZE": "3"}, TopologyError, "local_size is 3"),
    ],
)
def test_numbers_that_cannot_be(change, error, said):
    with pytest.raises(error, match=said):
        engines.recognise({**OPEN_MPI, **change})


def test_tasks_that_are_not_those_of_the_step():
    with pytest.raises(LaunchEnvironmentError, match="not the 4 tasks of SLURM_STEP_NUM_TASKS"):
        engines.recognise({**SLURM, "SLURM_STEP_TASKS_PER_NODE": "2"})


def test_a_descriptor_that_leads_nowhere_is_not_the_manager(mpich):
    with pytest.raises(LaunchEnvironmentError, match="no way to the process manager"):
        engines.recognise({**mpich, "PMI_FD": "9999"})
