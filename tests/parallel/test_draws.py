"""What a script draws before `dp.init`: as in one process where it has seeded, and else the same on all ranks."""

import subprocess
import sys

SEEDED = """
import random
import numpy as np
import tensorflow
random.seed(3)
np.random.seed(4)
before = random.random(), np.random.rand()
{start}
print(before, random.random(), np.random.rand())
"""
START = "import tfdp.runtime as dp\ndp.init()"
HELPER = "import random, numpy as np\nRATE, SPLIT = random.random(), np.random.permutation(9).tolist()\n"
HELPER += "GENERATOR, STATE = np.random.default_rng().random(), np.random.RandomState().rand()\n"
UNSEEDED = """
import helper, random, subprocess, sys
import numpy as np
{start}
child = subprocess.run([sys.executable, "-c", "import random; print(random.random())"], capture_output=True, text=True)
print([helper.RATE, helper.SPLIT, helper.GENERATOR, helper.STATE], [random.random(), np.random.rand()], child.stdout)
"""


def by_rank(output):
    """The lines of each of two ranks, without their marks."""
    lines = output.splitlines()
    return [[line[4:] for line in lines if line.startswith(f"[{rank}] ")] for rank in range(2)]


def test_a_scripts_own_seeds_stay(launch):
    done = launch(2, SEEDED.format(start=START))
    assert done.returncode == 0, done.stderr
    line = [sys.executable, "-c", SEEDED.format(start="")]
    alone = subprocess.run(line, capture_output=True, text=True, check=True).stdout
    assert by_rank(done.stdout) == [alone.splitlines()] * 2


def test_what_is_not_seeded_is_one_number_in_a_job(launch, tmp_path):
    (tmp_path / "helper.py").write_text(HELPER)
    ours, theirs = (
        line.partition("] [")[::2] for [line, *_] in by_rank(launch(2, UNSEEDED.format(start=START)).stdout)
    )
    assert ours[0] == theirs[0]
    ours, theirs = (each[1].split("] ") for each in (ours, theirs))
    assert ours[0] == theirs[0]
    assert ours[1] != theirs[1], "a process that a rank starts draws by itself"


def test_another_launch_draws_otherwise(launch, tmp_path):
    (tmp_path / "helper.py").write_text(HELPER)
    first, second = (by_rank(launch(2, UNSEEDED.format(start=START)).stdout)[0][0] for _ in range(2))
    assert first.partition("] [")[0] != second.partition("] [")[0]


def test_ranks_of_horovods_scripts_draw_apart(launch):
    start = "import tfdp.runtime.horovod.tensorflow as hvd\nhvd.init()"
    draws = "import random\nimport numpy as np\n{}\n{}\n"
    draws += "print(random.random(), np.random.rand(), np.random.default_rng().random())"
    [[ours], [theirs]] = by_rank(launch(2, draws.format("", start), TF_CPP_MIN_LOG_LEVEL="3").stdout)
    assert not set(ours.split()) & set(theirs.split())
    [[ours], [theirs]] = by_rank(launch(2, draws.format("random.seed(1)\nnp.random.seed(1)", start)).stdout)
    assert ours.split()[:2] == theirs.split()[:2]
    assert ours.split()[2] != theirs.split()[2]
