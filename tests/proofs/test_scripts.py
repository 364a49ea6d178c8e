"""Every fixture script, migrated, is proved on 2 and 3 processes in both modes; every way to break it is noticed."""

from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from typing import Any, Literal, TypeAlias

import pytest
from mutants import mutants

from tfdp.migrate.engine import migrate
from tfdp.migrate.verify import Recording, record
from tfdp.migrate.verify.reference import reference

Mode: TypeAlias = Literal["per-worker", "global"]

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "scripts"
NAMES = sorted(p.parent.name for p in SCRIPTS.glob("*/after_global.py"))
STEPS = 8
# The sample takes one of these for each script, in turn, and every thirteenth mutant.
CONFIGURATIONS: tuple[tuple[Mode, int], ...] = (("per-worker", 2), ("global", 3), ("per-worker", 3), ("global", 2))
SAMPLE_EVERY = 13


@cache
def recorded(name: str, mode: Mode, np: int, stack: ExitStack) -> Recording:
    path = SCRIPTS / name / "before.py"
    text = reference(str(path), path.read_bytes(), np, mode)
    return stack.enter_context(record(path, np, STEPS, reference=text, batch=mode))


@cache
def migrated(name: str, mode: Mode) -> str:
    path = SCRIPTS / name / "before.py"
    migration = migrate(str(path), path.read_bytes(), mode)
    assert not migration.refused, migration.findings
    return migration.after.decode()


def proofs() -> Iterator[Any]:
    for number, name in enumerate(NAMES):
        for turn, (mode, np) in enumerate(CONFIGURATIONS):
            marks = [pytest.mark.sample] if turn == number % len(CONFIGURATIONS) else []
            yield pytest.param((name, mode, np), marks=marks, id=f"{name}-{mode}-{np}")


@pytest.mark.parametrize("case", list(proofs()))
def test_trains_the_same_model(case: tuple[str, Mode, int], stack: ExitStack, note) -> None:
    name, mode, np = case
    proof = recorded(name, mode, np, stack).prove(migrated(name, mode).encode())
    note("as migrated", proof)
    assert proof.proved, proof
    assert proof.gradient > 0, "sums of floating-point numbers in two orders are never all equal: it saw nothing"


def broken() -> Iterator[Any]:
    found = [(name, "per-worker", mutant) for name in NAMES for mutant in mutants(migrated(name, "per-worker"))]
    divided = [(name, "global", mutant) for name in NAMES for mutant in mutants(migrated(name, "global"))]
    found += [case for case in divided if case[2].name == "batch not divided"]
    for number, (name, mode, mutant) in enumerate(found):
        marks = [] if number % SAMPLE_EVERY else [pytest.mark.sample]
        yield pytest.param((name, mode, mutant), marks=marks, id=f"{name}-{mode}-{mutant.name}")


@pytest.mark.parametrize("case", list(broken()))
def test_a_broken_script_is_not_proved(case: Any, stack: ExitStack, note) -> None:
    name, mode, mutant = case
    proof = recorded(name, mode, 2, stack).prove(mutant.text.encode())
    note(mutant.name, proof)
    assert not proof.proved, proof
