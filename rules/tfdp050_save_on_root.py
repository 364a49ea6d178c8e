"""Write checkpoints, exports and files on rank 0 only.

What it does
    Where every worker runs the whole script, what it writes is rank 0's at run time, and all that is said here is done
    for downloads, and for what packages write by code of their own alone: OpenCV, imageio, soundfile, Parquet and HDF5
    tables. Where each worker trains on its share of the records, it is done for all.

    Puts `if dp.rank() == 0:` before statements that write, move or delete files: `Checkpoint.save`, `model.save`,
    `save_weights`, `tf.saved_model.save`, `np.save`, `plt.imsave`, `shutil.rmtree`, and before a whole
    `with open(path, "w") as file:` in which nothing is needed by the other workers. A file that stays open around
    training is the null device on the other workers: `open(dp.root_path(path), "w")`, log files likewise. Where the
    call's value is used, or an exception handler goes by its failing (`except OSError: missing += 1`), `dp.on_root(…)`
    runs it on rank 0 and gives its value, or exception, to all workers, and so it is with
    `manager.latest_checkpoint` after a save; where its arguments are what every worker must do or
    change (`os.remove(kept.popleft())`, training), they are computed everywhere and `dp.report(os.remove, …)` runs
    the call alone on rank 0. A `dp.barrier()` goes before statements that read files after that, and before one that
    deletes what others may still read. Where a condition asks which files there are and decides what is written
    (`if not os.path.exists("data"):`), the whole `if` is rank 0's, with a barrier after it. Rank 0 makes folders,
    `dp.on_root(os.makedirs, path)`, and all workers hear whether one was there; where not all certainly come together,
    each accepts that another one was first
    (`exist_ok=True`). Functions that download a file unless it is
    there (`mnist.load_data()`, `tfds.load`, `get_file`) run on rank 0 first: `dp.root_first(…)`. Downloads that do not
    look, archives that are unpacked and commands of the shell (`os.system`, `subprocess.run`) are rank 0's alone.

Why
    Several writers of one file corrupt it. After averaging, all workers hold the same variables, so one copy is enough.

Example
    checkpoint.save(path)
    # becomes
    if dp.rank() == 0:  # tfdp: one worker writes
        checkpoint.save(path)

When it refuses
    Where a writing call stands inside a larger expression, or its value is used, or its failing decides something,
    under a condition that may differ by worker; where a file is opened that the null device cannot stand for (HDF5,
    zip, video) and all workers need what is done with it; where it is not certain that a file is only written.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator

import libcst as cst

from ..migrate import build, outputs
from ..migrate.facts.outputs import Effect
from ..migrate.outputs import EffectKind
from ._base import EVERY_ROAD, Context, Edit, Guard, Insert, Outcome

ROADS = EVERY_ROAD

_GUARDED = frozenset({EffectKind.SAVE, EffectKind.OPEN, EffectKind.OPEN_FORMAT, EffectKind.ONCE, EffectKind.FILES})


def outcomes(context: Context) -> Iterator[Outcome]:
    code = f"{context.dp}.barrier()  # tfdp: rank 0 has finished writing"
    if not context.script.calls("barrier"):
        for statement in context.written.waiting_reads:
            yield Insert(statement, "before", code, "read what rank 0 has written only when it has", at_each=True)
        read = f"{context.dp}.barrier()  # tfdp: no worker reads the file any more"
        for statement in context.written.last_reads:
            yield Insert(statement, "before", read, "delete files only when they have been read", at_each=True)
    for effect in context.written.effects:
        yield from _placed(context, effect)
        if effect.kind in {EffectKind.ONCE, EffectKind.FILES} and effect.guard is not None:
            yield Insert(effect.guard, "after", code, "wait until rank 0 has the files")


def _placed(context: Context, effect: Effect) -> Iterator[Outcome]:
    dp = context.dp
    if effect.kind is EffectKind.LATEST:
        yield Edit(effect.call, lambda n: _asked(dp, n), "ask rank 0, which has saved")
        return
    call = effect.call
    if not isinstance(call, cst.Call):
        return  # something of a run, which TFDP051 refuses
    if effect.kind in outputs.FOLDERS and effect.decides:
        yield Edit(call, lambda n: build.first_argument(f"{dp}.on_root", n), "rank 0 makes the folder")
    elif effect.kind in outputs.FOLDERS:
        change = functools.partial(_exist_ok, makes_parents=effect.kind is EffectKind.FOLDER)
        yield Edit(call, change, "make the folder unless another worker has")
    elif effect.kind is EffectKind.FETCH:
        yield Edit(call, lambda n: build.first_argument(f"{dp}.root_first", n), "rank 0 downloads first")
    elif effect.kind is EffectKind.LOG_FILE:
        index = _path_index(context, call)
        yield Edit(call.args[index].value, lambda n: build.call(f"{dp}.root_path", n), "write the log on rank 0 only")
    elif effect.kind in _GUARDED:
        if effect.guard is not None and effect.shared:
            yield Edit(call, lambda n: build.first_argument(f"{dp}.report", n), "write on rank 0 only")
        elif effect.guard is not None:
            yield Guard(effect.guard, "one worker writes", "write on rank 0 only")
        elif effect.kind is EffectKind.OPEN:
            yield Edit(call, lambda n: _opened(dp, n, context.script.names.api(call.func)), "write on rank 0 only")
        elif effect.kind in {EffectKind.SAVE, EffectKind.ONCE}:
            yield Edit(call, lambda n: build.first_argument(f"{dp}.on_root", n), "write on rank 0 only")


def _path_index(context: Context, call: cst.Call) -> int:
    keyword, position = outputs.LOG_FILES[context.script.names.api(call.func) or ""]
    named = [i for i, a in enumerate(call.args) if a.keyword is not None and a.keyword.value == keyword]
    return named[0] if named or position is None else position


def _exist_ok(node: cst.BaseExpression, makes_parents: bool) -> cst.BaseExpression:
    call = cst.ensure_type(node, cst.Call)
    if makes_parents and isinstance(call.func, cst.Attribute):
        call = call.with_changes(func=call.func.with_changes(attr=cst.Name("makedirs")))
    return build.with_argument(call, None, build.keyword("exist_ok", cst.Name("True")))


def _opened(dp: str, node: cst.BaseExpression, api: str | None) -> cst.BaseExpression:
    """`open(dp.root_path(path), "w")`, also for `path.open("w")` of a pathlib.Path."""
    call = cst.ensure_type(node, cst.Call)
    if api is not None:
        first = call.args[0].with_changes(value=build.call(f"{dp}.root_path", call.args[0].value))
        return call.with_changes(args=[first, *call.args[1:]])
    path = build.call(f"{dp}.root_path", cst.ensure_type(call.func, cst.Attribute).value)
    comma = cst.Comma(whitespace_after=cst.SimpleWhitespace(" ")) if call.args else cst.MaybeSentinel.DEFAULT
    return call.with_changes(func=cst.Name("open"), args=[cst.Arg(path, comma=comma), *call.args])


def _asked(dp: str, node: cst.BaseExpression) -> cst.BaseExpression:
    return cst.Call(cst.parse_expression(f"{dp}.on_root"), [cst.Arg(cst.Lambda(cst.Parameters(), node))])
