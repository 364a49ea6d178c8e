"""The tables of library functions: one room, each name once."""

from __future__ import annotations

import importlib
import pkgutil
import types
from collections import Counter

from tfdp.migrate.facts import apis


def tables() -> dict[str, list[str]]:
    modules = [importlib.import_module(f"{apis.__name__}.{m.name}") for m in pkgutil.iter_modules(apis.__path__)]
    return {m.__name__: [n for n in vars(m) if n.isupper() and not n.startswith("_")] for m in modules}


def test_no_name_is_given_to_two_tables() -> None:
    counted = Counter(name for names in tables().values() for name in names)
    assert len(counted) >= 100
    assert [name for name, times in counted.items() if times > 1] == []


def test_the_room_shows_all_its_tables_and_holds_no_code() -> None:
    shown = {name for name, value in vars(apis).items() if name.isupper() and not isinstance(value, types.FunctionType)}
    assert shown == {name for names in tables().values() for name in names}
