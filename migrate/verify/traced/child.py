"""The process that `runs` starts: run a script with everything it does to its variables recorded.

The script is compiled from the text in the spec under its own path, so that one file on disk serves as reference, as
migrated script and as any variation of it.
"""

import functools
import importlib.util
import io
import json
import linecache
import os
import random
import sys
import threading
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import numpy as np
import tensorflow as tf

from ....runtime.clusters import local
from ....runtime.job import mix
from ..record import (
    DIVERGED,
    FEWEST,
    LOCALLY_NORMALIZED,
    TRACER_FAILED,
    TRACER_LOG,
    WHOLE,
    Division,
    Header,
    Part,
    Spec,
    Trace,
    mark_effects,
    protect,
    read_examples,
    real_path,
    scratch_place,
    write_coverage,
    write_crash,
    write_division,
)
from . import float64 as _float64
from . import keras as _keras
from . import plain, xla
from .crashes import crash
from .data import RecordOrder, Seeds
from .draws import Draws
from .effects import Watch
from .examples import Examples
from .frames import Lines
from .layers import Layers
from .life import Life
from .notes import Notes
from .optimizers import Settings
from .passes import Fitting, WatchedPasses
from .permuted import Permuted
from .pipeline import Pipeline
from .recorder import Recorder
from .tapes import COMBINED, SHARES, WEIGHT, Tapes
from .variables import Registry

T = TypeVar("T")


