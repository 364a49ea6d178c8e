"""Write checkpoints, exports and files on rank 0 only.

What it does
    Puts `if dp.rank() == 0:` before statements that write: `Checkpoint.save`, `CheckpointManager.save`, `model.save`,
    `save_weights`, `tf.saved_model.save`, `np.save`. Where the call's value is used, `dp.on_root(…)` runs it on rank 0
    and gives its value to all workers. A `dp.barrier()` goes before statements that read files after that.
    `os.makedirs(…)`, `os.mkdir(…)` and `Path.mkdir()` accept that another worker was first.

Why
    Several writers of one file corrupt it. After averaging, all workers hold the same variables, so one copy is enough.

Example
    checkpoint.save(path)
    # becomes
    if dp.rank() == 0:  # tfdp: one worker writes
        checkpoint.save(path)

When it refuses
    Where the value of a writing call is used inside a larger expression, or under a condition that may differ by
    worker.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import libcst as cst

from tfdp.migrate import build
from tfdp.rules._base import Context, Edit, Guard, Insert, Outcome


def outcomes(context: Context) -> Iterator[Outcome]:
    if not context.script.calls("barrier"):
        for statement in context.script.waiting_reads:
            code = f"{context.dp}.barrier()  # tfdp: rank 0 has finished writing"
            yield Insert(statement, "before", code, "read what rank 0 has written only when it has")
    for effect in context.script.effects:
        if effect.kind in {"folder", "path"}:
            change = functools.partial(_exist_ok, makes_parents=effect.kind == "folder")
            yield Edit(effect.call, change, "make the folder unless another worker has")
        if effect.kind != "save":
            continue
        if effect.statement is not None:
            yield Guard(effect.statement, "one worker writes", "write on rank 0 only")
        else:
            yield Edit(effect.call, lambda n: _on_root(context.dp, n), "write on rank 0 only")


def _exist_ok(node: cst.BaseExpression, makes_parents: bool) -> cst.BaseExpression:
    call = cst.ensure_type(node, cst.Call)
    if makes_parents and isinstance(call.func, cst.Attribute):
        call = call.with_changes(func=call.func.with_changes(attr=cst.Name("makedirs")))
    return build.with_argument(call, None, build.keyword("exist_ok", cst.Name("True")))


def _on_root(dp: str, node: cst.BaseExpression) -> cst.BaseExpression:
    call = cst.ensure_type(node, cst.Call)
    separator = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if call.args else cst.MaybeSentinel.DEFAULT
    function = cst.Arg(call.func, comma=separator)
    return call.with_changes(func=cst.parse_expression(f"{dp}.on_root"), args=[function, *call.args])
