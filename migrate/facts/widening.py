"""Whether a script's batch, its learning rates and its numbers of steps are understood well enough to be changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import libcst as cst

from .apis import RATES
from .program import Later, Problem, StepNumbers, argument, literal_key, nodes, parses_arguments
from .steps import Steps
from .training_file import TrainingFile

_KEEP = "use --batch global, which keeps the script's batch"
_CODES = frozenset({"TFDP010", "TFDP011", "TFDP014", "TFDP020", "TFDP053"})
_CONFIGURES = frozenset({"get_config", "from_config", "serialize", "deserialize"})


def unwidened(script: TrainingFile, steps: Steps, problems: Iterable[Problem]) -> Problem | None:
    """The first thing that is not understood; None where there is none.

    problems: what keeps the input from being sharded with a batch for each worker: of what makes the training data,
    counts steps, decides, or says the rate.
    """
    found = [p for p in problems if p.code in _CODES]
    return next(iter([*found, *script.batch_uses.problems, *_others(script, steps)]), None)


def _others(script: TrainingFile, steps: Steps) -> Iterator[Problem]:
    for point in script.shard_points:
        if point.batches:
            reason = "what makes these batches is not asked for larger ones"
            yield Problem("TFDP010", point.node, reason, _KEEP)
    for call in script.batches:
        if argument(call, "batch_size", 0) is None:
            yield Problem("TFDP010", call, "the size of these batches is not written here", _KEEP)
    sized = [*script.batches, *(f for f in script.fitted.data if f.arrays), *script.array_batches.sizes]
    trained = [*(g.call for g in script.trained), *(f.call for f in script.fitted.calls)]
    if not sized and trained:
        yield Problem("TFDP010", trained[0], "nothing here says how large a batch is", _KEEP)
    for asked in _by_step(script, steps):
        reason = "what is done here depends on the number of the step, of which there are fewer with larger batches"
        yield Problem("TFDP011", asked, reason, _KEEP)
    for end in steps.other_ends:
        reason = "training may end here by the number of steps, and what it is with larger batches is not known"
        yield Problem("TFDP011", end.node, reason, _KEEP)
    shares = [share for own in steps.own_schedules for share in own.shares]
    for counted in (*shares, *(decay.call for decay in steps.decays)):
        reason = "this counts the steps of the larger batch already, or falls by each of them"
        yield Problem("TFDP011", counted, reason, _KEEP)
    for node in (*script.rate_changes.places, *_read_back(script)):
        reason = "a learning rate is read, or changed while the script trains: the script's own, or that of all workers"
        yield Problem("TFDP020", node, reason, _KEEP)


def _by_step(script: TrainingFile, steps: Steps) -> Iterator[cst.CSTNode]:
    """Questions in a step whose answer may be another one at a later step, but those after which something is shown,
    and those by a number of steps that is divided."""
    pace = StepNumbers(script.origins, [loop.loop for loop in script.loops])
    shown = frozenset(effect.call for effect in script.written.effects)
    divided = {bound.node for bound in steps.bounds}
    for node in script.index.order:
        if not isinstance(node, cst.If | cst.IfExp | cst.While) or Later.COUNT not in pace.of(node.test):
            continue
        if pace.in_step(node) and divided.isdisjoint(nodes(node.test)) and not _shows(script, node, shown):
            yield node.test


def _shows(script: TrainingFile, node: cst.If | cst.IfExp | cst.While, shown: frozenset[cst.CSTNode]) -> bool:
    """Whether all that hangs on a question is what the script says or writes."""
    if isinstance(node, cst.IfExp):
        return any(above in shown for above in script.index.ancestors(node))
    ways = [node.body] if node.orelse is None else [node.body, node.orelse]
    return all(_is_shown(script, part, shown) for way in ways for part in _statements(way))


def _is_shown(script: TrainingFile, part: cst.CSTNode, shown: frozenset[cst.CSTNode]) -> bool:
    if isinstance(part, cst.If):
        return _shows(script, part, shown)
    return isinstance(part, cst.Pass) or (isinstance(part, cst.Expr) and part.value in shown)


def _statements(way: cst.CSTNode) -> Iterator[cst.CSTNode]:
    """The statements of one way; of an `elif` itself."""
    if isinstance(way, cst.If):
        yield way
        return
    body = way.body if isinstance(way, cst.IndentedBlock | cst.SimpleStatementSuite) else way.body.body  # type: ignore[attr-defined]
    for statement in body:
        yield from statement.body if isinstance(statement, cst.SimpleStatementLine) else [statement]


def _read_back(script: TrainingFile) -> Iterator[cst.CSTNode]:
    """Where a rate may be read: by its name, of all but arguments and own objects, or in an optimizer's settings."""
    index = script.index
    for name in (*RATES, *_CONFIGURES):
        for node in index.attributes.get(name, ()):
            if not index.is_target(node) and not _is_scripts_own(script, node):
                yield node
    for read in index.order:
        if isinstance(read, cst.Subscript) and literal_key(read) in RATES and not index.is_target(read):
            yield read


def _is_scripts_own(script: TrainingFile, node: cst.Attribute) -> bool:
    """Whether an attribute is of the command's arguments, or of an object of the file's own that is no optimizer."""
    origins = script.origins
    made = [o.node for o in origins.of(node.value) if not o.path]
    own = [origins.constructed(m) or (m if isinstance(m, cst.ClassDef) else None) for m in made]
    return bool(made) and all(
        not origins.below(owner, "keras.") if owner is not None else _parses(script, m)
        for m, owner in zip(made, own, strict=True)
    )


def _parses(script: TrainingFile, made: cst.CSTNode) -> bool:
    return isinstance(made, cst.Call) and parses_arguments(made, script.origins)
