"""A program: the modules that are read together. What is found in one of them has its place in that one's text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property

import libcst as cst
from libcst.metadata import CodeRange, MetadataWrapper, PositionProvider

from .ignores import Ignores, lines_of


class SourceFile:
    """One module of a program: its tree, the places of its nodes, and what its author ignores.

    Everything is computed on first use and never changes.
    """

    def __init__(self, module: cst.Module, path: str = "", places: Sequence[tuple[int, int]] = ()) -> None:
        """`path`: how messages name the file; empty for the file that the whole answer is about.

        places: where another text has each of the lines, and how many columns further right; empty where this is the
        author's own.
        """
        self.module, self.path, self._places = module, path, places

    @cached_property
    def _positions(self) -> Mapping[cst.CSTNode, CodeRange]:
        return MetadataWrapper(self.module, unsafe_skip_copy=True).resolve(PositionProvider)

    @cached_property
    def _ignores(self) -> Ignores:
        return Ignores(self.module.code)

    def position(self, node: cst.CSTNode) -> tuple[int, int]:
        """Line and column of a node, both from 1."""
        place = self._positions.get(node)
        if place is None:
            return 1, 1
        line, column = place.start.line, place.start.column + 1
        if not self._places:
            return line, column
        origin, shift = self._places[min(line, len(self._places)) - 1]
        return origin, column + shift

    def span(self, node: cst.CSTNode) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where a node begins and ends in this text: lines from 1, columns from 0."""
        place = self._positions[node]
        return (place.start.line, place.start.column), (place.end.line, place.end.column)

    def ignored(self, code: str, statement: cst.CSTNode) -> bool:
        """Whether a `# tfdp: ignore[…]` comment at the statement names the code."""
        place = self._positions.get(statement) if self._ignores else None
        return place is not None and self._ignores.cover(code, lines_of(statement, place))

    def code(self, node: cst.CSTNode) -> str:
        """The text of a node."""
        return self.module.code_for_node(node)


class Program:
    """Modules of which the first is the one that is run."""

    def __init__(self, *files: SourceFile) -> None:
        self.files = files
        self._of_module = {file.module: file for file in files}

    @property
    def entry(self) -> SourceFile:
        """The file that is run."""
        return self.files[0]

    def file(self, module: cst.Module) -> SourceFile:
        """The file of a module."""
        return self._of_module[module]
