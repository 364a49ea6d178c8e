"""One file from its bytes to its outcome. Whatever goes wrong with it becomes part of the outcome."""

from __future__ import annotations

import errno
import os
import stat
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal, TypeVar

from . import files, originals
from .inputs import STDIN, Input, NotAScript, no_script
from .launch_lines import launch_lines
from .report import diff, github, markdown, streams
from .report.outcome import Failure, Outcome, Road, Verdict, failed

if TYPE_CHECKING:
    from ..rules._base import Policy
    from .engine import Migration

T = TypeVar("T")


@dataclass(frozen=True)
class MigrateOptions:
    """What to do with each file.

    output: a file's path, `-` for stdout, or None for in place (stdin: stdout). backup: keep the original beside it.
    target: what is written: a script for `tfdp`, the one-worker form of one that another system distributes, or one for
        Horovod.
    """

    policy: Policy
    show_diff: bool = False
    check_only: bool = False
    output: str | None = None
    partial: bool = False
    style: Literal["text", "markdown", "github"] = "text"
    backup: bool = False
    target: Literal["tfdp", "single", "horovod"] = "tfdp"

    @property
    def writes(self) -> bool:
        return not (self.show_diff or self.check_only)


def migrate_file(item: Input, options: MigrateOptions, before_output: Callable[[], None] = lambda: None) -> Outcome:
    """Migrate one file and write or show the result. Raises nothing but BrokenPipeError and KeyboardInterrupt.

    `before_output` is called before anything is written to stdout.
    """
    name = name_of(item.path)
    outcome = attempt(item.path, lambda: _migrate(item, name, options))
    if isinstance(outcome, Failure):
        outcome = failed(name, outcome)
    shown = _shown(outcome, options)
    if shown:
        before_output()
        problem = attempt(item.path, lambda: streams.give(shown))
        return failed(name, problem) if isinstance(problem, Failure) else outcome
    return outcome


def _shown(outcome: Outcome, options: MigrateOptions) -> bytes:
    """The diff, or the preview, of a file that is only looked at."""
    if options.style == "markdown":
        return markdown.render(outcome)
    if options.style == "github":
        return github.render(outcome)
    return diff.painted(outcome.diff) if streams.coloured(sys.stdout) else outcome.diff


def facts(item: Input, line: int | None = None) -> str | Failure:
    """What tfdp understands of one file, or of the values on one of its lines."""
    return attempt(item.path, lambda: _facts(item, line))


def name_of(path: str) -> str:
    """The path as messages name it."""
    return "<stdin>" if path == STDIN else path


def attempt(path: str, action: Callable[[], T]) -> T | Failure:
    """The result of an action about a file, or what went wrong, in words."""
    try:
        return action()
    except files.UnreadableSource as error:
        return Failure(error.reason, error.line, error.column)
    except NotAScript as error:
        return Failure(str(error), named=True)
    except BrokenPipeError:
        raise
    except OSError as error:
        return Failure(_os_reason(error, path))
    except RecursionError:
        reason = "tfdp comes to no end in following the values of this file; the file is unchanged. Please report this"
        return Failure(f"{reason} with the traceback that `-v` shows", trace=traceback.format_exc())
    except Exception as error:
        reason = f"internal error: {type(error).__name__}: {error}; the file is unchanged. Please report this with the"
        return Failure(f"{reason} traceback that `-v` shows", trace=traceback.format_exc())


def _os_reason(error: OSError, path: str) -> str:
    reason = error.strerror or str(error)
    return reason if error.filename in (None, path) else f"{reason}: {error.filename}"


def _migrate(item: Input, name: str, options: MigrateOptions) -> Outcome:
    from . import engine

    before = _read(item.path)
    if item.named:
        # Nobody asks for a file by name that is no Python source: say so, where a walk passes over it.
        files.decode(name, before)
    if options.target == "single":
        migration = engine.single(name, before)
    elif options.target == "horovod":
        migration = engine.horovod(name, before)
    else:
        is_run = item.named and not options.check_only  # pre-commit names every file
        migration = engine.migrate(name, before, options.policy, options.partial, is_run)
    partly = options.partial and (migration.changed or b"TODO(tfdp)" in before)
    if migration.refused and not partly:
        return _outcome(migration, Verdict.REFUSED)
    if options.writes:
        return _write(item, migration, options)
    verdict = Verdict.WOULD_CHANGE if migration.changed else _unchanged(migration)
    verdict = Verdict.REFUSED if migration.refused else verdict
    change = diff.unified(item.path, before, migration.after) if options.show_diff else b""
    return replace(_outcome(migration, verdict), diff=change)


def _outcome(migration: Migration, verdict: Verdict) -> Outcome:
    """What became of the file, by the road that was taken."""
    road = Road(migration.road or "", migration.batch == "per-worker", migration.unseen)
    moves = verdict in (Verdict.CHANGED, Verdict.WOULD_CHANGE) and migration.road == "names"
    launches = tuple(launch_lines(migration.path, migration.before)) if moves else ()
    return Outcome(migration.path, verdict, migration.findings, road=road, launches=launches)


def _unchanged(migration: Migration) -> Verdict:
    if not migration.trains:
        return Verdict.NO_TRAINING
    return Verdict.ALREADY if originals.imports_runtime(migration.before) else Verdict.UNCHANGED


def _write(item: Input, migration: Migration, options: MigrateOptions) -> Outcome:
    verdict = Verdict.CHANGED if migration.changed else _unchanged(migration)
    verdict = Verdict.PARTIAL if migration.refused else verdict
    destination = options.output if options.output is not None else item.path
    written_to = kept_in = ""
    if destination == STDIN:
        streams.give(migration.after)
    elif item.path != STDIN and os.path.realpath(destination) == os.path.realpath(item.path):
        if migration.changed:
            kept_in = _replace(item.path, migration, backup=options.backup)
    else:
        mode = None if item.path == STDIN else stat.S_IMODE(os.stat(item.path).st_mode)
        files.write_atomic(destination, migration.after, mode)
        written_to = destination
    return replace(_outcome(migration, verdict), written_to=written_to, kept_in=kept_in)


def _replace(path: str, migration: Migration, *, backup: bool) -> str:
    """Write the file, and return where its original is kept; empty: nowhere."""
    if _read(path) != migration.before:
        raise OSError(errno.EBUSY, "the file was changed by someone else in the meantime and is left alone; run again")
    kept_in = originals.keep(path, migration.before, stat.S_IMODE(os.stat(path).st_mode)) if backup else ""
    files.write_atomic(path, migration.after)
    return kept_in


def _facts(item: Input, line: int | None) -> str:
    from . import engine, nesting
    from .facts import describe, provenance

    name = name_of(item.path)
    script = engine.parse(name, files.decode(name, _read(item.path)).source)
    with nesting.room(name, script):
        return describe(script) if line is None else provenance(script, line)


def _read(path: str) -> bytes:
    if path == STDIN:
        if sys.stdin is None:
            raise OSError(errno.EBADF, "standard input is closed")
        return sys.stdin.buffer.read()
    if reason := no_script(path):
        raise NotAScript(reason)
    kind = os.stat(path).st_mode
    if not stat.S_ISREG(kind):
        raise OSError(errno.EINVAL, "not a regular file; use - to read standard input")
    with open(path, "rb") as file:
        return file.read()
