"""Print and plot on rank 0 only.

What it does
    Puts `if dp.rank() == 0:` before `print` and `tf.print` statements in training loops and before
    `plt.savefig`/`plt.show`. Neighbouring statements share one `if`. A `tf.summary.create_file_writer(…)` becomes a
    writer that writes nothing on the other ranks, and `tqdm(…)` gets `disable=dp.rank() != 0`.

Why
    N workers print every line N times, and write one plot N times into one file.

Example
    for x, y in dataset:
        print("loss", float(train_step(x, y)))
    # becomes
    for x, y in dataset:
        loss = train_step(x, y)
        if dp.rank() == 0:  # tfdp: one worker reports
            print("loss", float(loss))

When it refuses
    Where `create_file_writer` is imported by itself. A print whose arguments take the training step or data stays as it
    is: every worker must do that.
"""

from __future__ import annotations

from collections.abc import Iterator

import libcst as cst

from tfdp.rules._base import Context, Edit, Guard, Outcome, SetArg


def outcomes(context: Context) -> Iterator[Outcome]:
    for effect in context.script.effects:
        if effect.kind in {"print", "show"} and effect.statement is not None:
            yield Guard(effect.statement, "one worker reports", "report on rank 0 only")
        elif effect.kind == "progress":
            yield SetArg(effect.call, "disable", lambda _: _elsewhere(context.dp), "show progress on rank 0 only")
        elif effect.kind == "events":
            yield Edit(effect.call, lambda n: _silent_elsewhere(context.dp, n), "write summaries on rank 0 only")


def _elsewhere(dp: str) -> cst.BaseExpression:
    return cst.parse_expression(f"{dp}.rank() != 0")


def _silent_elsewhere(dp: str, node: cst.BaseExpression) -> cst.BaseExpression:
    call = cst.ensure_type(node, cst.Call)
    function = cst.ensure_type(call.func, cst.Attribute)
    silent = cst.Call(function.with_changes(attr=cst.Name("create_noop_writer")))
    chosen = cst.IfExp(test=cst.parse_expression(f"{dp}.rank() == 0"), body=call, orelse=silent)
    return chosen.with_changes(lpar=[cst.LeftParen()], rpar=[cst.RightParen()])
