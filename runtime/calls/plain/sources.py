"""The syntax of a function that there is."""

from __future__ import annotations

import ast
import functools
import linecache
from collections.abc import Sequence
from types import CodeType

from ..reach import codes

Function = ast.FunctionDef | ast.Lambda


@functools.lru_cache(4096)
def syntax_of(code: CodeType) -> Sequence[Function]:
    """What may be the definition of a function: one, or all lambdas of its line; none where the file at hand is not
    what the code was made of."""
    tree, made = _of_file(code.co_filename, "".join(linecache.getlines(code.co_filename)))
    if tree is None or code not in made:
        return ()
    return [each for each in ast.walk(tree) if isinstance(each, Function) and _is_of(each, code)]


@functools.lru_cache(64)
def _of_file(path: str, text: str) -> tuple[ast.Module | None, frozenset[CodeType]]:
    if not text:
        return None, frozenset()
    try:
        return ast.parse(text), frozenset(codes(compile(text, path, "exec", dont_inherit=True)))
    except (SyntaxError, ValueError):
        return None, frozenset()


def _has_parameters(node: ast.Lambda, code: CodeType) -> bool:
    """Whether a lambda has those of the code, and stands where that says, as it does since Python 3.11."""
    args = node.args
    names = [each.arg for each in (*args.posonlyargs, *args.args, *args.kwonlyargs)]
    if names != list(code.co_varnames[: len(names)]) or len(names) != code.co_argcount + code.co_kwonlyargcount:
        return False
    places = list(code.co_positions()) if hasattr(code, "co_positions") else []
    begins = [(line, column) for line, _, column, _ in places if line is not None and column is not None]
    body = node.body
    first, last = (body.lineno, body.col_offset), (body.end_lineno or 0, body.end_col_offset or 0)
    return not begins or any(first <= place < last for place in begins[1:])


def _is_of(node: Function, code: CodeType) -> bool:
    if isinstance(node, ast.Lambda):
        return code.co_name == "<lambda>" and node.lineno == code.co_firstlineno and _has_parameters(node, code)
    first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
    return code.co_name == node.name and first == code.co_firstlineno
