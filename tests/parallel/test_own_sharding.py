"""Scripts under Horovod that shard by themselves, migrated: each example is read once a pass, whatever the form."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfdp.migrate import engine

EXAMPLES = 24
SCRIPT = """\
import json
import os

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

hvd.init()
EXAMPLES = 24
x = np.arange(EXAMPLES)
files = [f"part-{number}.npy" for number in range(6)]


def dataset_shard():
    return [int(each) for each in tf.data.Dataset.from_tensor_slices(x).shard(hvd.size(), hvd.rank())]


def slices():
    return x[hvd.rank() :: hvd.size()].tolist()


def slices_by_parameters(rank=0, size=1):
    return x[rank::size].tolist()


def split_files():
    return np.concatenate([np.load(name) for name in np.array_split(files, hvd.size())[hvd.rank()]]).tolist()


def generator_offsets():
    def rows():
        for number in range(hvd.rank(), EXAMPLES, hvd.size()):
            yield x[number]

    return [int(each) for each in tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec([], tf.int64))]


def channel_by_rank():
    folder = os.environ.get("CHANNELS", ".") + f"/channel_{hvd.rank()}"
    return np.concatenate([np.load(os.path.join(folder, name)) for name in sorted(os.listdir(folder))]).tolist()


def files_by_rank():
    mine = tf.data.Dataset.list_files("part-*.npy", shuffle=False).shard(hvd.size(), hvd.rank())
    return np.concatenate([np.load(name.numpy().decode()) for name in mine]).tolist()


def reader_by_shard():
    class Reader:  # as Petastorm's
        def __init__(self, rows, cur_shard, shard_count):
            self.rows = rows[cur_shard::shard_count]

        def __iter__(self):
            return iter(self.rows)

    return [int(each) for each in Reader(x, cur_shard=hvd.rank(), shard_count=hvd.size())]


forms = [dataset_shard, slices, split_files, generator_offsets, channel_by_rank, files_by_rank, reader_by_shard]
read = {form.__name__: form() for form in forms}
read["slices_by_parameters"] = slices_by_parameters(rank=hvd.rank(), size=hvd.size())
everywhere = hvd.allgather_object(read)
if hvd.rank() == 0:
    with open("read.json", "w") as file:
        json.dump(everywhere, file)
"""


@pytest.mark.long(keeps=1)
@pytest.mark.parametrize("ranks", [2, 3])
def test_each_example_is_read_once_a_pass(ranks: int, tmp_path: Path) -> None:
    import numpy as np

    migrated = engine.migrate("train.py", SCRIPT.encode())
    assert not migrated.refused
    (tmp_path / "train.py").write_bytes(migrated.after)
    for number, part in enumerate(np.split(np.arange(EXAMPLES), 6)):
        np.save(tmp_path / f"part-{number}.npy", part)
        folder = tmp_path / f"channel_{number % ranks}"
        folder.mkdir(exist_ok=True)
        np.save(folder / f"{number}.npy", part)
    done = subprocess.run(
        [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(ranks), "train.py"],
        cwd=tmp_path,
        env={**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    everywhere = json.loads((tmp_path / "read.json").read_text())
    assert len(everywhere) == ranks
    assert len(everywhere[0]) == 8
    for form in everywhere[0]:
        assert sorted(number for read in everywhere for number in read[form]) == list(range(EXAMPLES)), form
