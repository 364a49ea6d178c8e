"""The same questions where every worker runs the whole script, on the same data and with the same random numbers."""

from __future__ import annotations

import re

import libcst as cst

from ...catalogue import Kind
from ..apis import HASHES
from ..data import Chain, Datasets
from ..program import Frames, Origins, literal_key, receiver
from .marks import SAME, Mark, Marks
from .values import Sameness

_DIFFER = frozenset({Mark.PROCESS, Mark.CHANCE})
"""What still differs: clocks, process numbers and the system's chance, and which files a worker finds."""

_FILES = re.compile(r"glob\.|pathlib(?!\.PurePath)|tensorflow\.(train|io)\.|tempfile\.|os\.|builtins\.open$")
_SEEDED = re.compile(r"(tensorflow|keras|numpy)\.random\.|random\.(?!SystemRandom)")
"""Made of the job's one seed, also where the script gives none."""


class SameData(Sameness):
    """Follows values to what each process makes for itself: examples, draws and the order of sets are the same."""

    def __init__(self, origins: Origins, datasets: Datasets) -> None:
        super().__init__(origins, datasets, (), (), metric=lambda _: None)

    def of(self, node: cst.CSTNode, frames: Frames = ()) -> Marks:
        """What is not understood is the same, too."""
        return super().of(node, frames) & _DIFFER

    def length(self, node: cst.CSTNode, frames: Frames = ()) -> Marks:
        return super().length(node, frames) & _DIFFER

    def compound(self, node: cst.CSTNode, frames: Frames) -> Marks:
        """Of a dictionary that is written out, an entry is asked by itself: a run's name beside its learning rate."""
        entries = self._entries(node) if isinstance(node, cst.Subscript) else None
        return super().compound(node, frames) if entries is None else self.all(entries, frames)

    def _entries(self, node: cst.Subscript) -> list[cst.BaseExpression] | None:
        """All that may stand under the key of a subscript; None where that is not known."""
        key, made = literal_key(node), [o.node for o in self._origins.of(node.value) if not o.path]
        dicts = [m for m in made if isinstance(m, cst.Dict)]
        if key is None or not dicts or len(dicts) < len(self._origins.of(node.value)):
            return None
        parts = [e for d in dicts for e in d.elements]
        stores = [(t, v) for t, v in self._index.subscript_stores.items() if self._is_one_of(t.value, dicts)]
        keys = [_text(e.key) if isinstance(e, cst.DictElement) else None for e in parts]
        changed = any(self._is_one_of(receiver(c), dicts) for c in self._index.methods("update", "setdefault"))
        if changed or None in keys or any(literal_key(t) is None for t, _ in stores):
            return None
        found = [e.value for e, named in zip(parts, keys, strict=True) if named == key]
        return found + [v for t, v in stores if literal_key(t) == key and isinstance(v, cst.BaseExpression)]

    def _is_one_of(self, node: cst.BaseExpression, dicts: list[cst.Dict]) -> bool:
        return any(o.node in dicts for o in self._origins.of(node))

    def named_call(self, call: cst.Call, api: str, frames: Frames) -> Marks:
        given = self.all((a.value for a in call.args), frames)
        if api == HASHES or _SEEDED.match(api):
            return given
        found = super().named_call(call, api, frames)
        return found if _FILES.match(api) else found - ({Mark.CHANCE} - given)

    def plain_attribute(self, node: cst.Attribute, frames: Frames) -> Marks:
        kept = self._origins.kinds(node.value) & {Kind.MODEL, Kind.CHECKPOINT, Kind.OPTIMIZER}
        return SAME if kept else super().plain_attribute(node, frames)

    def _receiver(self, func: cst.Attribute, frames: Frames) -> Marks:
        kept = self._origins.kinds(func.value) & {Kind.MODEL, Kind.CHECKPOINT, Kind.OPTIMIZER}
        return SAME if kept else super()._receiver(func, frames)

    def _variable(self, made: cst.Call, arguments: list[cst.BaseExpression], frames: Frames) -> Marks:
        return super()._variable(made, arguments, frames) - {Mark.CHANCE}

    def _batch(self, chains: tuple[Chain, ...]) -> Marks:  # noqa: ARG002 - as above
        return SAME


def _text(key: cst.BaseExpression) -> str | None:
    said = key.evaluated_value if isinstance(key, cst.SimpleString) else None
    return said if isinstance(said, str) else None
