"""What the text of a program means: its nodes, names, flow, and where values come from."""

from __future__ import annotations

from .arithmetic import Arithmetic, Atom, Polynomial
from .asking import Answers, closure, within_itself
from .boundness import certainly_bound
from .conditions import exits_before, parses_arguments, tests_around
from .dependence import Slice, backward
from .elsewhere import FRAMEWORKS, computes, outside, uncalled, unfollowed
from .evaluator import Evaluator
from .flow import assigned, before, bound_once, reaching, uses, within
from .grown import Addition, additions
from .index import ITER, Definition, Index, Origin
from .known_branches import Frames, frame_of, meant, reached
from .listed import Listed
from .literals import is_none, is_off, number, spelled, text
from .modules import Program, SourceFile
from .names import Names, fold
from .networks import LAYERS, holds_weights, is_network
from .origins import Origins
from .pace import Later, StepNumbers
from .pieces import DEFINES, hanging_on, is_of_names, nodes, parts, statements
from .problem import Problem
from .running import entered, leading, ways_into
from .spelling import (
    argument,
    body_functions,
    changed_by,
    dotted,
    last_name,
    literal_key,
    method,
    namespace,
    params_of,
    receiver,
)
from .unknown import Unknown, quoted
from .variables import Variables

__all__ = [
    "DEFINES",
    "FRAMEWORKS",
    "ITER",
    "LAYERS",
    "Addition",
    "Answers",
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
    "Slice",
    "SourceFile",
    "StepNumbers",
    "Unknown",
    "Variables",
    "additions",
    "argument",
    "assigned",
    "backward",
    "before",
    "body_functions",
    "bound_once",
    "certainly_bound",
    "changed_by",
    "closure",
    "computes",
    "dotted",
    "entered",
    "exits_before",
    "fold",
    "frame_of",
    "hanging_on",
    "holds_weights",
    "is_network",
    "is_none",
    "is_of_names",
    "is_off",
    "last_name",
    "leading",
    "literal_key",
    "meant",
    "method",
    "namespace",
    "nodes",
    "number",
    "outside",
    "params_of",
    "parses_arguments",
    "parts",
    "quoted",
    "reached",
    "reaching",
    "receiver",
    "spelled",
    "statements",
    "tests_around",
    "text",
    "uncalled",
    "unfollowed",
    "uses",
    "ways_into",
    "within",
    "within_itself",
]
