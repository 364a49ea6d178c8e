"""Training in other files: what is known of names that a script imports, and where it uses them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import libcst as cst

from ..program import Origins, method, receiver

_CALLED = "__call__"


@dataclass(frozen=True)
class Elsewhere:
    """Where a name that is imported trains: `steps.py:12`.

    `system` is where its file distributes training by another system, or TensorFlow 1 trains, and `code` the rule that
    says so.
    """

    place: str
    system: str = ""
    code: str = ""


def imported_training(origins: Origins, known: Mapping[str, Elsewhere]) -> dict[cst.CSTNode, Elsewhere]:
    """The calls of such names, and the places that hand one on: `{"ddpg": ddpg.run}`."""
    found: dict[cst.CSTNode, Elsewhere] = {}
    for call in origins.index.calls:
        told = next((known[name] for name in _names_of(origins, call) if name in known), None)
        if told is not None:
            found[call] = told
    for name, told in known.items():
        found.update(dict.fromkeys(_handed_on(origins, name), told))
    return found


def _names_of(origins: Origins, call: cst.Call) -> Iterator[str]:
    """What a call may be called by, as `steps.train` and `steps.Trainer.train`; a class of the file may have the method
    of an imported one."""
    if api := origins.called(call):
        yield api
        return
    name = method(call) or _CALLED
    holder = receiver(call) if method(call) else call.func
    around = origins.index.class_around(holder) if origins.is_super(holder) else None
    for made in [around] if around is not None else [o.node for o in origins.of(holder)]:
        owner = made if isinstance(made, cst.ClassDef) else origins.constructed(made)
        if owner is None:
            yield f"{origins.called(made)}.{name}"
        elif around is not None or origins.method(owner, name) is None:
            yield from (f"{base}.{name}" for base in origins.bases(owner))


def _handed_on(origins: Origins, name: str) -> Iterator[cst.CSTNode]:
    last = name.rpartition(".")[2]
    uses = (*origins.index.names.get(last, ()), *origins.index.attributes.get(last, ()))
    for use in uses:
        holder = origins.index.parents.get(use)
        if isinstance(holder, cst.Arg | cst.BaseElement | cst.DictElement) and origins.names.api(use) == name:
            yield use
