"""The same questions where every worker runs the whole script, on the same data and with the same random numbers."""

from __future__ import annotations

import re

import libcst as cst

from ...catalogue import Kind
from ..apis import HASHES
from ..data import Chain, Datasets
from ..program import Frames, Origins
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
