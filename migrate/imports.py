"""The name under which a migrated script imports the runtime."""

from __future__ import annotations

from tfdp.migrate.facts.index import Index

MODULE = "tfdp.runtime"
_CHOICES = ("dp", "tfdp_dp", "tfdp_runtime")


def alias(index: Index) -> tuple[str, bool]:
    """The runtime's name in the file and whether it is imported already; a name that nothing else in the file uses."""
    for name, definitions in index.definitions[index.module].items():
        if any(d.kind == "import" and d.api == MODULE for d in definitions):
            return name, True
    taken = index.taken
    free = (n for n in (*_CHOICES, *(f"dp{i}" for i in range(len(taken) + 1))) if n not in taken)
    return next(free), False
