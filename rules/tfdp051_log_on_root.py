"""Print and plot on rank 0 only.

What it does
    Where each worker trains on its share of the records, `print` statements become `dp.report(print, …)`, which
    computes the arguments, and their texts, on every worker and prints once; statements of mere texts get
    `if dp.rank() == 0:`, and neighbouring ones share one. A model's `fit`, `evaluate` and `predict` get their
    `verbose=`.

    Where every worker runs the whole script, every worker prints, logs and draws progress bars, and `tfdp run` shows
    what rank 0 does. What wandb and mlflow are told, they are told by rank 0: there is one run. Calls such as
    `wandb.log(…)`, `run = wandb.init(…)`, `with mlflow.start_run():` around the training or a callback become
    `dp.report(wandb.init, …)`, which gives the other workers something that does nothing.

Why
    N workers print every line N times, and write one plot N times into one file.

Example
    for x, y in dataset:
        print("loss", float(train_step(x, y)))
    # becomes
    for x, y in dataset:
        dp.report(print, "loss", float(train_step(x, y)))

When it refuses
    Where something is read from a run, which rank 0 alone has (`wandb.config.rate`, `run.id`), and where a function of
    wandb or mlflow is not known, such as `wandb.agent`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import libcst as cst

from ..migrate.outputs import EffectKind
from ._base import EVERY_ROAD, Context, Guard, Outcome, Refuse, SetArg, through

ROADS = EVERY_ROAD

_SHOWS = frozenset({EffectKind.PRINT, EffectKind.SHOW})


def outcomes(context: Context) -> Iterator[Outcome]:
    if context.road == "calls":
        yield from _of_runs(context)
        return
    written = context.script.written
    for effect in written.effects:
        if effect.kind in _SHOWS and effect.guard is not None:
            yield Guard(effect.guard, "one worker reports", "report on rank 0 only")
        elif effect.kind in _SHOWS:
            yield through(context, effect.call, "report", "report on rank 0 only")
    for called, place in written.shown:
        in_text = any(isinstance(p, cst.FormattedString) for p in context.script.index.ancestors(called))
        change = _shown(context.dp, "1" if in_text else '"auto"')
        yield SetArg(called, "verbose", change, "show progress on rank 0 only", position=place)


def _of_runs(context: Context) -> Iterator[Outcome]:
    for effect in context.written.effects:
        if effect.kind is EffectKind.READ_RUN:
            yield from _read(context, effect.call)
        elif effect.guard is not None:
            yield Guard(effect.guard, "one worker reports", "track one run, of rank 0")
        elif effect.kind is EffectKind.RUN:
            yield through(context, effect.call, "report", "track one run, of rank 0")


def _read(context: Context, node: cst.BaseExpression) -> Iterator[Refuse]:
    if context.script.ignored("TFDP051", node):
        return
    said = context.script.index.code(node.func if isinstance(node, cst.Call) else node)
    if isinstance(node, cst.Call):
        reason = f"only rank 0 has the tracker's run, and every worker would need what `{said}` returns or starts"
        step = "compute this in the script, or before the job starts (downloads, sweeps), and only log to the run"
    else:
        reason = f"`{said}` is read from the tracker's run, which only rank 0 has"
        step = "keep the value in a variable of the script and give it to the run, or use a statement that only logs"
    yield Refuse(node, reason, step)


def _shown(dp: str, default: str) -> Callable[[cst.BaseExpression | None], cst.BaseExpression]:
    """`default` is Keras' own, or what that means where no quotation mark can stand."""

    def change(value: cst.BaseExpression | None) -> cst.BaseExpression:
        body = value or cst.parse_expression(default)
        return cst.IfExp(test=cst.parse_expression(f"{dp}.rank() == 0"), body=body, orelse=cst.Integer("0"))

    return change
