"""What a script says about its GPU, which is the same one for every worker unless it is taken out."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from ..apis import CHOOSES_DEVICES, CONFIGURES_SESSION, SETS_ENVIRONMENT, SETS_SESSION
from ..program import Origins, Problem, argument, nodes, uses

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_NAME = re.compile(r"(/job:localhost)?/?(device:)?(?P<kind>[a-z_]+):(?P<number>\d+)", re.IGNORECASE)
_REASON = "the script chooses its GPU itself, the same one for every worker"
_NEXT = "remove the choice; dp.pin_gpu() gives each worker its own GPU"


class Devices:
    """Finds the choices of a GPU: statements that can go, device names, and what stays to be refused."""

    def __init__(self, origins: Origins) -> None:
        self._origins, self._index = origins, origins.index

    @cached_property
    def choices(self) -> tuple[cst.BaseSmallStatement, ...]:
        """Statements that do nothing but choose a GPU or configure a session for it."""
        found = [statement for _, statement in self._places if statement is not None]
        return tuple(dict.fromkeys((*found, *self._session_statements)))

    @cached_property
    def carried(self) -> frozenset[cst.CSTNode]:
        """Calls of TensorFlow 1 that go with the choices."""
        return frozenset(n for s in self._session_statements for n in nodes(s) if isinstance(n, cst.Call))

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Choices that cannot be taken out."""
        return tuple(Problem("TFDP002", place, _REASON, _NEXT) for place, alone in self._places if alone is None)

    # --- CUDA_VISIBLE_DEVICES, set_visible_devices --------------------------------------------------------------------

    @cached_property
    def _places(self) -> list[tuple[cst.CSTNode, cst.BaseSmallStatement | None]]:
        """Each choice, with the statement that holds nothing else."""
        found: list[tuple[cst.CSTNode, cst.BaseSmallStatement | None]] = []
        for call in self._origins.calls_to(*CHOOSES_DEVICES, *SETS_ENVIRONMENT):
            api, parent = self._origins.called(call), self._index.parents[call]
            alone = parent if isinstance(parent, cst.Expr) else None
            if api in CHOOSES_DEVICES:
                found += [(call, alone)] if self._of_gpus(call) else []
            elif any(_text(n) == _VISIBLE for n in nodes(call)) and not self._hides(call):
                found.append((call, alone if api != "os.environ.update" or self._only(call) else None))
        for place, value in self._index.subscript_stores.items():
            if self._is_visible(place) and not _none_visible(value):
                statement = self._index.statement_of(place)
                simple = isinstance(statement, cst.Assign) and len(statement.targets) == 1
                found.append((place, statement if simple and isinstance(statement, cst.Assign) else None))
        return found

    def _of_gpus(self, call: cst.Call) -> bool:
        """Whether GPUs are chosen: not CPUs, and not none of them."""
        kind, devices = argument(call, "device_type", 1), argument(call, "devices", 0)
        if kind is not None and _text(kind.value) == "CPU":
            return False
        return not (devices is not None and isinstance(devices.value, cst.List) and not devices.value.elements)

    def _hides(self, call: cst.Call) -> bool:
        return len(call.args) > 1 and _none_visible(call.args[1].value)

    def _only(self, call: cst.Call) -> bool:
        value = call.args[0].value if len(call.args) == 1 else None
        if isinstance(value, cst.Dict):
            return len(value.elements) == 1
        return len(call.args) == 1 and call.args[0].keyword is not None

    def _is_visible(self, place: cst.Subscript) -> bool:
        key = place.slice[0].slice
        environ = self._origins.names.api(place.value) == "os.environ"
        return environ and isinstance(key, cst.Index) and _text(key.value) == _VISIBLE

    # --- tf.device ----------------------------------------------------------------------------------------------------

    @cached_property
    def others(self) -> tuple[cst.SimpleString, ...]:
        """Names of GPUs in `tf.device` other than the first, which is each worker's own."""
        calls = [c for c in self._origins.calls_to("tensorflow.device", "tensorflow.compat.v1.device") if c.args]
        made = dict.fromkeys(o.node for c in calls for o in self._origins.of(c.args[0].value))
        texts = [(n, _NAME.fullmatch(str(n.evaluated_value))) for n in made if isinstance(n, cst.SimpleString)]
        return tuple(n for n, m in texts if m is not None and m["kind"].upper() == "GPU" and int(m["number"]))

    # --- TensorFlow 1's configuration ---------------------------------------------------------------------------------

    @cached_property
    def _session_statements(self) -> tuple[cst.BaseSmallStatement, ...]:
        """`config = ConfigProto()`, what is set in it, and a session that is made with it and used for nothing."""
        made = self._origins.calls_to(*CONFIGURES_SESSION)
        statements = [self._index.statement_of(call) for call in made]
        found = {s: None for s in statements if isinstance(s, cst.Assign | cst.Expr)}
        if any(s not in found for s in statements):
            return ()
        for use in [use for s in statements for d in self._index.bound[s] for use in uses(self._index, d)]:
            statement = self._index.statement_of(use)
            if isinstance(statement, cst.Assign):
                alone = _root(statement.targets[0].target) is use
            else:
                alone = isinstance(statement, cst.Expr) and self._origins.called(statement.value) in SETS_SESSION
            if not isinstance(statement, cst.Assign | cst.Expr) or not (statement in found or alone):
                return ()
            found[statement] = None
        apart = [c for c in self._origins.calls_to(*SETS_SESSION) if self._index.statement_of(c) not in found]
        return tuple(found) if all(set(made).intersection(nodes(c)) for c in apart) else ()


def _root(node: cst.CSTNode) -> cst.CSTNode:
    while isinstance(node, cst.Attribute | cst.Subscript):
        node = node.value
    return node


def _none_visible(value: cst.CSTNode) -> bool:
    return _text(value) in {"", "-1"}


def _text(node: cst.CSTNode) -> str | None:
    """A string, or the name of a keyword."""
    if isinstance(node, cst.Arg):
        return node.keyword.value if node.keyword is not None else None
    return str(node.evaluated_value) if isinstance(node, cst.SimpleString) else None
