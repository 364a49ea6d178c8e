"""What the text of a program means: its nodes, names, flow, and where values come from."""

from __future__ import annotations

from .arithmetic import Arithmetic, Atom, Polynomial
from .asking import closure, within_itself
from .conditions import controls, exits_before, parses_arguments, tests_around
from .elsewhere import computes, outside, uncalled, unfollowed
from .evaluator import Evaluator
from .flow import reaching, within
from .grown import Addition, additions, attribute_additions
from .index import ITER, Definition, Index
from .known_branches import Frames, meant, reached
from .listed import ARRAYS, Listed
from .literals import axes, ints, is_off, number, plain, text
from .modules import Program, SourceFile
from .names import Names
from .networks import LAYERS, holds_weights, is_network
from .origins import Origin, Origins, argument
from .pace import Later, StepNumbers
from .pieces import nodes, parts
from .problem import Problem
from .slices import backward
from .spelling import body_functions, changed_by, last_name, method, receiver
from .unknown import Unknown, quoted, told
from .variables import Variables

__all__ = [
    "ARRAYS",
    "ITER",
    "LAYERS",
    "Addition",
    "Arithmetic",
    "Atom",
    "Definition",
    "Evaluator",
    "Frames",
    "Index",
    "Later",
    "Listed",
    "Names",
    "Origin",
    "Origins",
    "Polynomial",
    "Problem",
    "Program",
    "SourceFile",
    "StepNumbers",
    "Unknown",
    "Variables",
    "additions",
    "argument",
    "attribute_additions",
    "axes",
    "backward",
    "body_functions",
    "changed_by",
    "closure",
    "computes",
    "controls",
    "exits_before",
    "holds_weights",
    "ints",
    "is_network",
    "is_off",
    "last_name",
    "meant",
    "method",
    "nodes",
    "number",
    "outside",
    "parses_arguments",
    "parts",
    "plain",
    "quoted",
    "reached",
    "reaching",
    "receiver",
    "tests_around",
    "text",
    "told",
    "uncalled",
    "unfollowed",
    "within",
    "within_itself",
]
