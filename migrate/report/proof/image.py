"""The curves of a proof as a PNG, drawn by matplotlib where it is installed."""

from __future__ import annotations

import importlib.util
import math
from typing import Any

from . import curves
from .account import Account
from .curves import Curve

MISSING = "--png is drawn by matplotlib, which is not installed here: pip install 'tfdp[report]'. --html needs nothing"
_COLOURS = ("#1f5fbf", "#c2570c", "#0f7b6c", "#8e3aa8")


def available() -> bool:
    """Whether there is matplotlib."""
    return importlib.util.find_spec("matplotlib") is not None


def write(account: Account, path: str) -> None:
    """Draw the curves into the file at `path`, a PNG of 1200 by 480 pixels. Raises OSError."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 4.8), dpi=100, layout="constrained")
    figure.suptitle(f"{account.script}: {account.verdict.word}")
    left, right = figure.subplots(1, 2)
    if account.proof is not None:
        failure = account.proof.failure
        _plot(left, "loss", curves.losses(account.proof))
        _plot(right, "largest relative difference", curves.differences(account.proof))
        _logarithmic(right, curves.differences(account.proof))
        for axes in (left, right):
            if failure is not None:
                axes.axvline(failure.step, color="#b3261e", label="first failure")
            axes.legend(fontsize="small")
    with open(path, "wb") as file:
        figure.savefig(file, format="png")


def _plot(axes: Any, label: str, shown: tuple[Curve, ...]) -> None:
    for curve in shown:
        colour = _COLOURS[curve.colour % len(_COLOURS)]
        values = [math.nan if value is None else value for value in curve.values]
        if curve.limit is not None:  # on a logarithmic axis, which has no zero
            values = [value or math.nan for value in values]
        style: dict[str, Any] = {"linestyle": "", "marker": "o", "markersize": 4} if curve.points else {}
        axes.plot(range(len(values)), values, color=colour, label=curve.name, **style)
        if curve.limit is not None:
            axes.axhline(curve.limit, color=colour, linestyle="--", linewidth=1)
    axes.set(xlabel="step", ylabel=label)
    axes.xaxis.get_major_locator().set_params(integer=True)


def _logarithmic(axes: Any, shown: tuple[Curve, ...]) -> None:
    if any(value and math.isfinite(value) for curve in shown for value in curve.values):
        axes.set_yscale("log", nonpositive="clip")
