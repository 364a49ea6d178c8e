"""What a recogniser answers in place of a value: what stands in the way, where, and what that is because of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import libcst as cst

from .index import Index

_CODE = 60  # characters of the script's own text that a message quotes at once


@dataclass(frozen=True)
class Unknown:
    """A place that is not followed: `reason` says of it what a sentence with it as its subject says.

    `because` is the place further on that makes it so.
    """

    node: cst.CSTNode
    reason: str
    because: Unknown | None = None

    @property
    def links(self) -> list[Unknown]:
        """The places on the way, from the question to its last cause."""
        return [self, *(self.because.links if self.because is not None else ())]

    def after(self, calls: Iterable[cst.Call]) -> Unknown:
        """The same, come to by calls of the file's own functions, the outermost first."""
        found = self
        for call in reversed(tuple(calls)):
            found = Unknown(call, "calls a function of this file", found)
        return found


def quoted(index: Index, node: cst.CSTNode) -> str:
    """The text of a node on one line, in the script's own words, with its middle left out where it is long."""
    shown = node.name if isinstance(node, cst.Param | cst.FunctionDef | cst.ClassDef) else node
    text = index.code(shown).strip()
    lines = text.splitlines()[:1] if isinstance(node, cst.BaseCompoundStatement) else [text]
    code = " ".join(" ".join(lines).split())
    return f"`{code}`" if len(code) <= _CODE else f"`{code[: _CODE - 21]} … {code[-18:]}`"


def told(index: Index, unknown: Unknown) -> list[str]:
    """One sentence for each place, with its line."""
    return [f"{quoted(index, u.node)} {u.reason} ({index.place(u.node)})" for u in unknown.links]
