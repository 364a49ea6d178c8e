"""Curves as an SVG to stand in a page, which gives the classes `c0`, `c1` … their colours."""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence

from .curves import Curve
from .scale import Axis, counted, linear, logarithmic

WIDTH, HEIGHT = 480, 270
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 10, 20, 42


def render(title: str, curves: Sequence[Curve], *, log: bool = False, failed: int | None = None) -> str:
    """The drawing. title: what a screen reader says. failed: the step at which a criterion was missed."""
    steps = max((len(curve.values) for curve in curves), default=0)
    known = [value for curve in curves for value in curve.values if value is not None and math.isfinite(value)]
    limits = [curve.limit for curve in curves if curve.limit is not None]
    x, y = counted(steps), logarithmic([*known, *limits]) if log else linear(known)
    parts = [*_frame(x, y), *_failure(x, failed, steps)]
    for curve in curves:
        parts += _limit(curve, y)
    for curve in curves:
        parts += _marks(curve, x, y) if curve.points else _line(curve, x, y)
    label = html.escape(title, quote=True)
    return f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{label}">{"".join(parts)}</svg>'


def _frame(x: Axis, y: Axis) -> Iterator[str]:
    right, bottom = WIDTH - _RIGHT, HEIGHT - _BOTTOM
    for tick in y.ticks:
        at = _y(y, tick)
        yield f'<line class="grid" x1="{_LEFT}" x2="{right}" y1="{at}" y2="{at}"/>'
        yield f'<text class="tick" x="{_LEFT - 8}" y="{at}" dy="0.32em" text-anchor="end">{_label(y, tick)}</text>'
    for tick in x.ticks:
        yield f'<text class="tick" x="{_x(x, tick)}" y="{bottom + 18}" text-anchor="middle">{tick:g}</text>'
    yield f'<line class="axis" x1="{_LEFT}" x2="{right}" y1="{bottom}" y2="{bottom}"/>'
    yield f'<text class="tick" x="{right}" y="{HEIGHT - 4}" text-anchor="end">step</text>'


def _failure(x: Axis, failed: int | None, steps: int) -> Iterator[str]:
    if failed is None or failed >= steps:
        return
    at, bottom = _x(x, failed), HEIGHT - _BOTTOM
    yield f'<line class="failed" x1="{at}" x2="{at}" y1="{_TOP}" y2="{bottom}"><title>first failure</title></line>'


def _limit(curve: Curve, y: Axis) -> Iterator[str]:
    if curve.limit is None:
        return
    at, right = _y(y, curve.limit), WIDTH - _RIGHT
    text = f"<title>limit: {html.escape(curve.name)} {curve.limit:.0e}</title>"
    yield f'<line class="limit c{curve.colour}" x1="{_LEFT}" x2="{right}" y1="{at}" y2="{at}">{text}</line>'


def _line(curve: Curve, x: Axis, y: Axis) -> Iterator[str]:
    for run in _runs(curve):
        places = " ".join(f"{_x(x, step)},{_y(y, value)}" for step, value in run)
        yield f'<polyline class="curve c{curve.colour}" points="{places}"/>'
        if len(run) == 1:
            yield from _marks(curve, x, y)
    if len(curve.values) <= 60:
        yield from (_hint(curve, x, y, step, value) for run in _runs(curve) for step, value in run)


def _marks(curve: Curve, x: Axis, y: Axis) -> Iterator[str]:
    for run in _runs(curve):
        for step, value in run:
            text = f"<title>{html.escape(curve.name)}, step {step}: {value:.6g}</title>"
            place = f'cx="{_x(x, step)}" cy="{_y(y, value)}"'
            yield f'<circle class="mark c{curve.colour}" {place} r="3.5">{text}</circle>'


def _hint(curve: Curve, x: Axis, y: Axis, step: int, value: float) -> str:
    text = f"<title>{html.escape(curve.name)}, step {step}: {value:.3g}</title>"
    return f'<circle class="hint" cx="{_x(x, step)}" cy="{_y(y, value)}" r="7">{text}</circle>'


def _runs(curve: Curve) -> list[list[tuple[int, float]]]:
    """The stretches of steps without a gap: a value that is missing or not a number interrupts the line."""
    runs: list[list[tuple[int, float]]] = [[]]
    for step, value in enumerate(curve.values):
        if value is None or math.isnan(value):
            runs.append([])
        else:
            runs[-1].append((step, value))
    return [run for run in runs if run]


def _x(axis: Axis, value: float) -> float:
    return round(_LEFT + axis.place(value) * (WIDTH - _LEFT - _RIGHT), 1)


def _y(axis: Axis, value: float) -> float:
    return round(HEIGHT - _BOTTOM - axis.place(value) * (HEIGHT - _TOP - _BOTTOM), 1)


def _label(axis: Axis, tick: float) -> str:
    if axis.zero and tick == axis.low:
        return "0"
    if not axis.log:
        return f"{tick:g}"
    power = round(math.log10(tick))
    return f'10<tspan dy="-0.45em" font-size="75%">{"&minus;" if power < 0 else ""}{abs(power)}</tspan>'
