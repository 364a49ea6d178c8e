"""What a rank starts is a child of it: it knows the rank's number, and never joins in its place."""

import ast
import subprocess
import sys

from tfdp.migrate import engine

LAUNCH = [sys.executable, "-m", "tfdp.runtime.launch", "-np", "2"]
CHILDREN = """
import multiprocessing, os, subprocess, sys
import tfdp.runtime as dp

def ask(_):
    said = []
    for call in (lambda: dp.init(same_start=False), lambda: dp.on_root(print)):
        try:
            call()
        except dp.TfdpError as error:
            said.append(str(error))
    return (dp.rank(), dp.size(), dp.shuffle_seed(7), dp.rank_seed(7) == 7, *said)

if __name__ == "__main__":
    dp.init(same_start=False)
    for method in ("fork", "spawn", "forkserver"):
        with multiprocessing.get_context(method).Pool(1) as pool:
            print([method, *pool.apply(ask, [0])])
    code = "import tfdp.runtime as dp; dp.init()"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stderr
    print(["subprocess", dp.rank(), said.splitlines()[-1]])
"""


def test_a_child_knows_its_rank_and_cannot_join(launch):
    done = launch(2, CHILDREN)
    assert done.returncode == 0, done.stderr
    said = [ast.literal_eval(line.partition("] ")[2]) for line in done.stdout.splitlines()]
    for rank in (0, 1):
        own = {method: rest for method, number, *rest in said if number == rank}
        assert sorted(own) == ["fork", "forkserver", "spawn", "subprocess"]
        error = f"this process is a child of rank {rank}"
        assert f"{error}; only the rank itself joins the job: remove" in own.pop("subprocess")[0]
        for size, seed, first, joining, meeting in own.values():
            assert (size, seed, first) == (2, 7, rank == 0)
            assert f"{error} (multiprocessing); only the rank itself joins the job: call dp.init() in the" in joining
            assert "works only in the rank's own process" in meeting


AT_IMPORT = """
import multiprocessing
import tfdp.runtime as dp
dp.init(same_start=False)
if __name__ == "__main__":
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        print(pool.map(abs, [1, 2]))
"""


def test_a_pool_whose_processes_import_the_start_ends_the_job(launch):
    done = launch(2, AT_IMPORT)
    assert done.returncode != 0
    told = "(multiprocessing); only the rank itself joins the job: move dp.init(), and all that needs it, under `if"
    assert told in done.stderr


SHELL = """
mkfifo joined$TFDP_RANK told$TFDP_RANK
"$1" script.py "$TFDP_RANK" &
read -r _ < joined$TFDP_RANK
"$1" script.py 2>&1 | tail -n 1
echo > told$TFDP_RANK
wait $!
"""
IN_A_SHELL = """
import sys
import tfdp.runtime as dp
dp.init(same_start=False)
for rank in sys.argv[1:]:
    with open(f"joined{rank}", "w") as file:
        file.write("joined\\n")
    open(f"told{rank}").read()
    print("the first is rank", dp.on_root(dp.rank), dp.rank())
"""


def test_a_shell_starts_the_rank_and_a_second_process_is_refused(tmp_path):
    (tmp_path / "script.py").write_text(IN_A_SHELL)
    (tmp_path / "train.sh").write_text(SHELL)
    command = [*LAUNCH, "bash", "train.sh", sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    for rank in (0, 1):
        own = [line.partition("] ")[2] for line in done.stdout.splitlines() if line.startswith(f"[{rank}]")]
        assert f"another process is rank {rank} already" in own[0]
        assert own[1:] == [f"the first is rank 0 {rank}"]


WITH_A_POOL = """
import argparse
import multiprocessing
import numpy as np

def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=4)
    return parser.parse_args()

args = arguments()

def prepare(number):
    return np.full([args.rows, 2], number, "float32")

def main():
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        x = np.concatenate(pool.map(prepare, range(4)))

    import tensorflow as tf

    data = tf.data.Dataset.from_tensor_slices((x, x[:, :1])).batch(4)
    model = tf.keras.Sequential([tf.keras.layers.Dense(1)])
    optimizer = tf.keras.optimizers.SGD(0.1)
    for a, b in data:
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(tf.square(b - model(a)))
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    print("trained on", len(x), int(optimizer.iterations))

if __name__ == "__main__":
    main()
"""


def test_a_migrated_script_with_a_pool_that_spawns_trains(launch):
    migrated = engine.migrate("train.py", WITH_A_POOL.encode())
    assert not migrated.refused, migrated.findings
    done = launch(2, migrated.after.decode(), options=("-v",))
    assert done.returncode == 0, done.stderr
    assert sorted(done.stdout.splitlines()) == ["[0] trained on 16 4", "[1] trained on 16 4"]
