"""Dates of now, which the script asks of classes that are compiled."""

from __future__ import annotations

import ctypes
import datetime
import functools
import gc
from typing import Any

from .asking import answer, place_of_question

_ASKS = ((datetime.datetime, ("now", "utcnow")), (datetime.date, ("today",)))


def share_dates() -> None:
    """From now on they are rank 0's for the script, by whatever name it has the classes."""
    for kind, names in _ASKS:
        for name in names:
            _put(kind, name, _shared(kind, name))


def _shared(kind: type, name: str) -> Any:
    original = vars(kind)[name]

    @functools.wraps(original)
    def asked(cls: Any, *arguments: Any, **options: Any) -> Any:
        place = place_of_question(f"{kind.__name__}.{name}", only_by_script=True)
        if place is None:
            return original.__get__(None, cls)(*arguments, **options)
        plain = datetime.datetime if issubclass(cls, datetime.datetime) else datetime.date
        ask = functools.partial(original.__get__(None, plain), *arguments, **options)
        found = answer(place, f"{plain.__name__}.{name}", ask, (arguments, options))
        if cls is plain:
            return found
        if plain is datetime.date:
            return cls(found.year, found.month, found.day)
        return cls.combine(found.date(), found.timetz())

    return classmethod(asked)


def _put(kind: type, name: str, value: Any) -> None:
    """Give a compiled class another method.

    Python allows it for no name of such a class. A class that takes its place would be another one: values that it
    makes could not be pickled, nor found in tables that go by classes.
    """
    (members,) = gc.get_referents(vars(kind))
    members[name] = value
    ctypes.pythonapi.PyType_Modified(ctypes.py_object(kind))
