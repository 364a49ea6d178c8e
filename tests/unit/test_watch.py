"""Which rank the launcher holds for the one that failed first."""

import subprocess
import sys

import pytest

from tfdp.runtime.launch.children import Child, Guardian
from tfdp.runtime.launch.watch import Watch


def ended(*statuses: int | None, through: dict[int, float]) -> tuple[int, list[str]]:
    """The rank that is held for the first when rank 1 is seen to have ended, and what is told of it."""
    reasons: list[str] = []
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    ranks = [Child(rank, process) for rank in range(len(statuses))]
    for rank, status in zip(ranks, statuses, strict=True):
        rank.status = status
    guardian = Guardian()
    try:
        watch = Watch(
            ranks,
            guardian,
            10.0,
            10.0,
            failed=reasons.append,
            finished=lambda _: None,
            ending=lambda: None,
            through=through,
        )
        watch._ended(ranks[1])
    finally:
        guardian.dismiss()
    assert watch.first is not None
    return watch.first.rank, reasons


@pytest.mark.parametrize(
    ("statuses", "through", "first", "reason"),
    [
        ((None, -15, None), {}, 1, "rank 1 ended with signal SIGTERM"),
        ((None, -15, None), {2: 1.0}, 2, "rank 2 ended with an exception"),
        ((1, -15, None), {2: 2.0, 0: 1.0}, 0, "rank 0 ended with exit status 1"),
        ((None, 3, None), {2: 1.0}, 1, "rank 1 ended with exit status 3"),
    ],
)
def test_who_follows_an_exception_by_a_signal_is_not_the_first(statuses, through, first, reason) -> None:
    assert ended(*statuses, through=through) == (first, [reason])
