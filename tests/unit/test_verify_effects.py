"""Who may write which file, and what is seen of files that nobody announced."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

pytest.importorskip("numpy")

from tfdp.migrate.verify.record import Effect, Effects, effects


def wrote(path: str, step: int = 1, line: int | None = 12) -> Effect:
    return Effect("writes", path, line, step)


def judged(*ranks: Sequence[Effect], left: dict[str, bool | None] | None = None) -> Effects:
    return effects.judge_effects(ranks, left or {}, 8)


FINE = {
    "nothing": ([], []),
    "rank 0 alone": ([wrote("a"), wrote("a")], []),
    "dp.rank_path": ([wrote("c-0-of-2")], [wrote("c-1-of-2")]),
    "what TensorFlow adds to dp.rank_path": ([wrote("c-0-of-2.index")], [wrote("c-1-of-2.data-00000-of-00001")]),
    "numbered by rank": ([wrote("log/0.txt")], [wrote("log/1.txt")]),
    "made and removed again": ([], [wrote("tmp9x"), Effect("removes", "tmp9x", 12, 1)]),
}


@pytest.mark.parametrize("name", FINE)
def test_one_writer_each(name: str) -> None:
    found = judged(*FINE[name])
    assert (found.path, found.rank, found.step) == (None, None, None), found


WRONG = {
    "two writers": ([wrote("a")], [wrote("a", 2)], ("a", 1, 2)),
    "another than rank 0": ([], [wrote("b", 3), wrote("a", 2)], ("a", 1, 2)),
    "a name for another rank": ([wrote("c-0-of-2")], [wrote("c-0-of-2")], ("c-0-of-2", 1, 1)),
    "a name for another number of ranks": ([], [wrote("c-1-of-20")], ("c-1-of-20", 1, 1)),
    "a number that is no rank": ([wrote("v2/a")], [wrote("v1/a")], ("v1/a", 1, 1)),
    "numbered by epoch": ([wrote("e0.png"), wrote("e1.png", 2)], [wrote("e1.png", 2)], ("e1.png", 1, 2)),
    "removed for all": ([], [Effect("removes", "logs", 12, 1)], ("logs", 1, 1)),
    "removed before another writes it": ([wrote("a", 3)], [wrote("a"), Effect("removes", "a", 12, 1)], ("a", 1, 1)),
}


@pytest.mark.parametrize("name", WRONG)
def test_others_are_named(name: str) -> None:
    *ranks, expected = WRONG[name]
    found = judged(*ranks)  # type: ignore[arg-type]
    assert (found.path, found.rank, found.step) == expected


def test_the_words() -> None:
    found = judged([wrote("a.png")], [wrote("a.png", line=40)])
    assert found.text == (
        "step 1, rank 1 writes a.png, as rank 0 does (line 40 of the migrated script); "
        "let rank 0 alone do it, or use dp.rank_path"
    )
    assert found.written == (("a.png", (0, 1)),)
    assert judged([], []).text == "no rank wrote a file in these 8 steps"
    left = {"a": None, "c-0-of-2.index": None, "c-1-of-2.index": None}
    fine = judged([wrote("a"), wrote("a.part"), wrote("c-0-of-2")], [wrote("c-1-of-2")], left=left)
    assert fine.text == "3 files written in these 8 steps: 2 by rank 0, 1 by the ranks they belong to"


def test_files_that_no_call_announced_are_told_by_their_mode() -> None:
    assert judged([], [], left={"a.h5": False}).written == (("a.h5", (0,)),)
    found = judged([], [], left={"a.h5": True})
    assert (found.path, found.rank) == ("a.h5", 1)
    found = judged([], [], [], left={"a.h5": True})
    assert (found.path, found.rank) == ("a.h5", None)
    assert "another rank than 0 writes a.h5" in found.text
    assert judged([], [], left={"a.h5": None}).path is None
    # The parts of a checkpoint, of which the name is known.
    assert judged([wrote("ckpt-1")], [], left={"ckpt-1.index": True}).written == (("ckpt-1", (0,)),)
    assert judged([], [], left={"c-1-of-2": True}).path is None


@pytest.mark.skipif(not effects.markable(), reason="this shell's umask hides the modes of new files")
def test_the_mode_of_a_file_tells_who_made_it(tmp_path: Path) -> None:
    for rank in (0, 1):
        code = f"""if True:
            import os, tempfile
            from tfdp.migrate.verify.record import effects
            effects.mark_effects({rank})
            os.makedirs("folder{rank}")
            os.close(os.open("folder{rank}/made", os.O_CREAT | os.O_WRONLY, 0o666))
            tempfile.mkstemp(prefix="private{rank}", dir=".")
        """
        subprocess.run([sys.executable, "-c", code], cwd=tmp_path, check=True, env=dict(os.environ))
    (tmp_path / "link").symlink_to(tmp_path / "folder1" / "made")
    found = effects.files_made(tmp_path, tmp_path / "train.py")
    private = {found.pop(name) for name in list(found) if name.startswith("private")}
    assert found == {"folder0/made": False, "folder1/made": True}
    assert private == {None}


def test_what_is_written_is_read_without_a_broken_last_line(tmp_path: Path) -> None:
    assert effects.read_effects(tmp_path) == []
    (tmp_path / effects.EFFECTS_FILE).write_bytes(effects.effect_line(wrote("a")) + b'{"kind"')
    assert effects.read_effects(tmp_path) == [wrote("a")]
