"""Every fixture script whose input is sharded is proved on 2 and 3 processes in both modes; every way to break it is
noticed."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal, TypeAlias
from zlib import crc32

import pytest
from handmade import Change, Handmade, changed, handmade
from mutants import Mutant, mutants
from variations import of_migrated, of_originals

from tfdp.migrate.engine import migrate
from tfdp.migrate.verify import Recording, record
from tfdp.migrate.verify.diagnosis import Cause
from tfdp.migrate.verify.reference import reference
from tfdp.rules._base import Policy

pytestmark = pytest.mark.usefixtures("forking")

Mode: TypeAlias = Literal["per-worker", "global"]

SCRIPTS = Path(__file__).parents[2] / "fixtures" / "scripts"
NAMES = sorted(p.parent.name for p in SCRIPTS.glob("*/after.py") if "dp.init()" in p.read_text())
STEPS = 8
# The sample takes one of these for each script, in turn. Its mutants and variations are of references that run for it.
CONFIGURATIONS: tuple[tuple[Mode, int], ...] = (("per-worker", 2), ("global", 3), ("per-worker", 3), ("global", 2))
GLOBAL = "batch not divided"  # the one mutant that the other mode has more than this one
SAMPLE = {
    ("fit_folds", "extra prints"),
    ("fit_folds", "rate times the number of ranks"),
    ("fit_split", "optimizers not averaged"),
    ("fit_weighted", "arrays in an order of each rank"),
    ("smddp_mnist", "batch not divided"),
    ("smddp_mnist", "drop the broadcast"),
    ("smddp_mnist", "gradients averaged by hand"),
    ("smddp_mnist", "one rank skips a batch"),
    ("smddp_mnist", "other names in functions"),
    ("two_models", "average divided again"),
    ("two_models", "clipped before the average"),
    ("two_models", "drop the shard"),
    ("two_models", "forget tape 2 of 2"),
    ("two_models", "gradients divided before they are added"),
    ("two_models", "loss divided by the batch of all"),
    ("two_models", "other names in the module"),
    ("two_models", "scale twice"),
    ("two_models", "shard after an unseeded shuffle"),
    ("two_models", "shard twice"),
    ("two_models", "sharded from a common order"),
    ("two_models", "sum for mean, or mean for sum"),
    ("two_models", "tapes not wrapped"),
    ("two_models", "uneven tail unweighted"),
}

DATA = {Cause.NOT_SHARDED, Cause.ORDERS, Cause.SHARDED_TWICE}


@cache
def recorded(name: str, mode: Mode, np: int, stack: ExitStack, original: tuple[Change, ...] = ()) -> Recording:
    path = SCRIPTS / name / "before.py"
    text = reference(str(path), before(name, original).encode(), np, mode)
    return stack.enter_context(record(path, np, STEPS, reference=text, batch=mode))


def before(name: str, original: tuple[Change, ...] = ()) -> str:
    return changed((SCRIPTS / name / "before.py").read_text(), original)


def after(name: str, mode: Mode) -> str:
    """What `migrate` makes of it: other tests see to that."""
    return (SCRIPTS / name / ("after.py" if mode == "per-worker" else "after_global.py")).read_text()


def migrated(name: str, mode: Mode, text: str) -> str:
    migration = migrate(str(SCRIPTS / name / "before.py"), text.encode(), Policy("input", mode))
    assert not migration.refused, migration.findings
    return migration.after.decode()


def parameter(case: Any, script: str, *words: str) -> Any:
    return marked(case, script, "-".join((script, *words)), sample=(script, words[-1]) in SAMPLE)


def marked(case: Any, script: str, name: str, sample: bool) -> Any:
    """A script's cases are run by one process: they share its recorded references."""
    marks = [pytest.mark.xdist_group(script), *([pytest.mark.sample] if sample else [])]
    return pytest.param(case, marks=marks, id=name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Texts are made only for what will run."""
    sample = metafunc.config.getoption("--sample")
    for name, made in (("mutant", broken), ("variation", harmless)):
        if name in metafunc.fixturenames:
            wanted = SAMPLE.__contains__ if sample else lambda _: True
            scripts = {script for script, _ in SAMPLE} if sample else set(NAMES)
            metafunc.parametrize(name, list(made(scripts, lambda *case, wanted=wanted: wanted(case))))


def proofs() -> Iterator[Any]:
    for number, name in enumerate(NAMES):
        for turn, (mode, np) in enumerate(CONFIGURATIONS):
            sample = turn == number % len(CONFIGURATIONS)
            yield marked((name, mode, np), name, f"{name}-{mode}-{np}", sample)


@pytest.mark.parametrize("case", list(proofs()))
def test_trains_the_same_model(case: tuple[str, Mode, int], stack: ExitStack, note) -> None:
    name, mode, np = case
    proof = recorded(name, mode, np, stack).prove(migrated(name, mode, before(name)).encode())
    note("as migrated", proof)
    assert proof.proved, proof
    assert proof.data is not None
    assert proof.data.outcome == "shared", proof.data
    assert proof.gradient > 0, "sums of floating-point numbers in two orders are never all equal: it saw nothing"


def broken(scripts: set[str], wanted: Callable[[str, str], bool]) -> Iterator[Any]:
    for name in sorted(scripts):
        for mutant in mutants(after(name, "per-worker"), partial(wanted, name)):
            yield parameter((name, "per-worker", mutant), name, "per-worker", mutant.name)
        for mutant in mutants(after(name, "global"), lambda kind, name=name: kind == GLOBAL and wanted(name, kind)):
            yield parameter((name, "global", mutant), name, "global", mutant.name)


def test_a_broken_script_is_not_proved(mutant: tuple[str, Mode, Mutant], stack: ExitStack, note) -> None:
    name, mode, made = mutant
    proof = recorded(name, mode, 2, stack).prove(made.text.encode())
    cause = made.cause
    note(made.name, proof, cause)
    assert not proof.proved, proof
    if cause is None:
        assert proof.cause is None, proof
        assert re.search("without averaging gradients over the ranks|migrated script failed|rank 1 writes", str(proof))
        return
    assert proof.cause == cause.value, proof
    if made.cause in DATA and proof.data is not None and proof.data.outcome != "unfollowed":
        assert (proof.data.outcome, proof.data.step) == ("broken", 0), proof.data


@pytest.mark.parametrize("case", [parameter(case, case.script, case.name) for case in handmade()])
def test_a_script_broken_in_a_place_of_its_own_is_not_proved(case: Handmade, stack: ExitStack, note) -> None:
    text = migrated(case.script, "per-worker", before(case.script, case.original))
    recording = recorded(case.script, "per-worker", 2, stack, case.original)
    proof = recording.prove(changed(text, case.changes).encode())
    note(case.name, proof, case.cause)
    assert not proof.proved, proof
    assert proof.cause == case.cause.value, proof


def harmless(scripts: set[str], wanted: Callable[[str, str], bool]) -> Iterator[Any]:
    for number, name in enumerate(NAMES):
        if name not in scripts:
            continue

        def due(kind: str, number: int = number, name: str = name) -> bool:
            """Each kind is tried on every fourth script, others for each kind: 300 proofs more would show the same."""
            return wanted(name, kind) and ((name, kind) in SAMPLE or (number + crc32(kind.encode())) % 4 == 0)

        for kind, text in of_originals(before(name), due):
            yield parameter((name, kind, text, False), name, kind)
        for kind, text in of_migrated(after(name, "per-worker"), due):
            yield parameter((name, kind, text, True), name, kind)


def test_a_script_written_otherwise_is_proved(variation: tuple[str, str, str, bool], stack: ExitStack, note) -> None:
    name, kind, text, ready = variation
    if not ready and migrate(str(SCRIPTS / name / "before.py"), text.encode(), Policy("input")).refused:
        pytest.skip("goes by sharded calls")
    text = text if ready else migrated(name, "per-worker", text)
    proof = recorded(name, "per-worker", 2, stack).prove(text.encode())
    note(kind, proof)
    assert proof.proved, proof
