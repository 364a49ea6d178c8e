"""`tfdp example`: training scripts for one GPU that need no data and no download, to try the other commands on."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

DEFAULT = "spirals"
_FOLDER = Path(__file__).parent / "examples"


class UnknownExample(Exception):  # noqa: N818 - named as what was asked for
    """There is no example of that name."""


def names() -> list[str]:
    """All of them, the one that is printed without a name first."""
    return sorted((path.stem for path in _FOLDER.glob("*.py")), key=lambda name: (name != DEFAULT, name))


def text(name: str = DEFAULT) -> bytes:
    """The script of that name. Raises UnknownExample."""
    if name not in names():
        raise UnknownExample(f"there is no example {name}; there are: {', '.join(names())}")
    return (_FOLDER / f"{name}.py").read_bytes()


def listing() -> Iterator[str]:
    """A line for each: its name, and what it does."""
    width = max(map(len, names()))
    for name in names():
        summary = (ast.get_docstring(ast.parse(text(name))) or "").splitlines()[0]
        yield f"{name:<{width}}  {summary}"
