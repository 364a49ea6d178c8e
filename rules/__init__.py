"""The rules: one file each, found by name (`tfdpNNN_what_it_does.py`); a rule asks facts and yields outcomes."""

from __future__ import annotations

import importlib
import pkgutil

from ._base import Rule


def _load() -> tuple[Rule, ...]:
    found = []
    for info in sorted(pkgutil.iter_modules(__path__), key=lambda i: i.name):
        if info.name.startswith("tfdp"):
            module = importlib.import_module(f"{__name__}.{info.name}")
            code, _, name = info.name.partition("_")
            rule = Rule(code.upper(), name.replace("_", "-"), module.__doc__ or "", module.outcomes, module.ROADS)
            found.append(rule)
    return tuple(found)


RULES: tuple[Rule, ...] = _load()
