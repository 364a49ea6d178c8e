"""What a script says about its GPU, which is the same one for every worker unless it is taken out."""

from __future__ import annotations

import re
from functools import cached_property

import libcst as cst

from ..program import Index, Origins, Problem, argument, nodes, reaching

_VISIBLE = "CUDA_VISIBLE_DEVICES"
_SETS = frozenset({"os.environ.setdefault", "os.environ.update", "os.putenv"})
_CHOOSES = frozenset({"tensorflow.config.set_visible_devices", "tensorflow.config.experimental.set_visible_devices"})
_DEVICES = frozenset({"tensorflow.device", "tensorflow.compat.v1.device"})
_CONFIGS = frozenset({"tensorflow.compat.v1.ConfigProto", "tensorflow.ConfigProto", "tensorflow.compat.v1.GPUOptions"})
_SESSIONS = frozenset({"tensorflow.compat.v1.Session", "tensorflow.compat.v1.InteractiveSession"})
_CARRIES = frozenset({"tensorflow.compat.v1.keras.backend.set_session", "keras.backend.set_session"})
_NAME = re.compile(r"(/job:localhost)?/?(device:)?(?P<kind>[a-z_]+):(?P<number>\d+)", re.IGNORECASE)
_REASON = "the script chooses its GPU itself, the same one for every worker"
_NEXT = "remove the choice; dp.pin_gpu() gives each worker its own GPU"


class Devices:
    """Finds the choices of a GPU: statements that can go, device names, and what stays to be refused."""

    def __init__(self, origins: Origins) -> None:
        self._origins = origins

    @property
    def _index(self) -> Index:
        return self._origins.index

    @cached_property
    def choices(self) -> tuple[cst.BaseSmallStatement, ...]:
        """Statements that do nothing but choose a GPU or configure a session for it."""
        found = [s for s in self._choosing if s is not None]
        return tuple(dict.fromkeys((*found, *self._session_statements)))

    @cached_property
    def others(self) -> tuple[cst.SimpleString, ...]:
        """Names of GPUs in `tf.device` other than the first, which is each worker's own."""
        return tuple(self._named)

    @cached_property
    def carried(self) -> frozenset[cst.CSTNode]:
        """Calls of TensorFlow 1 that go with the choices."""
        return frozenset(n for s in self._session_statements for n in nodes(s) if isinstance(n, cst.Call))

    @cached_property
    def problems(self) -> tuple[Problem, ...]:
        """Choices that cannot be taken out."""
        found = [Problem("TFDP002", node, _REASON, _NEXT) for node in self._stuck]
        computed = [n for n in self._named if not isinstance(n, cst.SimpleString)]
        reason = "which GPU this is, is computed; every worker has one only"
        return (
            *found,
            *(Problem("TFDP002", n, reason, 'write tf.device("/gpu:0"), or leave it out') for n in computed),
        )

    # --- CUDA_VISIBLE_DEVICES, set_visible_devices --------------------------------------------------------------------

    @cached_property
    def _places(self) -> list[tuple[cst.CSTNode, cst.BaseSmallStatement | None]]:
        """Each choice, with the statement that holds nothing else."""
        found: list[tuple[cst.CSTNode, cst.BaseSmallStatement | None]] = []
        for call in self._index.calls:
            api = self._origins.names.api(call.func) or ""
            parent = self._index.parents[call]
            alone = parent if isinstance(parent, cst.Expr) else None
            if api in _CHOOSES and self._of_gpus(call):
                found.append((call, alone))
            elif api in _SETS and any(_text(n) == _VISIBLE for n in nodes(call)) and not self._hides(call):
                found.append((call, alone if api != "os.environ.update" or self._only(call) else None))
        for place, value in self._index.subscript_stores.items():
            if self._is_visible(place) and not _none_visible(value):
                statement = self._index.statement_of(place)
                simple = isinstance(statement, cst.Assign) and len(statement.targets) == 1
                found.append((place, statement if simple and isinstance(statement, cst.Assign) else None))
        return found

    @property
    def _choosing(self) -> list[cst.BaseSmallStatement | None]:
        return [statement for _, statement in self._places]

    @property
    def _stuck(self) -> list[cst.CSTNode]:
        return [place for place, statement in self._places if statement is None]

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
    def _named(self) -> list[cst.SimpleString]:
        found: dict[cst.SimpleString, None] = {}
        calls = [c for c in self._index.calls if self._origins.names.api(c.func) in _DEVICES and c.args]
        for text in (o.node for c in calls for o in self._origins.of(c.args[0].value)):
            match = _NAME.fullmatch(_text(text) or "")
            if isinstance(text, cst.SimpleString) and match and match["kind"].upper() == "GPU" and int(match["number"]):
                found[text] = None
        return list(found)

    # --- TensorFlow 1's configuration ---------------------------------------------------------------------------------

    @cached_property
    def _session_statements(self) -> tuple[cst.BaseSmallStatement, ...]:
        """`config = ConfigProto()`, what is set in it, and a session that is made with it and used for nothing."""
        made = [c for c in self._index.calls if self._origins.names.api(c.func) in _CONFIGS | _SESSIONS]
        found: dict[cst.BaseSmallStatement, None] = {}
        for call in made:
            statement = self._index.statement_of(call)
            if isinstance(statement, cst.Assign | cst.Expr):
                found[statement] = None
            else:
                return ()
        names = {
            d.name: d
            for scoped in self._index.definitions.values()
            for definitions in scoped.values()
            for d in definitions
            if d.statement in found
        }
        for name, definition in names.items():
            for use in self._index.names.get(name, ()):
                if definition not in reaching(self._index, use):
                    continue
                statement = self._index.statement_of(use)
                stores = isinstance(statement, cst.Assign) and _root(statement.targets[0].target) is use
                if not isinstance(statement, cst.Assign | cst.Expr) or not (
                    statement in found or stores or self._carries(statement)
                ):
                    return ()
                found[statement] = None
        carriers = [c for c in self._index.calls if self._origins.names.api(c.func) in _CARRIES]
        if any(self._index.statement_of(c) not in found and not self._around(c, made) for c in carriers):
            return ()
        return tuple(found)

    def _carries(self, statement: cst.CSTNode) -> bool:
        value = statement.value if isinstance(statement, cst.Expr) else None
        return isinstance(value, cst.Call) and self._origins.names.api(value.func) in _CARRIES

    def _around(self, carrier: cst.Call, made: list[cst.Call]) -> bool:
        inside = set(nodes(carrier))
        return any(m in inside for m in made)


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
