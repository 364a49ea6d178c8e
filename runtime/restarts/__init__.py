"""Workers that `tfdp run --max-restarts` has started again go on where something was kept last.

They run the script again from its first line, with the same seed, and so do again what they have done. Only a `fit`
that has come far is not done again, nor a loop of the script's own that restores its last checkpoint: their state is
put back. What cannot be put back to the last bit is not kept, and its reason is said.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from .folder import FOLDER, Furthest, begin_again, furthest

__all__ = ["FOLDER", "Furthest", "begin_again", "furthest", "keep_training"]


def keep_training() -> Callable[[], None]:
    """From now on, where `tfdp run --max-restarts` has said in which folder; and what is to be called now and then, as
    Keras may be imported at any time."""
    if not os.environ.get(FOLDER):
        return lambda: None
    from ..start import tell_of_variables  # imports TensorFlow, which a launcher has not
    from . import fits, loops
    from .iterators import watch_iterators
    from .steps import watch_seeds, watch_steps

    def compiled(reason: str) -> None:
        fits.compiled(reason)
        loops.compiled(reason)

    def made(ordinal: int, variable: Any) -> None:
        fits.made(ordinal, variable)
        loops.made(variable)

    def hook() -> None:
        tell_of_variables(made)
        fits.hook_fits()

    watch_iterators()
    watch_steps(compiled)
    watch_seeds(compiled)
    loops.keep_loops()
    return hook
