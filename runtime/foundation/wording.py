"""What an exception says, in one line: its own words, where a library has wrapped them in more."""

from __future__ import annotations

import itertools
import re

_STYLE = re.compile(r"\x1b\[[0-9;]*m")
# How a line of a TensorFlow error begins that tells of a Python error inside a graph.
_NAMED = re.compile(r"\w+(?:Error|Aborted|Exception|Interrupt|Timeout): ")
_AUTOGRAPH = "in user code:"
_WITHIN = "    "  # before what AutoGraph tells of the exception
_KERAS = "Exception encountered when calling"
_GRAPH = "Graph execution error:"
_NODE = "[[{{node"  # what stands behind the message of an operation


def gist(said: str) -> str:
    """Of `Kind: message`, of any number of lines, the kind and the line of the message that says what has happened."""
    first, *more = [_STYLE.sub("", line).rstrip() for line in said.splitlines()] or [""]
    kind, _, text = first.partition(": ")
    if text == _AUTOGRAPH:
        inner = [line.removeprefix(_WITHIN) for line in more if line.startswith(_WITHIN)]
        named = [at for at, line in enumerate(inner) if _NAMED.match(line)]
        return gist("\n".join(inner[named[-1] :])) if named else first
    if text.startswith(_KERAS):
        own = next((line.strip() for line in more if line), "")
        return f"{kind}: {own}" if own else first
    if own := next((line for line in more if _NAMED.match(line)), ""):
        return own
    of_node = next((before for before, line in itertools.pairwise(more) if line.lstrip().startswith(_NODE)), "")
    return f"{kind}: {of_node}" if text == _GRAPH and of_node else first
