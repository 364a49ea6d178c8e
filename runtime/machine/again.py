"""Functions of the script that a function of the machine is given, and calls: `shutil.copytree(…, ignore=mine)`."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

from ..foundation import Inside, is_of_script
from ..store import apart

is_again = Inside()
"""Whether a function is called again: what it changes, it has changed."""

_FUNCTIONS = (types.FunctionType, types.MethodType)


def again(ask: functools.partial[Any], answer: Callable[[Callable[[], Any]], Any]) -> Any:
    """`answer(ask)`, rank 0's answer; what it has called of the script's is called on the others with the same.

    They may keep or count what they are given, which the script goes on with. If rank 0 has got an error, or what they
    were given cannot be sent, nothing is called again.
    """
    given = (*ask.args, *ask.keywords.values())
    mine = [each for each in given if isinstance(each, _FUNCTIONS) and is_of_script(each.__code__.co_filename)]
    if not mine:
        return answer(ask)
    calls: list[tuple[int, tuple[Any, ...], dict[str, Any]]] = []
    is_here: list[bool] = []

    def noted(function: Any) -> Any:
        if not isinstance(function, _FUNCTIONS) or function not in mine:
            return function

        @functools.wraps(function)
        def called(*arguments: Any, **options: Any) -> Any:
            calls.append((mine.index(function), arguments, options))
            return function(*arguments, **options)

        return called

    def asks() -> Any:
        is_here.append(True)
        options = {name: noted(each) for name, each in ask.keywords.items()}
        return ask.func(*map(noted, ask.args), **options), calls

    found, made = answer(asks)
    with apart(), is_again.entered():
        for index, arguments, options in () if is_here else made:
            mine[index](*arguments, **options)
    return found