class Session:
    """One recorded run of a script in this process."""

    def __init__(self, spec: Spec) -> None:
        self.spec = spec
        self.rank = int(os.environ[local.RANK]) if spec.migrated or spec.names else 0
        self.trace = Trace(Path(spec.out) / f"rank{self.rank}")
        self.trace.folder.mkdir(parents=True, exist_ok=True)
        reference = Trace(Path(spec.trace_of_reference(self.rank))) if spec.reference else None
        forced = reference.start() if reference and self.rank == 0 and not spec.as_in_life else {}
        scatter = None if spec.as_in_life else self.rank or None
        self.registry = Registry(forced, scatter=scatter, wide=spec.float64)
        self.lines = Lines(spec.path)
        self.changed = Notes()
        self.seeds = Seeds(spec.seed, self.rank, self._changed)
        header = reference.header() if reference and spec.migrated else None
        self.notes = Notes()
        self.order = RecordOrder(
            self.seeds, self.rank, header, self.notes, None if spec.keep_randomness else self._changed
        )
        self.examples = Examples(self.trace.folder, self.guard)
        self.recorder = Recorder(self.registry, self.trace, spec.steps, self.stop, reference)
        self.recorder.free = spec.float64
        self.passes = WatchedPasses(self.recorder.moment)
        self.recorder.entered, self.recorder.taken = self.examples.entered, self._taken
        self.passes.found.short = spec.short
        self.passes.found.shortens = spec.fitting and not spec.keep_randomness and not spec.names
        if spec.fitting:
            stop = functools.partial(self.stop, "complete")
            fitting = Fitting(self.trace.folder, self.passes.found, None if spec.names else stop)
            self.recorder.enough = functools.partial(self._agreed, fitting) if spec.names else fitting.enough
        tree = Path(spec.root)
        roots = tree, Path("/", Path(spec.scratch).relative_to(tree)), Path(spec.path).parent
        self.effects = Watch(self.trace.folder, roots, self.lines, lambda: self.recorder.index, self.guard)
        place = (self.rank, int(os.environ[local.SIZE]) if spec.migrated else 1) if reference else None
        folder = reference.folder if reference else self.trace.folder
        self.layers = Layers(self.lines, self.changed)
        self.optimizers = Settings(self.trace.folder)
        self.draws = Draws(Path(spec.path), folder, place, self.recorder.moment, self._drawing)
        self.permuted = Permuted(read_examples(reference.folder)) if reference and spec.permuted else None
        self.tapes = Tapes(self.recorder, self.registry, self.guard, self.notes)
        self._idle = ""  # why the job ended, where nothing could be divided
        self.life = Life(self.layers, lambda: self.tapes.is_open and not self.registry.creates)

    def install(self) -> None:
        """Put all instruments in place: before anything of the script, or of the runtime, is imported."""
        # Rounding of products to ten bits of mantissa would drown what is compared.
        tf.config.experimental.enable_tensor_float_32_execution(False)
        # It has been seen to drop the record of a critic's gradients from a graph: from the reference's alone.
        tf.config.optimizer.set_experimental_options({"dependency_optimization": False})
        if self.spec.float64:
            _float64.install()
        self.lines.install()
        xla.leave_out(self._changed)
        if not self.spec.as_in_life:
            self.seeds.install()
        self.registry.install()
        if not self.spec.as_in_life:
            self.order.install()
        self.layers.watch()
        self.optimizers.install()
        if self.spec.calls:
            _keras.change_fits(self.passes.shorten)
        elif not self.spec.names and not self.spec.keep_randomness:
            Pipeline(self._changed).install()  # before what exchanges draws, which is not done while data are made
            self.draws.install()
            self.layers.install()
            _keras.keep_order(self.notes, self.passes.shorten)
        self.examples.install()
        self.passes.install()
        self.effects.install()
        self.tapes.install()
        _keras.update_after_gradients()
        if self.permuted:
            self.permuted.install()
            self.draws.taken = self.permuted.draw
        if self.spec.calls:
            self._share_calls()
        elif self.spec.names:
            self._keep_names()
        elif self.spec.migrated:
            os.environ[local.SEED] = str(self.spec.seed % 2**32)
            _replace("shard", self.order.sharding)
            _replace("shard_batches", self.order.sharding_batches)
            _replace("shuffle_seed", self.order.agreed)
            _replace("common_seed", self.seeds.sharing)
            _replace("local_rows", self.notes.rows)
            _replace("scale_lr", self.notes.rates)
            _replace("scale_optimizer", self.notes.rates)
            self.passes.watch_sharded_batches()
            self.examples.watch_sharded_batches()
            self._watch_tape()
            _keras.Optimizers(self.recorder, self.registry, self.guard).install()

    def _share_calls(self) -> None:
        """Of sharded calls nothing is changed; one process draws by the entropy that all workers have."""
        seed = self.spec.seed % 2**32
        if self.spec.migrated:
            os.environ[local.SEED] = str(seed)
            _replace("init", self._watching_averages)
            random.seed(seed)  # as the launcher sees to it in life
            np.random.seed(seed)
            return
        self.life.install()
        # Not at the top: all instruments are in place before anything of the runtime is imported.
        from ....runtime.calls import draw_by

        draw_by(seed)

    def _keep_names(self) -> None:
        """Of a script with another system's names nothing is changed; it draws by its rank's entropy in both runs."""
        seed = mix(self.spec.seed, self.rank) % 2**32
        os.environ[local.SEED] = str(self.spec.seed % 2**32)
        from ....runtime.calls import draw_by

        draw_by(seed)
        plain.name_modules()  # in the migrated run, too: files beside the script are migrated with it
        if not self.spec.migrated:
            plain.install()
        self._watch_tape()
        _keras.Optimizers(self.recorder, self.registry, self.guard).install()

    def _agreed(self, fitting: Fitting, done: int) -> bool:
        """Whether to stop after `done` updates, which rank 0 decides: all ranks of a reference stop at the same one."""
        if done < FEWEST:
            return False
        from ....runtime.job import current

        store, key = current().store, f"verify: enough at {done}"
        if self.rank:
            return store.fetch(key, publisher=0) == b"yes"
        enough = fitting.enough(done)
        store.publish(key, b"yes" if enough else b"no")
        return enough

    def _watching_averages(self, init: Callable[..., Any]) -> Callable[..., Any]:
        """`dp.init`, after which a tape gives the mean over the workers: that is recorded, and not a worker's own."""

        def joined(*args: Any, **options: Any) -> None:
            before = tf.GradientTape.gradient
            if options.pop("batch_norm", "global") == "local":
                self.notes.add(LOCALLY_NORMALIZED, self.lines.here())
            init(*args, **options)
            if tf.GradientTape.gradient is not before:
                from ....runtime.calls import is_looking

                self.tapes.apart = is_looking
                self.tapes.watch(tf.GradientTape, WHOLE)

        return joined

    def _taken(self) -> None:
        self.examples.taken()
        self.passes.taken()

    def _changed(self, what: str) -> None:
        self.changed.add(what, self.lines.here())

    def _drawing(self, what: str) -> Callable[[], None]:
        return functools.partial(self.changed.add, what, self.layers.here())

    def run(self) -> None:
        """Run the script, then write what is open and the header. Its exceptions pass through."""
        try:
            _run_as_main(self.spec)
        except SystemExit as reason:
            if reason.code not in (None, 0):
                self._crashed(reason)
                self.end("crashed")
            else:
                self.end("ended")
            raise
        except BaseException as error:
            self._crashed(error)
            self.end("crashed")
            raise
        self.end("ended")

    def _crashed(self, error: BaseException) -> None:
        spec = self.spec
        if spec.calls and spec.migrated:
            self._idle = _why_idle(error)
        self.guard(lambda: write_crash(self.trace.folder, crash(error, spec.path, spec.root, self.lines)))

    def stop(self, outcome: str) -> NoReturn:
        """End the process, from whatever loop or callback it is in."""
        self.guard(lambda: self._write_coverage(whole=False))
        self._write_header(outcome)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(DIVERGED if outcome == "diverged" else 0)

    def end(self, outcome: str) -> None:
        """The script is over."""
        self.guard(self.recorder.finish)
        self.guard(lambda: self._write_coverage(whole=outcome == "ended"))
        self._write_header("complete" if self.recorder.index >= self.spec.compared else outcome)

    def guard(self, callback: Callable[[], T]) -> T:
        """The result of a callback of ours: its failure is not the script's."""
        try:
            return callback()
        except BaseException:
            text = traceback.format_exc()
            (Path(self.spec.out) / TRACER_LOG).write_text(text, "utf-8")
            sys.stderr.write(text)
            sys.stderr.flush()
            os._exit(TRACER_FAILED)

    def _write_coverage(self, *, whole: bool) -> None:
        write_coverage(self.trace.folder, self.passes.found.coverage(self.recorder.index, whole=whole))

    def _write_header(self, outcome: str) -> None:
        self.guard(self.optimizers.write)
        if self.spec.calls and self.spec.migrated:
            self.guard(self._write_division)
        if not self.spec.reference:
            self.trace.write_start(self.recorder.start())
        given = tuple(self.seeds.given), tuple(self.order.given), tuple(self.order.sources), self.changed.all
        noted = self.notes.all, self.life.found.all
        self.trace.write_header(Header(outcome, self.registry.names(), self.layers.compute, *given, *noted))

    def _write_division(self) -> None:
        from ....runtime import calls

        parts = tuple(Part(line.name, line.reason, line.row_bytes) for line in calls.report())
        write_division(self.trace.folder, Division(parts, self._idle, calls.are_single_rows()))

    def _watch_tape(self) -> None:
        tape = _runtime("DistributedGradientTape")
        start = tape.__init__

        def __init__(this: Any, *args: Any, **options: Any) -> None:  # noqa: N807
            start(this, *args, **options)
            setattr(this, WEIGHT, options.get("batch_size"))
            summed = options.get("op") is _runtime("Sum")
            setattr(this, SHARES, _runtime("size")() if summed else 1)
            weighted = "mean" if options.get("batch_size") is None else "weighted"
            setattr(this, COMBINED, "sum" if summed else weighted)

        tape.__init__ = tf.autograph.experimental.do_not_convert(__init__)
        self.tapes.watch(tape)


