"""Trackers of experiments: what a script asks of its run, which is rank 0's."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum
from functools import cached_property

import libcst as cst

from ... import outputs
from ..apis import FILLS_LISTS
from ..program import Origins, method, reaching

_HOLDS = (cst.Assign, cst.AnnAssign, cst.WithItem, cst.Element, cst.Return, cst.Lambda, cst.If, cst.UnaryOperation)

Use = cst.Call | cst.Attribute | cst.Name


class Ask(Enum):
    """What becomes of an expression of a tracker."""

    TELLS = "rank 0 makes the call; what the others have instead does nothing"
    STATES = "rank 0 alone can make the call, as a statement of its own"
    READS = "something of the run, or unknown, that the other ranks do not have"


class Trackers:
    """Finds what a script asks of wandb and mlflow, and of the objects that they make."""

    def __init__(self, origins: Origins) -> None:
        self._origins, self._index = origins, origins.index

    @cached_property
    def uses(self) -> tuple[tuple[Use, Ask], ...]:
        """Every use, in the order of the text, but where a run or what it gave only has a name."""
        bound = (d for names in self._index.definitions.values() for ds in names.values() for d in ds)
        if not any(d.api.partition(".")[0] in outputs.TRACKERS for d in bound):
            return ()
        found = dict(self._of_modules)
        made = {node for node, ask in self._of_modules.items() if ask is Ask.TELLS}
        found |= {node: ask for node, ask in self._of_objects(made) if node not in found}
        misplaced = {n for n, ask in found.items() if ask is Ask.TELLS and not self._is_held(n, found)}
        asked = [(n, Ask.READS if n in misplaced else ask) for n, ask in found.items()]
        asked = [(n, ask) for n, ask in asked if isinstance(n, cst.Call) or ask is Ask.READS]
        return tuple(sorted(asked, key=lambda use: self._index.order[use[0]]))

    @cached_property
    def _of_modules(self) -> dict[Use, Ask]:
        found: dict[Use, Ask] = {}
        for name in (n for names in self._index.names.values() for n in names):
            imported, node = self._imported(name), self._whole(name)
            if imported is None or self._is_harmless(node) or (node is name and "." not in imported):
                continue  # the module itself: `if wandb is not None:`
            dotted, call = self._dotted(node, imported), self._call_of(node)
            tells = outputs.TELLS_RUN.fullmatch(dotted) is not None
            if call is not None and (tells or outputs.TELLS_PRESENT_RUN.fullmatch(dotted)):
                found[call] = Ask.TELLS if tells else Ask.STATES
            elif not dotted.endswith(".__version__"):
                found[call or node] = Ask.READS
        return found

    def _imported(self, name: cst.Name) -> str | None:
        """The dotted name of a tracker's that a name stands for, also where it may stand for something else."""
        apis = [d.api for d in reaching(self._index, name) if d.kind == "import"]
        return next((api for api in apis if api.partition(".")[0] in outputs.TRACKERS), None)

    def _is_harmless(self, node: cst.CSTNode) -> bool:
        """Whether it stands in an annotation, or says which exceptions are caught."""
        above = list(self._index.ancestors(node))
        return isinstance(above[0], cst.ExceptHandler) or any(isinstance(n, cst.Annotation) for n in above)

    def _whole(self, node: cst.Name | cst.Attribute) -> cst.Name | cst.Attribute:
        """The whole of `run.summary.update`, of which a node is the beginning."""
        while isinstance(above := self._index.parents[node], cst.Attribute) and above.value is node:
            node = above
        return node

    def _dotted(self, node: cst.CSTNode, imported: str) -> str:
        if isinstance(node, cst.Attribute):
            return f"{self._dotted(node.value, imported)}.{node.attr.value}"
        return imported

    def _call_of(self, node: cst.CSTNode) -> cst.Call | None:
        call = self._index.parents[node]
        return call if isinstance(call, cst.Call) and call.func is node else None

    # --- objects ------------------------------------------------------------------------------------------------------

    def _of_objects(self, made: set[Use]) -> Iterator[tuple[Use, Ask]]:
        """What is asked of runs and artifacts that have a name."""
        kept = [a for name in self._index.attribute_stores for a in self._index.attributes.get(name, ())]
        nodes: list[cst.Name | cst.Attribute] = [n for names in self._index.names.values() for n in names]
        for node in (*nodes, *kept):
            of_a_module = self._index.is_target(node) or self._imported_root(node)
            if of_a_module or not any(o.node in made for o in self._origins.of(node)):
                continue
            whole = self._whole(node)
            stored = self._index.is_target(whole) or self._index.is_target(self._index.parents[whole])
            if (call := self._call_of(whole)) is not None and whole is not node:
                yield call, Ask.TELLS if self._is_told(call, made) else Ask.READS
            elif not stored:  # `run.summary["best"] = loss` tells
                yield whole, Ask.TELLS if whole is node else Ask.READS

    def _imported_root(self, node: cst.CSTNode) -> bool:
        while isinstance(node, cst.Attribute):
            node = node.value
        return isinstance(node, cst.Name) and self._imported(node) is not None

    def _is_told(self, call: cst.Call, made: set[Use]) -> bool:
        """Whether nothing is made of what a method gives but what goes to the tracker again."""
        inside = any(above in made for above in self._index.ancestors(call))
        return inside or isinstance(self._index.parents[call], cst.Expr | cst.WithItem)

    def _is_held(self, node: Use, found: dict[Use, Ask]) -> bool:
        """Whether a run, or a callback, goes where what does nothing can go in its stead."""
        child: cst.CSTNode = node
        parent = self._index.parents[node]
        while isinstance(parent, cst.IfExp) and child is not parent.test:
            child, parent = parent, self._index.parents[parent]
        if isinstance(parent, cst.Comparison):
            return all(isinstance(c.operator, cst.Is | cst.IsNot) for c in parent.comparisons)
        if not isinstance(parent, cst.Arg):
            return isinstance(parent, (*_HOLDS, cst.Expr, cst.IfExp, cst.NamedExpr))
        call = self._index.parents[parent]
        if any(above in found for above in (call, *self._index.ancestors(call))):
            return True
        own = isinstance(call, cst.Call) and (self._origins.function(call.func) or self._origins.constructed(call))
        return bool(own) or method(call) in FILLS_LISTS | {"fit", "CallbackList"}
