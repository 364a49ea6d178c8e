"""What each call does outside the process, and what a learning rate is made of: one answer each."""

from __future__ import annotations

import libcst as cst
import pytest

from tfdp.migrate import outputs
from tfdp.migrate.facts import read
from tfdp.migrate.facts.outputs import Writers
from tfdp.migrate.outputs import EffectKind

_IMPORTS = """\
import io, logging, os, pathlib, tarfile
import h5py, matplotlib.pyplot as plt, numpy as np, pyarrow.parquet, tensorflow as tf
from os import mkdir
log, path = logging.getLogger("a"), pathlib.Path("a") / "b"
model, mode = tf.keras.Sequential([]), open("m").read()
figure, opened = plt.figure(), tarfile.open("a")
"""


def last_call(source: str) -> tuple[cst.Call, Writers]:
    script = read(f"{_IMPORTS}{source}\n")
    line = cst.ensure_type(script.program.entry.module.body[-1], cst.SimpleStatementLine)
    call = cst.ensure_type(cst.ensure_type(line.body[0], cst.Expr).value, cst.Call)
    return call, Writers(script.origins)


@pytest.mark.parametrize(
    ("call", "kind"),
    [
        ("print(1)", EffectKind.PRINT),
        ("log.info('a')", EffectKind.PRINT),
        ("log.getChild('b').warning('a')", EffectKind.PRINT),
        ("tf.summary.create_file_writer('a')", EffectKind.EVENTS),
        ("plt.show()", EffectKind.SHOW),
        ("figure.savefig('a.png')", EffectKind.SHOW),
        ("figure.savefig(io.BytesIO())", None),
        ("np.save('a', [1])", EffectKind.SAVE),
        ("np.save(io.BytesIO(), [1])", None),
        ("pyarrow.parquet.write_table(1, 'a.parquet')", EffectKind.SAVE),
        ("pyarrow.parquet.write_table(1, io.BytesIO())", None),
        ("model.save('a')", EffectKind.SAVE),
        ("path.write_text('a')", EffectKind.SAVE),
        ("open('a')", None),
        ("open('a', 'w')", EffectKind.OPEN),
        ("open('a', mode)", EffectKind.OPEN),
        ("path.open('a')", EffectKind.OPEN),
        ("path.open()", None),
        ("h5py.File('a', 'w')", EffectKind.OPEN_FORMAT),
        ("logging.FileHandler('a')", EffectKind.LOG_FILE),
        ("logging.basicConfig()", None),
        ("os.makedirs('a')", EffectKind.FOLDER),
        ("os.makedirs('a', exist_ok=True)", None),
        ("mkdir('a')", None),
        ("path.mkdir(parents=True)", EffectKind.FOLDER_OF_PATH),
        ("tf.keras.datasets.mnist.load_data()", EffectKind.FETCH),
        ("os.system('ls')", EffectKind.ONCE),
        ("opened.extractall('a')", EffectKind.ONCE),
        ("len([1])", None),
    ],
)
def test_what_a_call_does(call: str, kind: EffectKind | None) -> None:
    node, writers = last_call(call)
    assert writers.kind(node) is kind


def test_every_kind_is_that_of_a_function_a_method_or_a_finding() -> None:
    methods = {kind for _, kind in outputs.METHODS.values()}
    found = {EffectKind.EVENTS, EffectKind.RUN, EffectKind.READ_RUN}
    assert {*outputs.FUNCTIONS.values(), *methods, *outputs.PATH_METHODS.values(), *found} == set(EffectKind)
