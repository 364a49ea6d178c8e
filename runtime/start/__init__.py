"""All workers start with the variables of rank 0, and are seen to keep them equal."""

from __future__ import annotations

from .keras_models import watch_keras
from .last_look import look_at_the_end, note_slices
from .row_independence import reads
from .same_start import list_number
from .same_variables import watched
from .state import (
    broadcast_state,
    count_variables,
    creation_ordinals,
    every_variable,
    follow_root,
    live_generators,
    live_variables,
    tell_of_variables,
    variables_created,
)

__all__ = [
    "broadcast_state",
    "count_variables",
    "creation_ordinals",
    "every_variable",
    "follow_root",
    "list_number",
    "live_generators",
    "live_variables",
    "look_at_the_end",
    "note_slices",
    "reads",
    "tell_of_variables",
    "variables_created",
    "watch_keras",
    "watched",
]
