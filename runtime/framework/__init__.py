"""How TensorFlow names variables, what its datasets are made of, and how our code stays out of what it compiles."""

from __future__ import annotations

from .autograph import as_written, leave_ours, transparent
from .datasets import around_stages, made_of
from .graphs import held_besides, hidden_states, python_in, when_compiled
from .halves import floats_of, half_bytes
from .lifting import lifted
from .operations import draws_on, keeps_state, only_reads
from .python_calls import functions_run, in_python, linked, unrecorded
from .variables import (
    Key,
    Keys,
    Variable,
    collect,
    has_value,
    is_followed,
    is_variable,
    keyed,
    name_of,
    raw,
    stream_element,
)
from .watchers import follow_watchers, unwatched

__all__ = [
    "Key",
    "Keys",
    "Variable",
    "around_stages",
    "as_written",
    "collect",
    "draws_on",
    "floats_of",
    "follow_watchers",
    "functions_run",
    "half_bytes",
    "has_value",
    "held_besides",
    "hidden_states",
    "in_python",
    "is_followed",
    "is_variable",
    "keeps_state",
    "keyed",
    "leave_ours",
    "lifted",
    "linked",
    "made_of",
    "name_of",
    "only_reads",
    "python_in",
    "raw",
    "stream_element",
    "transparent",
    "unrecorded",
    "unwatched",
    "when_compiled",
]
