"""What a call does outside the process: write a file, show, say, fetch."""

from __future__ import annotations

from collections.abc import Collection

import libcst as cst

from ... import outputs
from ...catalogue import SAVES, Kind
from ..keras import is_fitted_model
from ..program import Origins, argument, within_itself

_WRITING = frozenset("wax+")


class Writers:
    """Tells the kind of each call, by what the names in it are."""

    def __init__(self, origins: Origins, models: Collection[cst.CSTNode] = ()) -> None:
        """models: what made the models that are fitted, where only that tells that they are models."""
        self._origins, self._models = origins, models

    def kind(self, call: cst.Call) -> str | None:
        """save, show, print, events, progress, folder (of os), path (a folder of pathlib), open, format (a file that
        the null device cannot stand for), log file, fetch, once (a download, a command of the shell); None for a call
        without an effect."""
        api = self._origins.names.api(call.func) or ""
        if api in outputs.PRINTS:
            return "print"
        if api in outputs.PROGRESS:
            return None if argument(call, outputs.PROGRESS[api]) else "progress"
        if self._origins.kind(call.func) is Kind.EVENTS:
            return "events"
        if api in {"os.makedirs", "os.mkdir"}:
            bare = isinstance(call.func, cst.Name) and api == "os.mkdir"
            return None if bare or argument(call, "exist_ok") else "folder"
        if api in outputs.LOG_FILES:
            return "log file" if argument(call, *outputs.LOG_FILES[api]) is not None else None
        for table, kind in ((outputs.OPENS, "open"), (outputs.OPENS_FORMAT, "format")):
            if api in table:
                return kind if self.writing(call, *table[api]) else None
        for names, kind in ((outputs.WRITES, "save"), (outputs.SHOWS, "show")):
            if api in names:
                return None if self._in_memory(call) else kind
        if api in outputs.FETCHES or api in outputs.ONCE:
            return "fetch" if api in outputs.FETCHES else "once"
        return self._method(call)

    def writing(self, call: cst.Call, position: int | None, default: str) -> bool:
        """Whether the file is opened to be written, or may be: the mode of the call, else the default one."""
        mode = argument(call, "mode", position) if position is not None else None
        if mode is None:
            return bool(_WRITING & set(default))
        texts = [o.node for o in self._origins.of(mode.value)]
        return any(not isinstance(t, cst.SimpleString) or _WRITING & set(str(t.evaluated_value)) for t in texts)

    def mode(self, call: cst.Call, position: int | None, default: str) -> str | None:
        """The mode in which a file is opened; None where it is not one certain text."""
        mode = argument(call, "mode", position) if position is not None else None
        if mode is None:
            return default
        origin = self._origins.one(mode.value)
        return str(origin.node.evaluated_value) if origin and isinstance(origin.node, cst.SimpleString) else None

    def _method(self, call: cst.Call) -> str | None:
        if not isinstance(call.func, cst.Attribute):
            return None
        name, holder = call.func.attr.value, call.func.value
        if self._saves(call.func):
            return "save"
        if name == "summary" and self._models and Kind.MODEL in self._kinds(holder):
            return "show"
        makers = self._makers(holder)
        if name in outputs.LOGS and makers & outputs.LOGGERS:
            return "print"
        if name == "savefig" and makers & outputs.FIGURES:
            return None if self._in_memory(call) else "show"
        for table, kind in ((outputs.FETCHERS, "fetch"), (outputs.EXTRACTS, "once")):
            if any(name in methods and any(m.startswith(e) for m in makers) for e, methods in table.items()):
                return kind
        for maker, methods in outputs.METHODS.items():
            if name in methods and any(m.startswith(maker) for m in makers):
                return None if self._in_memory(call) else "save"
        if name in {"mkdir", "open", *outputs.PATH_WRITES} and self.is_path(holder):
            if name == "mkdir":
                return "path" if not argument(call, "exist_ok", 2) else None
            return "save" if name != "open" else "open" if self.writing(call, 0, "r") else None
        return None

    def _makers(self, node: cst.CSTNode, depth: int = 0) -> set[str]:
        """Names of the functions that may have made an object, itself or through its methods."""
        found: set[str] = set()
        for origin in self._origins.of(node):
            made = origin.node
            api = self._origins.names.api(made.func) if isinstance(made, cst.Call) else self._origins.names.api(made)
            if api is not None:
                found.add(api)
            elif isinstance(made, cst.Call) and isinstance(made.func, cst.Attribute) and depth < 5:
                found |= self._makers(made.func.value, depth + 1)
        return found

    @within_itself(False)
    def is_path(self, node: cst.CSTNode) -> bool:
        """Whether the value is a pathlib.Path."""
        return any(self._makes_path(o.node) for o in self._origins.of(node))

    def _makes_path(self, node: cst.CSTNode) -> bool:
        if isinstance(node, cst.Call):
            steps = isinstance(node.func, cst.Attribute) and node.func.attr.value in outputs.PATH_STEPS
            return (self._origins.names.api(node.func) or "").startswith("pathlib.") or (
                steps and isinstance(node.func, cst.Attribute) and self.is_path(node.func.value)
            )
        if isinstance(node, cst.BinaryOperation) and isinstance(node.operator, cst.Divide):
            return self.is_path(node.left) or self.is_path(node.right)
        return isinstance(node, cst.Attribute) and node.attr.value == "parent" and self.is_path(node.value)

    def _in_memory(self, call: cst.Call) -> bool:
        """Whether the call writes into a buffer, which the same rank reads again."""
        made = [o.node for a in call.args[:1] for o in self._origins.of(a.value)]
        return any(isinstance(m, cst.Call) and self._origins.names.api(m.func) in outputs.BUFFERS for m in made)

    def reads(self, call: cst.Call) -> bool:
        """Whether the call reads a file."""
        api = self._origins.names.api(call.func) or ""
        if api in outputs.READERS:
            return True
        if api in outputs.OPENS or api in outputs.OPENS_FORMAT:
            return self.kind(call) is None
        if not isinstance(call.func, cst.Attribute):
            return False
        if call.func.attr.value in {"open", "read_text", "read_bytes"}:
            return self.is_path(call.func.value) and self.kind(call) is None
        if call.func.attr.value in outputs.FOLDER_READERS:
            return self.is_path(call.func.value)
        if call.func.attr.value == outputs.READS_FOLDER:
            return True
        if call.func.attr.value not in outputs.READS:
            return False
        return bool(self._kinds(call.func.value) & {Kind.MODEL, Kind.CHECKPOINT})

    def may_read(self, reading: cst.Call, writing: cst.Call | cst.Attribute | cst.Name) -> bool:
        """Whether a call may read what another has written: images, records and tables are no models, nor arrays."""
        api = self._origins.names.api(reading.func)
        data = isinstance(reading.func, cst.Attribute) and reading.func.attr.value == outputs.READS_FOLDER
        if not isinstance(writing, cst.Call) or not (data or api in outputs.DATA_READERS):
            return True
        arrays = self._origins.names.api(writing.func) in outputs.ARRAY_WRITES and api not in outputs.ARRAY_READERS
        return not (arrays or self._writes_model(writing))

    def _writes_model(self, call: cst.Call) -> bool:
        if self._origins.names.api(call.func) in outputs.MODEL_WRITES:
            return True
        return isinstance(call.func, cst.Attribute) and self._saves(call.func)

    def _saves(self, method: cst.Attribute) -> bool:
        """Whether it is a model's or a checkpoint's method."""
        name = method.attr.value
        if not any(name in methods for methods in SAVES.values()) or self._origins.function(method) is not None:
            return False
        kinds = self._kinds(method.value)
        return any(name in methods and kind in kinds for kind, methods in SAVES.items())

    def reads_model(self, call: cst.Call) -> bool:
        """Whether the call may read what Keras' callbacks write."""
        api = self._origins.names.api(call.func) or ""
        method = call.func.attr.value if isinstance(call.func, cst.Attribute) else ""
        return api in outputs.READERS_OF_CALLBACKS or (not api and method in outputs.READS and self.reads(call))

    def _kinds(self, holder: cst.BaseExpression) -> set[Kind | None]:
        fitted = any(o.node in self._models for o in self._origins.of(holder)) or is_fitted_model(self._origins, holder)
        return self._origins.kinds(holder) | ({Kind.MODEL} if fitted else set())
