"""What starts a script by another launcher, and the command in its place."""

import pytest

from tfdp.migrate.launch_lines import launch_lines


@pytest.mark.parametrize(
    ("line", "now"),
    [
        ("horovodrun -np 4 python train.py --lr 0.1", "tfdp run -np 4 train.py --lr 0.1"),
        ("# run: `horovodrun -np 4 python train.py`", "tfdp run -np 4 train.py"),
        ("horovodrun -np 8 -H a:4,b:4 --verbose python3 -u src/train.py", "tfdp run -np 8 -H a:4,b:4 src/train.py"),
        ("mpirun -np 2 --bind-to none -x LD -mca pml ob1 python train.py", "tfdp run -np 2 -x LD train.py"),
        ("mpirun --hostfile hosts -n 2 python train.py > log 2>&1 &", "tfdp run -np 2 --hostfile hosts train.py"),
        ("horovodrun -np 4 \\\n  -H a:4 \\\n  python train.py 'a b'", "tfdp run -np 4 -H a:4 train.py 'a b'"),
    ],
)
def test_a_line_that_starts_it(line, now, tmp_path):
    (tmp_path / "run.sh").write_text(f"#!/bin/bash\n{line}\n")
    [found] = launch_lines(str(tmp_path / "train.py"), b"")
    assert (found.file, found.line, found.now) == (str(tmp_path / "run.sh"), 2, now)


@pytest.mark.parametrize(
    "line",
    ["python train.py", "horovodrun -np 4 python other.py", "mpirun train.py", "horovodrun -np 4 python 'train.py"],
)
def test_a_line_that_does_not(line, tmp_path):
    (tmp_path / "run.sh").write_text(f"{line}\n# train.py\n")
    assert not list(launch_lines(str(tmp_path / "train.py"), b""))


def test_the_scripts_own_comments():
    [found] = launch_lines("nowhere/train.py", b'"""Usage:\n    horovodrun -np 2 python train.py\n"""\n')
    assert found[1:] == (2, "horovodrun", "tfdp run -np 2 train.py")
