"""What a call does outside the process: write a file, show, say, fetch."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from ... import outputs
from ...catalogue import SAVES, Kind
from ...outputs import EffectKind
from ..keras import is_fitted_model
from ..program import Origins, argument, method, receiver, within_itself

_WRITING = frozenset("wax+")


class Writers:
    """Tells the kind of each call, by what the names in it are."""

    def __init__(self, origins: Origins, models: Collection[cst.CSTNode] = ()) -> None:
        """models: what made the models that are fitted, where only that tells that they are models."""
        self._origins, self._models = origins, models

    def kind(self, call: cst.Call) -> EffectKind | None:
        """What a call does outside the process; None where it does nothing there, or may be made by every rank."""
        kind = outputs.FUNCTIONS.get(self._origins.called(call))
        if kind is None and self._origins.kind(call.func) is Kind.EVENTS:
            kind = EffectKind.EVENTS
        kind = kind or self._of_method(call)
        return kind if kind is not None and self._is_in_force(kind, call) else None

    def _is_in_force(self, kind: EffectKind, call: cst.Call) -> bool:
        """Whether nothing in the call says that it does not do what such calls do."""
        api = self._origins.called(call)
        match kind:
            case EffectKind.LOG_FILE:
                return argument(call, *outputs.LOG_FILES[api]) is not None
            case EffectKind.FOLDER | EffectKind.FOLDER_OF_PATH:
                imported = isinstance(call.func, cst.Name) and api == "os.mkdir"
                return not imported and argument(call, "exist_ok", 2) is None
            case EffectKind.OPEN | EffectKind.OPEN_FORMAT:
                return any(mode is None or _WRITING & set(mode) for mode in self._modes(call))
            case EffectKind.SAVE | EffectKind.SHOW:
                return not self._in_memory(call)
        return True

    def _modes(self, call: cst.Call) -> list[str | None]:
        """The modes in which a function, or the method of a path, may open a file; None for an unknown one."""
        position, default = outputs.ALL_OPENS.get(self._origins.called(call), (0, "r"))
        given = argument(call, "mode", position) if position is not None else None
        texts = [o.node for o in self._origins.of(given.value)] if given is not None else []
        said = [str(t.evaluated_value) if isinstance(t, cst.SimpleString) else None for t in texts]
        return said if given is not None else [default]

    # --- methods ------------------------------------------------------------------------------------------------------

    def _of_method(self, call: cst.Call) -> EffectKind | None:
        name = method(call)
        if not name:
            return None
        holder = receiver(call)
        if self._saves(call):
            return EffectKind.SAVE
        if name == "summary" and self._models and Kind.MODEL in self._kinds(holder):
            return EffectKind.SHOW
        kinds = {maker: kind for maker, (names, kind) in outputs.METHODS.items() if name in names}
        makers = self._makers(holder) if kinds else set()
        found = (kind for maker, kind in kinds.items() if any(m.startswith(maker) for m in makers))
        of_path = outputs.PATH_METHODS[name] if name in outputs.PATH_METHODS and self.is_path(holder) else None
        return next(found, of_path)

    def _makers(self, node: cst.CSTNode, depth: int = 0) -> set[str]:
        """Names of the functions that may have made an object, itself or through its methods or parts."""
        found: set[str] = set()
        for made in (o.node for o in self._origins.of(node)):
            api = self._origins.called(made) or self._origins.names.api(made)
            if api:
                found.add(api)
            elif isinstance(made, cst.Call) and method(made) and depth < 5:
                found |= self._makers(receiver(made), depth + 1)
            elif isinstance(made, cst.Subscript) and depth < 5:  # rows of a table
                found |= self._makers(made.value, depth + 1)
        return found

    @within_itself(False)
    def is_path(self, node: cst.CSTNode) -> bool:
        """Whether the value is a pathlib.Path."""
        return any(self._makes_path(o.node) for o in self._origins.of(node))

    def _makes_path(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call):
            steps = method(node) in outputs.PATH_STEPS and self.is_path(receiver(node))
            return steps or self._origins.called(node).startswith("pathlib.")
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
            return self.is_path(node.left) or self.is_path(node.right)
        return isinstance(node, cst.Attribute) and node.attr.value == "parent" and self.is_path(node.value)

    def _in_memory(self, call: cst.Call) -> bool:
        """Whether the call writes into a buffer, which the same rank reads again."""
        return any(
            self._origins.called(o.node) in outputs.BUFFERS for a in call.args for o in self._origins.of(a.value)
        )

    def _saves(self, call: cst.Call) -> bool:
        """Whether it is a model's or a checkpoint's method that saves it."""
        saved = [kind for kind, names in SAVES.items() if method(call) in names]
        return (
            bool(saved)
            and self._origins.function(call.func) is None
            and not self._kinds(receiver(call)).isdisjoint(saved)
        )

    def _kinds(self, holder: cst.BaseExpression) -> set[Kind | None]:
        fitted = any(o.node in self._models for o in self._origins.of(holder)) or is_fitted_model(self._origins, holder)
        return self._origins.kinds(holder) | ({Kind.MODEL} if fitted else set())
