"""The name under which a migrated script imports the runtime."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import libcst as cst

    from .facts.program import Index

MODULE = "tfdp.runtime"
_CHOICES = ("dp", "tfdp_dp", "tfdp_runtime")


def alias(index: Index, anchor: cst.CSTNode) -> tuple[str, bool]:
    """The runtime's name in the file and whether it is imported there already, up to the place of added imports.

    A name that nothing else in the file uses, where it is not imported at all.
    """
    for name, definitions in index.definitions[index.program.entry.module].items():
        found = [d.statement for d in definitions if d.kind == "import" and d.api == MODULE]
        if found:
            return name, min(index.order[f] for f in found) <= max(index.order[n] for n in (anchor, *anchor.children))
    taken = index.taken
    free = (n for n in (*_CHOICES, *(f"dp{i}" for i in range(len(taken) + 1))) if n not in taken)
    return next(free), False
