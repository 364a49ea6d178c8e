"""What the facts could not establish: the material of refusals."""

from __future__ import annotations

from dataclasses import dataclass

import libcst as cst

from .index import Index
from .unknown import Unknown, told

_LINKS = 4  # places that one message names; `tfdp facts` shows them all


@dataclass(frozen=True)
class Problem:
    """One place that is not understood, or understood and not migratable.

    `headline` is the reason without the places that led to it, and `because` those places, where they are known.
    """

    code: str
    node: cst.CSTNode
    reason: str
    next_step: str
    headline: str = ""
    because: Unknown | None = None

    @staticmethod
    def since(  # noqa: PLR0917
        index: Index, code: str, node: cst.CSTNode, what: str, because: Unknown | None, next_step: str
    ) -> Problem:
        """A problem whose reason goes on with the chain of places that led to it."""
        if because is None:
            return Problem(code, node, what, next_step)
        found = told(index, because)
        if len(found) > _LINKS:
            found = [found[0], "…", *found[-_LINKS + 1 :]]
        return Problem(code, node, f"{what}: {'; '.join(found)}", next_step, what, because)
