"""What the text of a program means: its nodes, names, flow, and where values come from."""

from __future__ import annotations

from .arithmetic import Arithmetic, Atom
from .asking import within_itself
from .conditions import alike, differing, exits_before, parses_arguments
from .flow import reaching, within
from .followed import Alike
from .grown import Addition, additions, attribute_additions
from .ignores import Ignores, lines_of
from .index import ITER, Definition, Index
from .known_branches import Frames, meant, reached
from .lengths import Lengths
from .listed import ARRAYS, Listed
from .literals import axes, ints, is_off, number, plain, text
from .names import Names
from .networks import LAYERS, holds_weights, is_network
from .origins import Origin, Origins, argument
from .pace import Pace
from .pieces import nodes, parts
from .problem import Problem
from .slices import backward
from .spelling import last_name
from .variables import Variables

__all__ = [
    "ARRAYS",
    "ITER",
    "LAYERS",
    "Addition",
    "Alike",
    "Arithmetic",
    "Atom",
    "Definition",
    "Frames",
    "Ignores",
    "Index",
    "Lengths",
    "Listed",
    "Names",
    "Origin",
    "Origins",
    "Pace",
    "Problem",
    "Variables",
    "additions",
    "alike",
    "argument",
    "attribute_additions",
    "axes",
    "backward",
    "differing",
    "exits_before",
    "holds_weights",
    "ints",
    "is_network",
    "is_off",
    "last_name",
    "lines_of",
    "meant",
    "nodes",
    "number",
    "parses_arguments",
    "parts",
    "plain",
    "reached",
    "reaching",
    "text",
    "within",
    "within_itself",
]
