"""`tf.distribute` whatever a script does by it: its strategies become TensorFlow's own of one replica.

That strategy (`tf.distribute.get_strategy()` where no other is entered) does all that a strategy does, with one replica
that has the whole batch: it can be handed on, kept in attributes, made in a branch, and asked for values of replicas.
So nothing of how a script uses its strategies has to be understood; what makes one has.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import takewhile

import libcst as cst
import libcst.matchers as m

from ..catalogue import STRATEGIES, is_of_one_replica
from ..facts.program import Index, Names, Origins, Program, SourceFile
from .machines import asks_for_cluster, is_in_text, left_out
from .texts import Change, NotReadError, Span, Taken

MAKERS = frozenset(
    f"{STRATEGIES}.{name}"
    for name in (
        "MirroredStrategy",
        "MultiWorkerMirroredStrategy",
        "OneDeviceStrategy",
        "experimental.CentralStorageStrategy",
        "experimental.MultiWorkerMirroredStrategy",
    )
)
"""What makes a strategy whose replicas train together, step by step."""
_OF_ONE = "{} becomes TensorFlow's strategy of one replica, with the whole batch"
_COUNTED = "; its num_replicas_in_sync is 1, so that what is multiplied by it (batch, learning rate) is one replica's"
SUMMED = "; a loss that is not divided by the global batch was added up over the replicas, and is no longer"
RUNS = frozenset({"experimental_run_v2", "run"})
_RESOLVER = "cluster_resolver"
_OF_MODULE = f"{STRATEGIES}.{_RESOLVER}"
_RESOLVERS = frozenset(f"{_OF_MODULE}.{name}ClusterResolver" for name in ("Slurm", "TFConfig"))
_ONE_HOST = (
    '{0}.distribute.cluster_resolver.SimpleClusterResolver({0}.train.ClusterSpec({{"worker": ["localhost:0"]}}), '
    'task_type="worker", task_id=0)'
)
_OF_ONE_HOST = "{} is of one worker: `tfdp run` starts the workers"
_NO_HOSTS = "{} is left out: `tfdp run` starts the workers"
# Of a TPU that a script has looked for, and has not found: what looks for one that is needed is left to be refused.
_ON_TPU = frozenset((f"{STRATEGIES}.TPUStrategy", f"{STRATEGIES}.experimental.TPUStrategy"))
_DO_NOTHING = (
    STRATEGIES,
    "builtins.range",
    "builtins.len",
    "tensorflow.config.list_physical_devices",
    "tensorflow.config.experimental.list_physical_devices",
    "tensorflow.config.list_logical_devices",
    "tensorflow.config.experimental.list_logical_devices",
)
_STRATEGY = re.compile(r"(Central|Collective|Mirrored|MultiWorker|OneDevice|ParameterServer|TPU)\w*Strategy(V1)?$")


class OneReplica:
    """The strategies of one text, and what is left to be changed for them."""

    def __init__(self, module: cst.Module) -> None:
        self.file = SourceFile(module)
        self._index = Index(Program(self.file))
        self._names = Names(self._index)
        self._origins = Origins(self._index, self._names)

    def next_change(self) -> tuple[Change, Taken] | None:
        """The next one to be made, None where each strategy has one replica.

        Raises NotReadError where something makes a strategy, or asks for its hosts, in a way that is not understood.
        """
        makers = [c for c in self._index.calls if self._origins.called(c) in MAKERS]
        for gone in left_out(self.file, self._index, self._origins, has_strategy=bool(makers)):
            return gone
        for attribute in self._asked_hosts() if makers else ():
            return self._one_host(attribute, makers[0])
        tpus = [c for c in self._index.calls if self._origins.called(c) in _ON_TPU and c.args]
        resolvers = [c for c in self._index.calls if self._origins.called(c) in _RESOLVERS]
        made = {call.func for call in (*makers, *tpus, *resolvers)}
        if (makers and asks_for_cluster(self.file)) or any(self._is_unknown(*each) for each in self._named(made)):
            raise NotReadError
        for maker in (*makers, *tpus):
            return self._replaced(maker)
        return next((self._unread(resolver) for resolver in resolvers), None)

    def _named(self, made: set[cst.BaseExpression]) -> Iterator[tuple[str, cst.CSTNode]]:
        """All names and attributes but those of what makes strategies here."""
        for held in (self._index.names, self._index.attributes):
            for name, nodes in held.items():
                yield from ((name, node) for node in nodes if made.isdisjoint((node, self._index.parents[node])))

    def _asked_hosts(self) -> Iterator[cst.Attribute]:
        """`strategy.cluster_resolver`, whosever it is, where it is read."""
        for node in self._index.attributes.get(_RESOLVER, ()):
            of_module = (self._names.api(node) or "").startswith(_OF_MODULE)
            if isinstance(node, cst.Attribute) and not of_module and not self._index.is_target(node):
                yield node

    def _one_host(self, attribute: cst.Attribute, maker: cst.Call) -> tuple[Change, Taken]:
        """A resolver of one worker, which is the chief, in its place."""
        owner = _module(self._names, maker)
        tensorflow = owner.value if isinstance(owner, cst.Attribute) else None
        if tensorflow is None or is_in_text(self._index, attribute) or may_do(self._origins, attribute.value):
            raise NotReadError
        text = _ONE_HOST.format(self.file.code(tensorflow))
        said = _OF_ONE_HOST.format(self.file.code(attribute))
        return Change(span=Span(*self.file.span(attribute), text)), Taken(*self.file.position(attribute), said)

    def _is_unknown(self, name: str, node: cst.CSTNode) -> bool:
        api = self._names.api(node) or ""
        around = self._index.parents[node]
        if isinstance(around, cst.Annotation):
            return False
        if api == STRATEGIES:  # as a value, it may be asked for anything
            return not isinstance(around, cst.Attribute) or around.value is not node
        makes = (name == _RESOLVER and not api.startswith(_OF_MODULE)) or _STRATEGY.match(
            name
        ) is not None  # also where it is not known whose name it is
        is_known = is_of_one_replica(api) or api == _OF_MODULE
        return makes or (api.startswith(f"{STRATEGIES}.") and not is_known)

    def _replaced(self, maker: cst.Call) -> tuple[Change, Taken]:
        """`tf.distribute.get_strategy()` in place of the call."""
        held = _module(self._names, maker)
        if held is None or may_do(self._origins, maker):
            raise NotReadError
        said = _OF_ONE.format(self._origins.called(maker).replace("tensorflow.", "tf.", 1))
        said += _COUNTED if self._index.attributes.get("num_replicas_in_sync") else ""
        said += SUMMED if self._index.methods(*RUNS) else ""
        span = Span(*self.file.span(maker), f"{self.file.code(held)}.get_strategy()")
        return Change(span=span), Taken(*self.file.position(maker), said)

    def _unread(self, resolver: cst.Call) -> tuple[Change, Taken]:
        """The statement that asks a batch system for its hosts, which no strategy is given any more."""
        said = _NO_HOSTS.format(self._origins.called(resolver).replace("tensorflow.", "tf.", 1))
        return without_statement(self.file, self._index, self._origins, self._index.parents[resolver], said)


def _module(names: Names, maker: cst.Call) -> cst.BaseExpression | None:
    """`tf.distribute` in the call of what it holds; None where that has another name."""
    held: cst.BaseExpression = maker.func
    while isinstance(held, cst.Attribute) and names.api(held) != STRATEGIES:
        held = held.value
    return held if names.api(held) == STRATEGIES else None


def without_statement(
    file: SourceFile, index: Index, origins: Origins, assigned: cst.CSTNode, said: str
) -> tuple[Change, Taken]:
    """The text without the statement that makes something which nothing reads, and the comments right above it.

    Raises NotReadError where something may read it, or the statement does more than to make it.
    """
    line = index.parents[assigned]
    block = index.parents[line]
    target = assigned.targets[0].target if isinstance(assigned, cst.Assign) and len(assigned.targets) == 1 else None
    several = isinstance(block, cst.Module | cst.IndentedBlock) and len(block.body) > 1
    if not isinstance(line, cst.SimpleStatementLine) or len(line.body) > 1 or not several:
        raise NotReadError
    in_class = isinstance(index.parents.get(block), cst.ClassDef)  # read by instances, too
    if in_class or not isinstance(target, cst.Name) or may_do(origins, assigned):
        raise NotReadError
    if index.names[target.value]:
        raise NotReadError  # something reads it that is not followed
    first, last = file.span(line)
    above = len(list(takewhile(lambda each: each.comment is not None, reversed(line.leading_lines))))
    return Change(frozenset(range(first[0] - above, last[0] + 1))), Taken(*file.position(line), said)


def may_do(origins: Origins, node: cst.CSTNode) -> bool:
    """Whether what makes a strategy, and goes, does anything else."""
    calls = (call for call in m.findall(node, m.Call()) if isinstance(call, cst.Call))
    does = any(not origins.called(call).startswith(_DO_NOTHING) for call in calls)
    return does or bool(m.findall(node, m.NamedExpr() | m.Await() | m.Yield()))
