"""Lines that start a script by another system's launcher, beside it and in its own text, and what to type instead."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

_BESIDE = ("*.sh", "*.bash", "*.sbatch", "*.slurm", "*.job", "*.md", "Makefile")
_MOST_BYTES = 2**20
_STARTS = re.compile(r"\b(?P<launcher>horovodrun|mpirun|mpiexec)\b(?P<options>.*?)\bpython[\d.]*\s+(?P<rest>.*)")
_NUMBER = ("-np", "-n", "--num-proc", "--np")
_HOSTS = ("-H", "--hosts", "-host", "--host")
_FILE = ("-hostfile", "--hostfile", "--host-file", "-machinefile")
_FORWARDED = ("-x",)


class LaunchLine(NamedTuple):
    """A line of a file that starts the script, and the command for it now."""

    file: str
    line: int
    launcher: str
    now: str


def launch_lines(path: str, source: bytes) -> Iterator[LaunchLine]:
    """Those in the script itself, as in its comments, and in shell scripts and the like in its folder."""
    script = Path(path)
    yield from _lines_of(path, source, script.name)
    try:
        beside = sorted({file for pattern in _BESIDE for file in script.parent.glob(pattern) if file.is_file()})
        for file in beside:
            if file.stat().st_size <= _MOST_BYTES:
                yield from _lines_of(str(file), file.read_bytes(), script.name)
    except OSError:
        return  # what cannot be read is nothing that we could say anything about


def _lines_of(file: str, data: bytes, script: str) -> Iterator[LaunchLine]:
    text = data.decode("utf-8", "replace")
    if script not in text:
        return
    lines = text.splitlines()
    for number, first in enumerate(lines, 1):
        whole, at = first, number
        while whole.rstrip().endswith("\\") and at < len(lines):
            whole, at = f"{whole.rstrip()[:-1]} {lines[at]}", at + 1
        found = _STARTS.search(whole)
        begins = found is not None and found.start() < len(first.rstrip("\\"))  # and not on a line that follows
        if found is not None and begins and (now := _now(found["options"], found["rest"], script)):
            yield LaunchLine(file, number, found["launcher"], now)


def _now(options: str, rest: str, script: str) -> str:
    """The command for it, empty where it starts something else or cannot be read."""
    try:
        given, words = shlex.split(options), shlex.split(rest.partition("`")[0])
    except ValueError:
        return ""
    words = [word for word in words if word != "-u"]
    if not words or Path(words[0]).name != script:
        return ""
    line = ["tfdp", "run"]
    for names, name in ((_NUMBER, "-np"), (_HOSTS, "-H"), (_FILE, "--hostfile"), (_FORWARDED, "-x")):
        line += [word for at, option in enumerate(given[:-1]) if option in names for word in (name, given[at + 1])]
    ends = next((at for at, word in enumerate(words) if word in ("|", "&", "&&", ";", "||", ">", "2>&1")), len(words))
    return shlex.join([*line, *words[:ends]]) if len(line) > 2 else ""
