"""What is put into a list, a dictionary or an array after it was made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import libcst as cst

from ..apis import ASSIGNS, ONE_NUMBER, PUTS_IN
from .flow import reaching
from .index import Definition
from .origins import Origins
from .spelling import method, receiver

_HOLDERS = (cst.List, cst.Dict, cst.Set, cst.Tuple, cst.Call, cst.ListComp, cst.DictComp)
_DEPTH = 4  # functions that hand a list on to one another


@dataclass(frozen=True)
class Addition:
    """`values` that `place`, a call or an assignment, puts in; None where a function does it that is not understood."""

    place: cst.CSTNode
    values: tuple[cst.CSTNode, ...] | None


def additions(origins: Origins, name: cst.Name, definitions: list[Definition]) -> Iterator[Addition]:
    """Everything that is put into what a name stands for, by this name."""
    if not any(_holds(origins, d) for d in definitions):
        return
    index = origins.index
    for use in index.names[name.value]:
        if any(d in definitions for d in reaching(index, use)):
            yield from _at(origins, use, 0)


def _holds(origins: Origins, definition: Definition) -> bool:
    value = definition.value
    if definition.kind != "assign" or not isinstance(value, _HOLDERS):
        return False
    return ONE_NUMBER.match(origins.called(value)) is None


def attribute_additions(origins: Origins, name: str, depth: int = 0) -> Iterator[Addition]:
    """The same for an attribute, of whatever object."""
    for use in origins.index.attributes.get(name, ()):
        yield from _at(origins, use, depth)


def _at(origins: Origins, use: cst.CSTNode, depth: int) -> Iterator[Addition]:
    index = origins.index
    holder = index.parents.get(use)
    if isinstance(holder, cst.Arg):
        yield from _handed_on(origins, holder, depth)
        yield from _shuffled(index.parents[holder], holder)
    while isinstance(holder, cst.Subscript) and holder.value is use:  # `table["losses"].append(loss)`
        if holder in index.subscript_stores:
            yield Addition(holder, (index.subscript_stores[holder], *(e.slice for e in holder.slice)))
        use, holder = holder, index.parents.get(holder)
    call = index.parents.get(holder) if holder is not None else None
    if isinstance(call, cst.Call) and method(call) in PUTS_IN | ASSIGNS and receiver(call) is use:
        yield Addition(call, tuple(a.value for a in call.args))


def _handed_on(origins: Origins, arg: cst.Arg, depth: int) -> Iterator[Addition]:
    """What a function of the file, whose argument it is, does with it."""
    index = origins.index
    call = index.parents[arg]
    function = origins.function(call.func) if isinstance(call, cst.Call) else None
    if function is None or not isinstance(call, cst.Call):
        return
    bound = [name for name, value in origins.bind(call, function).items() if value is arg.value]
    inner = [u for name in bound for u in index.names[name] if _is_parameter(origins, u, function)]
    if depth > _DEPTH or not bound or any(_grows(origins, u, depth + 1) for u in inner):
        yield Addition(call, None)


def _shuffled(call: cst.CSTNode, arg: cst.Arg) -> Iterator[Addition]:
    """`generator.shuffle(values)`: what they are is from now on the generator's choice, too."""
    if isinstance(call, cst.Call) and method(call) == "shuffle" and call.args[:1] == (arg,):
        yield Addition(call, (receiver(call),))


def _is_parameter(origins: Origins, use: cst.Name, function: cst.FunctionDef) -> bool:
    return any(d.kind == "param" and d.scope is function for d in reaching(origins.index, use))


def _grows(origins: Origins, use: cst.Name, depth: int) -> bool:
    """Whether something may be put in at this use of a parameter, or under another name that it gets here."""
    if any(_at(origins, use, depth)):
        return True
    index = origins.index
    holder = index.parents.get(use)
    if isinstance(holder, cst.Assign | cst.AnnAssign):
        targets = [t.target for t in holder.targets] if isinstance(holder, cst.Assign) else [holder.target]
        return any(_grows_as(origins, target, holder, depth) for target in targets)
    return isinstance(holder, cst.Return | cst.Element | cst.DictElement | cst.Yield)


def _grows_as(origins: Origins, target: cst.CSTNode, statement: cst.CSTNode, depth: int) -> bool:
    index = origins.index
    if depth > _DEPTH:
        return True
    if isinstance(target, cst.Attribute):
        return any(attribute_additions(origins, target.attr.value, depth + 1))
    if not isinstance(target, cst.Name):
        return True
    uses = [u for u in index.names[target.value] if any(d.statement is statement for d in reaching(index, u))]
    return any(_grows(origins, u, depth + 1) for u in uses)
