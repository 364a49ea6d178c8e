"""Each mutant of the runtime is caught by kinds of training that are right without it (test_kinds.py)."""

import os

import pytest
from calls.judge import wrong
from calls.launches import kinds, trained
from calls.mutants import MUTANTS

SAMPLE = {"gradient of `every` without N"}


@pytest.fixture(scope="module")
def reference(request):
    """What one process trains, without the runtime, of all kinds that the selected mutants are tried on."""
    items = [item for item in request.session.items if item.path == request.path]
    names = {name for item in items for name in item.callspec.params["mutant"].kinds}
    return trained([kind for kind in kinds() if kind.name in names], 1, calls=False)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    "mutant",
    [pytest.param(each, id=each.name, marks=pytest.mark.sample if each.name in SAMPLE else ()) for each in MUTANTS],
)
def test_mutant_is_caught(mutant, reference, tmp_path):
    tried = [kind for kind in kinds() if kind.name in mutant.kinds]
    assert len(tried) == len(mutant.kinds)
    found = trained(tried, 2, PYTHONPATH=os.pathsep.join([mutant.package(tmp_path), os.environ.get("PYTHONPATH", "")]))
    said = {kind.name: wrong(kind, reference[kind.name], found[kind.name]) for kind in tried}
    assert any(said.values()), f"not caught by {', '.join(said)}"
    assert mutant.ends or any("differs from one process" in each for each in said.values()), said
