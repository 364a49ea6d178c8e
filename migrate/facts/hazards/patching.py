"""What gives a name another meaning while the script runs: facts read what the text defines."""

from __future__ import annotations

import builtins
from collections.abc import Iterator

import libcst as cst

from ..apis import CALLED, PARTIAL
from ..program import Origins, Problem, literal_key, namespace

_NEXT = "define it where it is used, or write `# tfdp: ignore[TFDP080]` here if it trains the same model on any worker"
_FRAMEWORKS = ("tensorflow.", "keras.", "numpy.", "scipy.", "tensorflow_probability.", "tfdp.")
_CALLING = ("keras.", "tensorflow.Module", "tensorflow.function", "tensorflow_hub.")
"""What makes models, layers, losses and optimizers."""
_BOUND_METHOD = "types.MethodType"
_NAMES = frozenset({"__doc__", "__module__", "__name__", "__qualname__", "__signature__", "__version__", "__wrapped__"})
"""Attributes that describe, and change nothing that is computed."""
_MODULES = frozenset({"builtins.globals", "builtins.locals", "builtins.vars"})


def patched(origins: Origins) -> list[Problem]:
    """Stores by which a function, a method or a class is no longer what its definition says."""
    found = [
        Problem("TFDP080", target.value, reason, _NEXT)
        for stores in origins.index.attribute_stores.values()
        for target, value, _ in stores
        if (reason := _replaced(origins, target, value)) is not None
    ]
    loose = (
        Problem("TFDP080", target.value, f"this replaces attributes of {api}, and tfdp cannot tell which", _NEXT)
        for target, value, _ in origins.index.loose_stores
        if (api := _of_framework(origins, target.value)) is not None
    )
    return [*found, *loose, *_namespaces(origins)]


def _replaced(origins: Origins, target: cst.Attribute, value: cst.CSTNode) -> str | None:
    """Why a store changes what a definition means."""
    name, made = target.attr.value, origins.made(target.value)
    if name.startswith("__") and name.endswith("__") and name not in _NAMES and not _is_itself(target, value):
        return f"this replaces {name}: what it belongs to no longer does what its definition says"
    if (api := _of_framework(origins, target.value)) is not None:
        return f"this replaces {api}.{name}, which then no longer does what its name says"
    owner = made if isinstance(made, cst.ClassDef) else origins.class_of(target.value)
    if owner is None:
        return _given(origins, target, value) if not isinstance(made, cst.FunctionDef | cst.Lambda) else None
    methods = [m for c in origins.index.classes if origins.descends(c, owner) and (m := origins.method(c, name))]
    same = isinstance(value, cst.BaseExpression) and all(o.node in methods for o in origins.of(value))
    return None if same or not methods else f"this replaces the method {name}() that {owner.name.value} defines"


def _given(origins: Origins, target: cst.Attribute, value: cst.CSTNode) -> str | None:
    """Of an object of another file: it may call the function that it is given."""
    if not any(_is_function(origins, o.node) for o in origins.of(value)):
        return None
    makers = [origins.called(o.node) for o in origins.of(target.value)]
    if makers and all(api and not api.startswith(_CALLING) for api in makers):
        return None  # names alone, or what trains nothing: `argparse.Namespace`, `tf.lite.TFLiteConverter`
    return f"this replaces {target.attr.value} of an object whose class is not in this file, which may call it"


def _is_function(origins: Origins, made: cst.CSTNode) -> bool:
    if isinstance(made, cst.FunctionDef | cst.Lambda) or origins.called(made) in {PARTIAL, _BOUND_METHOD}:
        return True
    owner = origins.constructed(made)
    return owner is not None and origins.method(owner, CALLED[0]) is not None


def _is_itself(target: cst.Attribute, value: cst.CSTNode) -> bool:
    """`self.__dict__ = self`: a dictionary whose entries are attributes."""
    return target.attr.value == "__dict__" and value.deep_equals(target.value)


def _of_framework(origins: Origins, node: cst.BaseExpression) -> str | None:
    """The name of a module, class or function of the libraries whose meaning facts know."""
    api = origins.names.api(node)
    if api is None:
        return None
    root, _, rest = api.partition(".")
    if root == "builtins":
        known = rest.split(".")[0] if rest else ""
        return api if not known or hasattr(builtins, known) else None
    return api if f"{root}." in _FRAMEWORKS else None


def _namespaces(origins: Origins) -> Iterator[Problem]:
    """Names of the file that are bound by a text: `globals()["step"] = …`, `exec(…)`."""
    reason = "this binds names that the text of the file does not show"
    for target in origins.index.subscript_stores:
        if origins.called(target.value) in _MODULES and namespace(target.value) is None:
            name = literal_key(target)
            if name is None or name in origins.index.taken:
                yield Problem("TFDP080", target, reason, _NEXT)
    for call in origins.index.calls:
        api = origins.called(call)
        changed = isinstance(call.func, cst.Attribute) and origins.called(call.func.value) in _MODULES
        of_file = changed and namespace(cst.ensure_type(call.func, cst.Attribute).value) is None
        if api == "builtins.exec" or api.startswith("unittest.mock.patch") or (of_file and _changes(call)):
            yield Problem("TFDP080", call, reason, _NEXT)


def _changes(call: cst.Call) -> bool:
    return cst.ensure_type(call.func, cst.Attribute).attr.value in {"clear", "pop", "setdefault", "update"}
