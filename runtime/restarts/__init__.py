"""Workers that `tfdp run --max-restarts` has started again go on where the last backup of a `fit` was made.

They run the script again from its first line, with the same seed, and so do again what they have done. Only a `fit`
that has come far is not done again: its state is put back at the end of the last epoch that was kept. What cannot be
put back to the last bit is not kept, and its reason is said.
"""

from __future__ import annotations

import os
from collections.abc import Callable

from .folder import FOLDER, furthest

__all__ = ["FOLDER", "furthest", "keep_fits"]


def keep_fits() -> Callable[[], None]:
    """From now on, where `tfdp run --max-restarts` has said in which folder; and what is to be called now and then, as
    Keras may be imported at any time."""
    if not os.environ.get(FOLDER):
        return lambda: None
    from .fits import hook_fits, watch  # imports TensorFlow, which a launcher has not

    watch()
    return hook_fits
