"""All the files of one command: each is handled whatever became of the others, and all have one exit code."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from . import inputs, one_file
from .inputs import Input, Unusable
from .one_file import MigrateOptions
from .report import text
from .report.outcome import Failure, Verdict, exit_code, failed, summary
from .report.progress import Progress
from .report.streams import give, say

_LINE = re.compile(r"(.+?):([1-9]\d*)(:\d+)?")  # a file, a line in it, and the column that messages give


class SeveralInputs(Exception):  # noqa: N818 - names what was given, for the command to call a usage error
    """One output file cannot hold the results of several inputs."""


def migrate_files(paths: Sequence[str], options: MigrateOptions, verbose: bool = False) -> int:
    """Migrate what the paths lead to, say what became of each file, and return the exit code.

    Raises SeveralInputs, before anything is read, if the options name an output file for more than one input.
    """
    found: Iterable[Input | Unusable] = inputs.expand(paths)
    if options.output is not None:
        found = list(found)
        if len(found) > 1 or any(not isinstance(f, Input) or not f.named for f in found):
            raise SeveralInputs(f"-o {options.output} takes the result of one input; give one file, or leave -o out")
    verdicts, progress = [], Progress()
    for item in found:
        if isinstance(item, Unusable):
            outcome = failed(item.path, item.failure)
        else:
            progress.at(item.path)
            outcome = one_file.migrate_file(item, options, progress.clear)
        verdicts.append(outcome.verdict)
        for line in text.lines(outcome, verbose):
            progress.clear()
            say(line)
    progress.clear()
    say(summary(verdicts))
    return exit_code(verdicts)


def show_facts(path: str, line: int | None = None, verbose: bool = False) -> int:
    """Print what tfdp understands of a file, or of the values on one line, and return the exit code."""
    if line is None and not os.path.exists(path) and (named := _LINE.fullmatch(path)) is not None:
        path, line = named[1], int(named[2])
    facts = one_file.facts(Input(path, named=True), line)
    if isinstance(facts, Failure):
        for said in text.lines(failed(one_file.name_of(path), facts), verbose):
            say(said)
        return Verdict.FAILED.exit_code
    give(facts)
    return 0
