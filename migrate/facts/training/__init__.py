"""Training as the script writes it: from a tape to its update and the loop around it."""

from __future__ import annotations

from .at_import import Body
from .devices import Devices
from .elsewhere import Elsewhere, imported_training
from .entry_file import Entry, Place, entry, main_guard
from .loops import Loops, TrainingLoop, loop_exits, wrappers
from .own_classes import Optimizer, OwnClasses
from .plain_updates import PlainRate, PlainUpdates
from .reach import reached
from .state import State
from .tapes import Gradient, Update, changes_its_sources, gradients, is_averaged
from .untaped import Untaped

__all__ = [
    "Body",
    "Devices",
    "Elsewhere",
    "Entry",
    "Gradient",
    "Loops",
    "Optimizer",
    "OwnClasses",
    "Place",
    "PlainRate",
    "PlainUpdates",
    "State",
    "TrainingLoop",
    "Untaped",
    "Update",
    "changes_its_sources",
    "entry",
    "gradients",
    "imported_training",
    "is_averaged",
    "loop_exits",
    "main_guard",
    "reached",
    "wrappers",
]
