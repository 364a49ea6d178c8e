"""What a piece of the text says by itself, without following any name."""

from __future__ import annotations

import libcst as cst

from ..apis import ASSIGNS


def body_functions(owner: cst.ClassDef) -> list[cst.FunctionDef]:
    """The methods that a class defines itself."""
    return [s for s in owner.body.body if isinstance(s, cst.FunctionDef)]


def is_abstract(function: cst.FunctionDef) -> bool:
    """`raise NotImplementedError`, `pass` or nothing but a docstring."""
    lines = function.body.body
    parts = [part for line in lines if isinstance(line, cst.SimpleStatementLine) for part in line.body]
    empty = all(isinstance(p, cst.Raise | cst.Pass | cst.Expr) and not _calls(p) for p in parts)
    return empty and all(isinstance(line, cst.SimpleStatementLine | cst.Pass | cst.Raise | cst.Expr) for line in lines)


def _calls(statement: cst.CSTNode) -> bool:
    return isinstance(statement, cst.Expr) and not isinstance(statement.value, cst.SimpleString | cst.Ellipsis)


def last_name(node: cst.CSTNode) -> str | None:
    """`f` of `f` and of `a.b.f`."""
    if isinstance(node, cst.Attribute):
        return node.attr.value
    return node.value if isinstance(node, cst.Name) else None


def dotted(node: cst.BaseExpression) -> str:
    """`a.b.c` of an import."""
    if isinstance(node, cst.Attribute):
        return f"{dotted(node.value)}.{node.attr.value}"
    assert isinstance(node, cst.Name)
    return node.value


def method(node: cst.CSTNode) -> str:
    """`f` of the call `a.b.f(…)`; nothing of any other node."""
    return node.func.attr.value if isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute) else ""


def receiver(call: cst.Call) -> cst.BaseExpression:
    """`a.b` of the call `a.b.f(…)`."""
    return cst.ensure_type(call.func, cst.Attribute).value


def changed_by(node: cst.CSTNode) -> list[cst.BaseExpression]:
    """What a node gives another value: `x` of `x = 1`, `x += 1` and `x.assign(1)`, and both of `x, y = 1, 2`."""
    targets: list[cst.BaseExpression] = []
    if isinstance(node, cst.Assign):
        targets = [t.target for t in node.targets]
    elif isinstance(node, cst.AugAssign | cst.AnnAssign):
        targets = [node.target]
    elif isinstance(node, cst.Call) and method(node) in ASSIGNS:
        targets = [receiver(node)]
    several = [t.elements if isinstance(t, cst.Tuple | cst.List) else () for t in targets]
    return [*targets, *(e.value for elements in several for e in elements)]


def stored_by(call: cst.Call) -> tuple[cst.BaseExpression, str, cst.BaseExpression] | None:
    """The object, the name and the value that a call stores in an attribute; no name where that may be any.

    `setattr(x, "rate", 1)`, `x.__dict__.update(values)`, `vars(x).update(values)`.
    """
    if last_name(call.func) == "setattr" and len(call.args) == 3:
        of, name, value = (a.value for a in call.args)
        known = name.evaluated_value if isinstance(name, cst.SimpleString) else None
        return (of, known, value) if isinstance(known, str) else (of, "", call)
    if method(call) != "update":
        return None
    held = namespace(receiver(call))
    return (held, "", call) if held is not None else None


def namespace(node: cst.CSTNode) -> cst.BaseExpression | None:
    """The object of which `x.__dict__` and `vars(x)` hold the attributes."""
    if isinstance(node, cst.Attribute) and node.attr.value == "__dict__":
        return node.value
    plain = isinstance(node, cst.Call) and last_name(node.func) == "vars" and len(node.args) == 1
    return node.args[0].value if plain and isinstance(node, cst.Call) else None


def literal_key(node: cst.Subscript) -> str | None:
    """`name` of `x["name"]`."""
    key = node.slice[0].slice if len(node.slice) == 1 else None
    value = key.value if isinstance(key, cst.Index) else None
    found = value.evaluated_value if isinstance(value, cst.SimpleString) else None
    return found if isinstance(found, str) else None


def mentions(value: cst.CSTNode, name: str) -> bool:
    """Whether a value is what has the name, or is a call of something on it: `f`, `tf.function(f)`."""
    if isinstance(value, cst.Call):
        return any(last_name(a.value) == name for a in value.args[:1])
    return last_name(value) == name


def params_of(function: cst.FunctionDef | cst.Lambda) -> list[cst.Param]:
    """The parameters that can be given by position."""
    return [*function.params.posonly_params, *function.params.params]


def argument(call: cst.Call, keyword: str, position: int | None = None) -> cst.Arg | None:
    """The argument that a call passes under a keyword or at a position."""
    positional = [a for a in call.args if a.keyword is None and not a.star]
    named = next((a for a in call.args if a.keyword is not None and a.keyword.value == keyword), None)
    if named is None and position is not None and position < len(positional) and not any(a.star for a in call.args):
        return positional[position]
    return named