def _why_idle(error: BaseException) -> str:
    """The runtime's word for a job of sharded calls in which nothing is divided; empty for other errors."""
    from ....runtime.calls import NOTHING

    _, found, reasons = str(error).partition(NOTHING)
    return found + reasons.partition("\n")[0]


def _runtime(name: str) -> Any:
    return getattr(importlib.import_module("tfdp.runtime"), name)


def _replace(name: str, change: Callable[[Callable[..., Any]], Callable[..., Any]]) -> None:
    """Exchange a function of the runtime, in the package and in the module it comes from."""
    original = _runtime(name)
    changed = change(original)
    setattr(sys.modules[original.__module__], name, changed)
    setattr(sys.modules["tfdp.runtime"], name, changed)


def _run_as_main(spec: Spec) -> None:
    path, source = Path(spec.path), Path(spec.source).read_bytes()
    # What a script finds and writes by its own place is what the tree shows of it. Its lines have the real name.
    shown = scratch_place(Path(spec.root), real_path(spec.path))
    _show_lines(str(path), io.StringIO(importlib.util.decode_source(source)).readlines())
    code = compile(source, str(path), "exec", dont_inherit=True)
    main = types.ModuleType("__main__")
    main.__dict__.update({"__file__": str(shown), "__builtins__": __builtins__, "__cached__": None})
    sys.modules["__main__"] = main
    sys.argv = [str(shown), *spec.args]
    sys.path.insert(0, str(shown.parent))
    exec(code, main.__dict__)


def _show_lines(path: str, lines: list[str]) -> None:
    """Make `lines` the lines of `path`: for tracebacks, and for AutoGraph, which compiles functions from source."""
    update = linecache.updatecache

    def updatecache(filename: str, module_globals: dict[str, Any] | None = None) -> list[str]:
        return lines if filename == path else update(filename, module_globals)

    # Without a time stamp the entry outlives checks against the disk; AutoGraph has it read again nevertheless.
    linecache.cache[path] = (0, None, lines, path)
    linecache.updatecache = updatecache


def main() -> None:
    """Read the spec named on the command line and run."""
    spec = Spec(**json.loads(Path(sys.argv[1]).read_text("utf-8")))
    session = Session(spec)
    mark_effects(session.rank)
    os.chdir(spec.scratch)
    protect(Path(spec.root))
    session.install()
    session.run()
    # A thread of the script's own that never ends would keep the process; all that is asked for is known.
    lasting = [one for one in threading.enumerate() if not one.daemon and one is not threading.main_thread()]
    if lasting and session.recorder.index >= spec.compared:
        if spec.migrated:
            _runtime("shutdown")()
        session.stop("complete")
