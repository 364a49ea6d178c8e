"""Write checkpoints, exports and files on rank 0 only.

What it does
    Where each worker trains on its share of the records, `if dp.rank() == 0:` goes before statements that write files:
    `Checkpoint.save`, `model.save`, `save_weights`; where something happens in what they are given, as training, they
    become `dp.report(model.save, …)`, which computes that on every worker. Folders are made unless they are there
    (`exist_ok=True`).

    Where every worker runs the whole script, what it writes is rank 0's at run time, and all its lines stay, but for
    what packages write or show by code of their own: OpenCV, imageio, soundfile, pyarrow, Parquet and HDF5 tables, the
    windows of matplotlib. `dp.on_root(cv2.imwrite, …)` runs them on rank 0, and gives their value, or exception, to all
    workers when they are done; what stays open becomes `dp.report(cv2.VideoWriter, …)`, which gives the others
    something that does nothing.

    On both, functions that download a file unless it is there (`mnist.load_data()`, `tfds.load`, `get_file`) run on
    rank 0 first: `dp.root_first(…)`.

Why
    Several writers of one file corrupt it. After averaging, all workers hold the same variables, so one copy is enough.

Example
    checkpoint.save(path)
    # becomes
    if dp.rank() == 0:  # tfdp: one worker writes
        checkpoint.save(path)

When it refuses
    Never.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from ..migrate import build, outputs
from ..migrate.facts.outputs import Effect
from ..migrate.outputs import EffectKind
from ._base import EVERY_ROAD, Context, Edit, Guard, Outcome, through

ROADS = EVERY_ROAD

_WRITES = frozenset({EffectKind.SAVE, EffectKind.OPEN, EffectKind.OPEN_FORMAT})
_ALONE = "write on rank 0 only"


def outcomes(context: Context) -> Iterator[Outcome]:
    for effect in context.written.effects:
        if effect.kind is EffectKind.FETCH:
            yield through(context, effect.call, "root_first", "rank 0 downloads first")
        elif context.road == "calls":
            yield from _by_itself(context, effect)
        elif effect.kind in outputs.FOLDERS:
            yield Edit(cst.ensure_type(effect.call, cst.Call), _exist_ok, "make the folder unless another worker has")
        elif effect.kind in _WRITES and effect.guard is not None:
            yield Guard(effect.guard, "one worker writes", _ALONE)
        elif effect.kind in _WRITES:
            yield through(context, effect.call, "report", _ALONE)


def _by_itself(context: Context, effect: Effect) -> Iterator[Outcome]:
    """What the runtime does not see."""
    if effect.kind is EffectKind.SHOW:
        yield through(context, effect.call, "on_root", "show on rank 0 only")
    elif effect.kind in _WRITES:
        stays_open = effect.kind is EffectKind.OPEN_FORMAT
        yield through(context, effect.call, "report" if stays_open else "on_root", _ALONE)


def _exist_ok(node: cst.BaseExpression) -> cst.BaseExpression:
    return build.with_argument(cst.ensure_type(node, cst.Call), None, build.keyword("exist_ok", cst.Name("True")))
