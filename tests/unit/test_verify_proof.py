"""What a proof says, what stops it from being made, and the working directory its runs get."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from tfdp.migrate.verify import Failure, Proof, Row, record
from tfdp.migrate.verify.record import scratch


def proof(**parts: object) -> Proof:
    facts: dict[str, object] = {
        "script": "train.py",
        "np": 2,
        "batch": "global",
        "steps": 4,
        "seed": 1,
        "proved": True,
        "loss": 1.5e-7,
        "gradient": 2e-7,
        "update": 3e-6,
        "failure": None,
        "reason": "",
        "table": (Row("dense/kernel (64x10)", 2e-7, 3e-6), Row("m (64x10)", None, 1e-8)),
    }
    return Proof(**{**facts, **parts})  # type: ignore[arg-type]


def test_the_text_of_a_proof() -> None:
    assert str(proof()).splitlines() == [
        "train.py on 2 processes (global batch, 4 steps): trains the same model",
        "  largest relative difference: loss 1.5e-07 (limit 1e-06), gradient 2.0e-07 (limit 1e-05), "
        "update 3.0e-06 (limit 1e-04)",
        "  variable              gradient    update",
        "  dense/kernel (64x10)   2.0e-07   3.0e-06",
        "  m (64x10)                    -   1.0e-08",
    ]


def test_the_text_names_what_was_neutralised() -> None:
    assert str(proof(neutralised=("batch statistics: so",))).splitlines()[-1] == "  neutralised: batch statistics: so"


def test_the_text_of_a_failed_proof_has_the_reason() -> None:
    failure = Failure(1, 0, "w (3)", "gradient", 0.5, 1e-5, "differs by 0.5")
    reason = "step 1, rank 0: gradient of w (3) differs by 0.5"
    text = str(proof(proved=False, failure=failure, reason=reason, table=()))
    assert text.splitlines() == [
        "train.py on 2 processes (global batch, 4 steps): DOES NOT train the same model",
        "  step 1, rank 0: gradient of w (3) differs by 0.5",
    ]


@pytest.mark.parametrize(("np", "steps"), [(0, 1), (2, 0)])
def test_nonsense_counts_are_refused(np: int, steps: int) -> None:
    with pytest.raises(ValueError, match=f"np is {np} and steps is {steps}"), record("x.py", np, steps, reference=b""):
        pass


def test_tensorflow_is_not_imported_by_the_parent() -> None:
    code = "import sys, tfdp.migrate.verify; sys.exit('tensorflow' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    origin, copy = tmp_path / "origin", tmp_path / "copy"
    (origin / "data" / "deep").mkdir(parents=True)
    (origin / ".git").mkdir()
    (origin / "data" / "deep" / "x.txt").write_text("x")
    (origin / "plot.txt").write_text("mine")
    return origin, copy


def test_the_mirror_shows_files_and_keeps_new_ones(folders: tuple[Path, Path]) -> None:
    origin, copy = folders
    scratch.mirror(origin, copy)
    assert (copy / "data" / "deep" / "x.txt").read_text() == "x"
    assert (copy / ".git").is_symlink()
    (copy / "data" / "deep" / "new").write_text("new")
    assert not (origin / "data" / "deep" / "new").exists()


def test_a_mirror_inside_the_mirrored_folder_does_not_mirror_itself(folders: tuple[Path, Path]) -> None:
    origin, _ = folders
    scratch.mirror(origin, origin / "data" / "run")
    assert (origin / "data" / "run" / "data").is_symlink()
    assert (origin / "data" / "run" / "plot.txt").read_text() == "mine"


def test_large_folders_are_linked_as_a_whole(folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    origin, copy = folders
    monkeypatch.setattr(scratch, "MOST_ENTRIES", 1)
    scratch.mirror(origin, copy)
    assert (copy / "data").is_symlink()


def test_the_tree_leads_on_above_and_beside(folders: tuple[Path, Path], tmp_path: Path) -> None:
    origin, root = folders
    script = origin / "code" / "deep" / "train.py"
    script.parent.mkdir(parents=True)
    script.write_text("mine")
    (origin / "out").mkdir()
    scratch.show(root, script, [script.parent, script.parent])
    shown = scratch.scratch_place(root, script)
    assert shown.resolve() == shown.absolute() != script
    # As by a path through `..`, or by the script's own place.
    assert (shown.parent.parent.parent / "plot.txt").read_text() == "mine"
    assert (shown.parents[2] / "data" / "deep" / "x.txt").read_text() == "x"
    shown.write_text("new")
    (shown.parent.parent / "beside").write_text("new")
    assert script.read_text() == "mine"
    assert not (origin / "code" / "beside").exists()
    assert not (tmp_path / "copy" / "copy").exists()


def test_a_tree_of_several_folders_changes_none_of_them(
    folders: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    origin, root = folders
    monkeypatch.setattr(scratch, "MOST_ENTRIES", 1)
    before = sorted(origin.rglob("*"))
    for number, names in enumerate([("data/deep", "."), (".git", "."), (".", "data"), ("data", "data/deep")]):
        shown = [origin / name for name in names]
        scratch.show(root / str(number), origin / "plot.txt", shown)
        assert not any(scratch.scratch_place(root / str(number), folder).is_symlink() for folder in shown)
    assert sorted(origin.rglob("*")) == before


def test_a_folder_beside_one_is_its_own_although_it_lies_above_another(folders: tuple[Path, Path]) -> None:
    origin, root = folders
    shown = [origin / "code" / "deep", origin / "work"]
    for folder in shown:
        folder.mkdir(parents=True)
    scratch.show(root, origin / "plot.txt", shown)
    (scratch.scratch_place(root, origin) / "data" / "new.txt").write_text("new")
    assert not (origin / "data" / "new.txt").exists()


def test_writing_to_a_linked_file_changes_a_copy(folders: tuple[Path, Path]) -> None:
    origin, copy = folders
    scratch.mirror(origin, copy)
    code = """if True:
        import os, sys
        from pathlib import Path
        from tfdp.migrate.verify.record import scratch
        scratch.protect(Path.cwd())
        assert open("plot.txt").read() == "mine" and os.path.islink("plot.txt")
        open("plot.txt", "a").write(" and more")
        os.close(os.open("data/deep/x.txt", os.O_WRONLY | os.O_TRUNC))
    """
    subprocess.run([sys.executable, "-c", code], cwd=copy, check=True, env=dict(os.environ))
    assert (copy / "plot.txt").read_text() == "mine and more"
    assert (origin / "plot.txt").read_text() == "mine"
    assert (origin / "data" / "deep" / "x.txt").read_text() == "x"
    assert (copy / "data" / "deep" / "x.txt").read_text() == ""
