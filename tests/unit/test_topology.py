from dataclasses import FrozenInstanceError

import pytest

from tfdp.runtime.clusters import local
from tfdp.runtime.foundation import SOLO, LaunchEnvironmentError, Topology, TopologyError

FOUR = {"rank": 2, "size": 4, "local_rank": 0, "local_size": 2, "cross_rank": 1, "cross_size": 2}


def test_a_valid_topology_is_kept_and_cannot_change():
    topology = Topology(**FOUR)
    assert (topology.rank, topology.size, topology.cross_rank) == (2, 4, 1)
    with pytest.raises(FrozenInstanceError):
        topology.rank = 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rank": 4}, "rank is 4: with size 4 it must be 0 to 3"),
        ({"rank": -1}, "rank is -1"),
        ({"size": 0}, "size is 0: there is at least one worker"),
        ({"local_rank": 2}, "local_rank is 2: with local_size 2 it must be 0 to 1"),
        ({"cross_size": 0}, "cross_size is 0"),
        ({"local_size": 5}, "local_size is 5, more than the whole job: size is 4"),
        ({"cross_rank": 2}, "cross_rank is 2"),
        ({"rank": "1"}, "rank is '1': it must be an int"),
        ({"size": True}, "size is True: it must be an int"),
        ({"rank": 1.0}, "rank is 1.0: it must be an int"),
    ],
)
def test_numbers_that_contradict_each_other(change, message):
    with pytest.raises(TopologyError, match=message):
        Topology(**{**FOUR, **change})


def launched(topology=SOLO, **change):
    variables = local.variables(topology, 7, "job", store_fd=3, memory_fd=4)
    return {**variables, **change}


def test_what_the_launcher_writes_is_what_a_rank_reads():
    topology = Topology(rank=1, size=3, local_rank=1, local_size=3, cross_rank=0, cross_size=1)
    environ = launched(topology)
    assert local.present(environ)
    assert local.topology(environ) == topology
    assert local.number(environ, local.SEED) == 7


def test_without_any_variable_there_is_no_launcher():
    assert not local.present({"PATH": "/bin", "TFDP_TRANSPORT": "solo", "TFDP_SHM_BYTES": "1"})


def test_some_variables_without_the_others_are_an_error_that_names_both():
    environ = launched()
    del environ["TFDP_SIZE"]
    with pytest.raises(LaunchEnvironmentError, match=r"has TFDP_RANK.* but not TFDP_SIZE: start .* with `tfdp run`"):
        local.present(environ)


def test_a_variable_that_is_not_a_number():
    with pytest.raises(LaunchEnvironmentError, match="TFDP_RANK is 'two': an integer is needed"):
        local.topology(launched(TFDP_RANK="two"))
