"""What the facts could not establish: the material of refusals."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst


@dataclass(frozen=True)
class Problem:
    """One place that is not understood, or understood and not migratable."""

    code: str
    node: cst.CSTNode
    reason: str
    next_step: str
