"""The rows of the fault table: the others end in time and say why, and nothing is left behind."""

import importlib.util
import pathlib
import signal
import sys

import pytest

pytest.importorskip("numpy")

SPECIFICATION = importlib.util.spec_from_file_location(
    "fault_table", pathlib.Path(__file__).with_name("fault_table.py")
)
fault_table = importlib.util.module_from_spec(SPECIFICATION)
sys.modules["fault_table"] = fault_table
SPECIFICATION.loader.exec_module(fault_table)


# The ones that wait for a limit take seconds: `make faults` has them on 2 and 4 ranks too.
ROWS = [(fault, size) for fault in fault_table.FAULTS for size in ([3] if fault.waits else [2, 3, 4])]


IGNORED = signal.getsignal(signal.SIGINT) is signal.SIG_IGN  # as under nohup or in the background


@pytest.mark.parametrize(
    ("fault", "size"),
    [pytest.param(*row, marks=[pytest.mark.long] * (row[1] != 3), id=f"{row[0].name}-{row[1]}") for row in ROWS],
)
def test_a_fault(fault, size):
    if fault.name == "ctrl-C" and IGNORED:
        pytest.skip("SIGINT is ignored here, and so it is by the launcher")
    outcome = fault_table.run(fault, size, TFDP_GRACE_SECONDS="3")
    assert outcome.problems == [], (outcome.screen, outcome.said)
    assert outcome.seconds < fault_table.limit(fault)


def test_a_fault_that_is_none_is_found_out():
    """The table itself can fail: a script in which nothing goes wrong."""
    fine = fault_table.Fault("none", "meet()", "JobAborted", "rank {bad} failed first")
    outcome = fault_table.run(fine, 2)
    assert outcome.status == 0
    assert len(outcome.problems) == 3, outcome.problems
