"""Which callbacks Keras' fit is given."""

from __future__ import annotations

import libcst as cst

from ..program import Origins, is_none
from .fit_data import FitData, given_to
from .fits import Fit

_ORDERED = "tfdp.runtime.fit_callbacks"


def open_callbacks(origins: Origins, fit: FitData) -> bool:
    """Whether a fit's callbacks do not go through `dp.fit_callbacks(…)` yet."""
    given = given_to(fit.fit.call, "callbacks")
    found = [given, *(o.node for o in origins.of(given))] if given is not None else []
    return not any(origins.called(n) == _ORDERED for n in found)


def has_callbacks(origins: Origins, fit: Fit) -> bool:
    """Whether a fit is given callbacks, which may write files."""
    given = given_to(fit.call, "callbacks")
    if given is None or is_none(origins, given):
        return False
    return origins.called(given) != _ORDERED or (isinstance(given, cst.Call) and bool(given.args))
