"""Trackers of experiments: what a script asks of its run, which is rank 0's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from functools import cached_property

import libcst as cst

from ..program import Origins, reaching

_TRACKERS = frozenset({"wandb", "mlflow"})
# What makes, tells or ends a run, and what the run is told of: of no value to the other ranks.
_KNOWN = re.compile(
    r"wandb\.(init|log|finish|join|save|watch|unwatch|alert|define_metric|log_artifact|log_code|log_model|login|setup"
    r"|termlog|termwarn|termerror|mark_preempting|require|Settings|Artifact|Image|Table|Histogram|Video|Audio|Html"
    r"|Plotly|Object3D|plot\.\w+|tensorboard\.patch|(integration\.)?keras\.\w+)"
    r"|mlflow\.(start_run|end_run|set_(tracking_uri|registry_uri|experiment|experiment_tags?|tags?)|delete_tag|log_\w+"
    r"|autolog|(enable|disable)_system_metrics_logging|set_system_metrics_\w+|models\.infer_signature|data\.from_\w+"
    r"|(tensorflow|keras)\.(autolog|log_model|save_model|M[Ll]flow(ModelCheckpoint)?Callback))"
)
# The same of the present run by a name of the module, under which the other ranks have none.
_PRESENT = re.compile(
    r"wandb\.(config\.(update|setdefaults?)|(run\.)?summary\.update|run\.(config\.update|log|log_artifact|log_code"
    r"|finish|alert|save|define_metric|mark_preempting))"
)
_TAKES_CALLBACKS = frozenset({"append", "extend", "insert", "fit", "CallbackList"})
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
        if not any(d.api.partition(".")[0] in _TRACKERS for d in bound):
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
            imported = self._imported(name)
            if imported is None or self._is_harmless(name):
                continue
            node, dotted = self._dotted(name, imported)
            call = self._index.parents[node]
            called = isinstance(call, cst.Call) and call.func is node
            if node is name and "." not in dotted:
                continue  # the module: `if wandb is not None:`
            if called and isinstance(call, cst.Call) and (_KNOWN.fullmatch(dotted) or _PRESENT.fullmatch(dotted)):
                found[call] = Ask.TELLS if _KNOWN.fullmatch(dotted) else Ask.STATES
            elif dotted.rpartition(".")[2] != "__version__":
                found[call if called and isinstance(call, cst.Call) else node] = Ask.READS
        return found

    def _imported(self, name: cst.Name) -> str | None:
        """The dotted name of a tracker's that a name stands for, also where it may stand for something else."""
        apis = [d.api for d in reaching(self._index, name) if d.kind == "import"]
        return next((api for api in apis if api.partition(".")[0] in _TRACKERS), None)

    def _is_harmless(self, name: cst.Name) -> bool:
        """Whether it stands in an annotation, or says which exceptions are caught."""
        around = self._index.ancestors(name)
        return any(isinstance(n, cst.Annotation) for n in around) or isinstance(
            self._index.parents.get(self._dotted(name, "")[0]), cst.ExceptHandler
        )

    def _dotted(self, name: cst.Name, imported: str) -> tuple[cst.Name | cst.Attribute, str]:
        """The whole of `wandb.run.log`, and its dotted name."""
        node: cst.Name | cst.Attribute = name
        while isinstance(above := self._index.parents.get(node), cst.Attribute) and above.value is node:
            node, imported = above, f"{imported}.{above.attr.value}"
        return node, imported

    # --- objects ------------------------------------------------------------------------------------------------------

    def _of_objects(self, made: set[Use]) -> Iterator[tuple[Use, Ask]]:
        """What is asked of runs and artifacts that have a name."""
        kept = [a for name in self._index.attribute_stores for a in self._index.attributes.get(name, ())]
        nodes: list[cst.Name | cst.Attribute] = [n for names in self._index.names.values() for n in names]
        for node in (*nodes, *kept):
            target = isinstance(node, cst.Attribute) and self._is_target(node)
            if target or self._imported_root(node) or not any(o.node in made for o in self._origins.of(node)):
                continue
            holder = self._index.parents[node]
            if not isinstance(holder, cst.Attribute) or holder.value is not node:
                if not self._is_stored_into(holder):
                    yield node, Ask.TELLS  # the object itself
                continue
            whole: cst.CSTNode = holder
            while isinstance(above := self._index.parents[whole], cst.Attribute) and above.value is whole:
                whole = above
            if isinstance(above, cst.Call) and above.func is whole:
                yield above, Ask.TELLS if self._is_told(above, made) else Ask.READS
            elif not self._is_stored_into(above) and isinstance(whole, cst.Attribute) and not self._is_target(whole):
                yield whole, Ask.READS

    def _imported_root(self, node: cst.CSTNode) -> bool:
        while isinstance(node, cst.Attribute):
            node = node.value
        return isinstance(node, cst.Name) and self._imported(node) is not None

    def _is_told(self, call: cst.Call, made: set[Use]) -> bool:
        """Whether nothing is made of what a method gives but what goes to the tracker again."""
        parent = self._index.parents[call]
        inside = any(above in made for above in self._index.ancestors(call))
        return inside or isinstance(parent, cst.Expr | cst.WithItem)

    def _is_stored_into(self, node: cst.CSTNode) -> bool:
        """`run.summary["best"] = loss`."""
        return isinstance(node, cst.Subscript) and node in self._index.subscript_stores

    def _is_target(self, node: cst.Attribute) -> bool:
        return any(target is node for target, _, _ in self._index.attribute_stores.get(node.attr.value, ()))

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
        func = call.func if isinstance(call, cst.Call) else None
        if func is None:
            return False
        own = self._origins.function(func) is not None or self._origins.constructed(call) is not None
        return own or (isinstance(func, cst.Attribute) and func.attr.value in _TAKES_CALLBACKS)
