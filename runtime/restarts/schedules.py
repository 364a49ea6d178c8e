"""Learning rates that a function of the script gives: it is asked once more for all epochs that are not run again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from ..foundation import TfdpError
from ..keras import is_keras

Rates = list[tuple[int, float, float]]  # the epoch; the learning rate before and after its `on_epoch_begin`


def _of(callbacks: Sequence[Any]) -> list[Any]:
    return [each for each in callbacks if type(each).__name__ == "LearningRateScheduler" and is_keras(type(each))]


def unknown(callbacks: Sequence[Any]) -> str:
    """Why it could not be seen whether they say the same again."""
    return "two callbacks schedule its learning rate" if len(_of(callbacks)) > 1 else ""


def repeat(callbacks: Sequence[Any], rates: Rates, site: str) -> None:
    """Ask for each epoch again. Raises TfdpError where another rate is answered than was the first time."""
    for schedule in (each.schedule for each in _of(callbacks)):
        for epoch, before, after in rates:
            try:
                found = schedule(epoch, before)
            except TypeError:  # Keras takes functions of the epoch alone, too
                found = schedule(epoch)
            if np.float32(found) != np.float32(after):
                raise TfdpError(
                    f"the fit at {site} cannot go on after the restart: its schedule says {float(found):g} for the "
                    f"learning rate of epoch {epoch + 1}, and said {after:g} the first time"
                )
