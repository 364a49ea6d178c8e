"""Calls that lead out of the file: what they give cannot be followed."""

from __future__ import annotations

import sys
from collections.abc import Callable

import libcst as cst

from .index import ITER, Origin
from .origins import Origins
from .spelling import last_name
from .unknown import Unknown

_TEXT = "is a text, and what it names is not followed"
FRAMEWORKS = frozenset({"builtins", "keras", "numpy", "scipy", "tensorflow", "tensorflow_probability", "tfdp"})


def outside(origins: Origins, call: cst.Call) -> Unknown | None:
    """Why a call of code that is not in the file cannot be followed.

    None for what is in the file, and for functions of the libraries that compute values from their arguments alone.
    """
    if origins.function(call.func) is not None:
        return None
    api = origins.names.api(call.func)
    if api is not None:
        module = None if computes(api) else api.rpartition(".")[0]
        return Unknown(call, f"is a call of {module}, which is outside this file") if module else None
    if not isinstance(call.func, cst.Attribute):
        return _of_function(origins, call)
    found = [u for o in origins.of(call.func.value) if (u := _of_object(origins, call, call.func, o)) is not None]
    return found[0] if found else None


def uncalled(origins: Origins, function: cst.FunctionDef) -> Unknown:
    """A function that no call in the file is known to mean, and a call that may, where one has its name."""
    called = (c for c in origins.index.calls if last_name(c.func) == function.name.value)
    call = next((c for c in called if origins.function(c.func) is None), None)
    if call is None:
        given = _given_away(origins, function)
        reason = "holds it, and nothing in this file calls that" if given is None else "holds it"
        return Unknown(function, reason, given)
    several = "may call that, or another function of that name"
    unknown = "may call that, by an object that is not followed"
    because = Unknown(call, several if isinstance(call.func, cst.Name) else unknown)
    return Unknown(function, "holds it, and no call in this file certainly means that", because)


def _given_away(origins: Origins, function: cst.FunctionDef) -> Unknown | None:
    """Where a function is handed to what may call it: a call, a decorator, a container, another name."""
    index, name = origins.index, function.name.value
    for use in (*index.names.get(name, ()), *index.attributes.get(name, ())):
        if isinstance(use, cst.Name) and (index.is_label(use) or function.name is use):
            continue
        holder = index.parents[use]
        if isinstance(holder, cst.Call):  # of another function that has the name there
            continue
        if isinstance(holder, cst.Arg):
            return Unknown(index.parents[holder], f"is given {name}, and what it does with that is not followed")
        return Unknown(index.statement_of(use), f"hands {name} on, and who calls it is not followed")
    if function.decorators:
        return Unknown(function.decorators[0].decorator, "is put on it, and may call it")
    return None


def unfollowed(origins: Origins, node: cst.CSTNode, known: Callable[[Origin], bool]) -> Unknown | None:
    """Why an expression is not known to be something: of what can give its value, the first that is not `known`."""
    for origin in origins.of(node):
        if known(origin):
            continue
        made, path = origin.node, origin.path
        if isinstance(made, cst.Call):
            return _of_maker(origins, made)
        if ITER in path:
            return Unknown(made, "is what it is an element of, and its elements are not followed")
        if path:
            return Unknown(made, "is what it is unpacked from, and its parts are not followed")
        if isinstance(made, cst.Param):
            return Unknown(made, _of_parameter(origins, made))
        if isinstance(made, cst.Import | cst.ImportFrom):
            return Unknown(made, "brings it from another file")
        return Unknown(
            made, _TEXT if isinstance(made, cst.BaseString) else "gives the value, and is not followed further"
        )
    return None


def _of_maker(origins: Origins, made: cst.Call) -> Unknown:
    api = origins.names.api(made.func)
    if origins.is_super(made):
        return Unknown(made, "means a class above, whose code is not in this file")
    if (found := outside(origins, made)) is not None:
        return found
    if api is not None:
        return Unknown(made, f"calls {api}, whose result tfdp does not recognise")
    return Unknown(made, "gives the value, by a call that is not followed")


def _of_parameter(origins: Origins, parameter: cst.Param) -> str:
    function = origins.index.enclosing_function(parameter)
    if function is None:
        return "is a parameter"
    if not origins.calls_of(function):
        called = (
            "whose calls are not followed" if _given_away(origins, function) else "which nothing in this file calls"
        )
        return f"is a parameter of {function.name.value}(), {called}"
    return f"is a parameter of {function.name.value}(), and not every call of that gives it a value that is followed"


def _of_function(origins: Origins, call: cst.Call) -> Unknown | None:
    """Why the function that a name means is not followed: it is one of several, or another file's code makes it."""
    made = [o.node for o in origins.of(call.func)] if isinstance(call.func, cst.Name) else []
    if len(made) > 1 and any(isinstance(m, cst.FunctionDef) for m in made):
        return Unknown(call, f"may call any of {len(made)} functions that this name means")
    for node in made:
        api = origins.called(node)
        if api and not computes(api):
            because = Unknown(node, f"makes it by {api}, which is outside this file")
            return Unknown(call, "calls a function that this file does not define", because)
    return None


def computes(api: str) -> bool:
    """Whether a name is one of Python's own library or of those that scripts compute with."""
    root = api.partition(".")[0]
    return root in FRAMEWORKS or root in sys.stdlib_module_names


def _of_object(origins: Origins, call: cst.Call, func: cst.Attribute, made: Origin) -> Unknown | None:
    """Why a method of an object is not followed, by what makes the object."""
    node = made.node
    if ITER in made.path:
        return Unknown(call, "is a method of an element that a loop goes over, which is not followed")
    owner = origins.constructed(node)
    if owner is not None:
        if origins.method(owner, func.attr.value) is None:
            return Unknown(call, f"is a method that {owner.name.value} does not define in this file")
        return Unknown(call, "is a method of one of several objects, and it is not known of which")
    if isinstance(node, cst.Call):
        api = origins.names.api(node.func)
        if api is None or computes(api):
            return None
        reason = f"makes its object by {api}, which is outside this file"
        return Unknown(call, "is a method that this file does not define", Unknown(node, reason))
    if isinstance(node, cst.Param):
        reason = "is a parameter, and no call that gives it a value is followed"
        return Unknown(call, "is a method that this file does not define", Unknown(node, reason))
    return None
