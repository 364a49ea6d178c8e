"""Whether a script's batch, its learning rates and its numbers of steps are understood well enough to be changed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import replace

import libcst as cst

from ...outputs import EffectKind
from ..apis import RATES
from ..hazards import patched
from ..program import (
    Later,
    Problem,
    StepNumbers,
    argument,
    backward,
    hanging_on,
    leading,
    literal_key,
    method,
    nodes,
    number,
    parses_arguments,
    statements,
)
from ..rates import makes_schedule
from ..steps import Steps
from ..training_file import TrainingFile
from .counted import Counted
from .elsewhere import made_elsewhere, optimized_elsewhere, trained_elsewhere
from .means import Means
from .roles import other_roles, own_classes
from .settings import other_uses, unknown_settings
from .shown import only_shows
from .sizes import sizes_in_shapes
from .stepwise import Stepwise, is_first

_KEEP = "use --batch global, which keeps the script's batch"
_CODES = frozenset({"TFDP010", "TFDP011", "TFDP020", "TFDP030", "TFDP031"})
_NUMBERS = ("builtins.", "math.", "numpy.", "os.", "tensorflow.math.", "tensorflow.cast", "tfdp.")
_ASKED = frozenset({"get", "item", "numpy", "pop"})  # of a table, an array or a tensor
_CONFIGURES = frozenset({"get_config", "from_config", "serialize", "deserialize"})


def unwidened(script: TrainingFile, steps: Steps, problems: Iterable[Problem]) -> Problem | None:
    """The first thing that is not understood; None where there is none.

    problems: what is not understood of what makes the training data, counts steps, or says the rate.
    """
    found = [p for p in problems if p.code in _CODES]
    every = [*found, *_untold(script), *_losses(script), *_sizes(script), *_stepwise(script), *_others(script, steps)]
    every += _listed(script, steps)
    every += (replace(p, code="TFDP010", next_step=_KEEP) for p in patched(script.origins))
    return min(every, key=lambda p: (*script.position(p.node), p.code, p.reason), default=None)


def _untold(script: TrainingFile) -> Iterator[Problem]:
    """What trains without a learning rate, or with batches, that this file shows."""
    for node in trained_elsewhere(script):
        reason = "what is given here may be trained out of sight, with batches that stay as they are"
        yield Problem("TFDP010", node, reason, _KEEP)
    for node in made_elsewhere(script):
        reason = "what is made out of sight here may add sums to the loss, have a step of its own or count steps"
        yield Problem("TFDP010", node, reason, _KEEP)
    for call in optimized_elsewhere(script):
        yield Problem("TFDP020", call, "cannot tell which optimizer this is, and so what its learning rate is", _KEEP)
    sizes = [argument(call, "batch_size", 0) for call in script.batches]
    for size in (*(each.value for each in sizes if each is not None), *script.fitted.sizes):
        if any(_counts_examples(script, node) for node in backward(script.origins, [size])):
            yield Problem("TFDP010", size, "the size of these batches follows from the number of examples", _KEEP)


def _counts_examples(script: TrainingFile, node: cst.CSTNode) -> bool:
    if isinstance(node, cst.Attribute):
        return node.attr.value in {"shape", "size"}
    return isinstance(node, cst.Call) and (
        script.origins.called(node) == "builtins.len" or method(node) == "cardinality"
    )


def _losses(script: TrainingFile) -> Iterator[Problem]:
    """Losses that may be no means: of a sum over a larger batch the gradient grows by itself."""
    means = Means(script.origins)
    taped = (g for g in (*script.trained, *script.fitted.stepped) if not g.fed)
    places = [g.target or g.call for g in taped if g.target is None or not means.is_mean(g.target)]
    compiled = means.unknown(script.fitted.compiles)
    for place in (*places, *([compiled] if compiled is not None else [])):
        reason = "this is not known to be a mean over the batch, so that its gradients may grow with it"
        yield Problem("TFDP020", place, reason, _KEEP)


def _sizes(script: TrainingFile) -> Iterator[Problem]:
    arrays = script.array_batches
    computed = (script.sliced | script.keras_stepping.computed) - {*arrays.sizes, *arrays.divisors}
    for node in sizes_in_shapes(script.origins, script.batch_sizes.literals, computed):
        yield Problem("TFDP010", node, "the size of the batch is a number in what the loss is computed from", _KEEP)


def _listed(script: TrainingFile, steps: Steps) -> Iterator[Problem]:
    """What is done with the batch's size, the learning rates and the optimizers that no list has."""
    sizes, rates = other_roles(script, steps)
    for node in sizes:
        reason = "the size of the batch has a part in this, too, which would not follow a larger one"
        yield Problem("TFDP010", node, reason, _KEEP)
    for node in rates:
        reason = "the learning rate has a part in this, too, which would not follow another one"
        yield Problem("TFDP020", node, reason, _KEEP)
    for node in _made_unseen(script):
        reason = "cannot tell whether this is a number or a schedule, of which the length in steps would stay"
        yield Problem("TFDP020", node, reason, _KEEP)
    for node in unknown_settings(script.origins):
        reason = "this setting may count steps, of which there are fewer with larger batches"
        yield Problem("TFDP011", node, reason, _KEEP)
    for node in other_uses(script.origins):
        yield Problem("TFDP020", node, "cannot tell what is done to the optimizer here, or read of it", _KEEP)


def _made_unseen(script: TrainingFile) -> Iterator[cst.Call]:
    """Calls that give a learning rate, and that may give more than a number."""
    origins = script.origins
    for rate in script.rates:
        for origin in origins.of(rate.value) if rate.value is not None else ():
            if isinstance(origin.node, cst.Call) and not _gives_a_number(script, origin.node):
                yield origin.node


def _gives_a_number(script: TrainingFile, call: cst.Call) -> bool:
    """Whether a call gives no schedule, or one that is seen: functions of the file's own are looked into."""
    origins = script.origins
    if method(call) in _ASKED or origins.called(call).startswith(_NUMBERS):
        return True
    if origins.function(call.func) is not None or origins.lambda_of(call.func) is not None:
        return True
    return parses_arguments(call, origins) or makes_schedule(origins, call)


def _stepwise(script: TrainingFile) -> Iterable[Problem]:
    """What is trained that changes with the number of the step."""
    keras = script.keras_stepping
    stepwise = Stepwise(script.origins, [loop.loop for loop in script.loops], _counted(script), keras)
    return stepwise.problems((*script.trained, *script.fitted.stepped), script.sliced | keras.computed)


def _counted(script: TrainingFile) -> set[cst.For | cst.While]:
    """Loops of which the number says which examples a batch has."""
    return {loop for take in script.array_batches.takes if take.counted for loop in take.loops[:1]}


def _others(script: TrainingFile, steps: Steps) -> Iterator[Problem]:
    for call in script.batches:
        if argument(call, "batch_size", 0) is None:
            yield Problem("TFDP010", call, "the size of these batches is not written here", _KEEP)
    sized = [*script.batches, *(f for f in script.fitted.data if f.arrays), *script.array_batches.sizes]
    trained = [*(g.call for g in script.trained), *(f.call for f in script.fitted.calls)]
    if not sized and trained:
        yield Problem("TFDP010", trained[0], "nothing here says how large a batch is", _KEEP)
    for take in _drawn_apart(script):
        reason = "rows are drawn here in a number of their own, and cannot tell whether they are a batch, too"
        yield Problem("TFDP010", take, reason, _KEEP)
    for fit in _single_fits(script):
        reason = "this fits one epoch at a time in a loop, and what it is given there may be one batch"
        yield Problem("TFDP010", fit, reason, _KEEP)
    for hook in _hooked(script):
        reason = "this is done at each step, of which there are fewer with larger batches"
        yield Problem("TFDP011", hook, reason, _KEEP)
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
    for node in (*script.rate_changes, *_read_back(script)):
        reason = "a learning rate is read, or changed while the script trains: the script's own, or that of all workers"
        yield Problem("TFDP020", node, reason, _KEEP)


def _drawn_apart(script: TrainingFile) -> Iterator[cst.CSTNode]:
    """Rows that are drawn at random where other rows are taken by another size: negatives, shots, a background."""
    takes = script.array_batches.takes
    chained = (argument(call, "batch_size", 0) for call in script.batches)
    sizes = [each.value for each in chained if each is not None]
    sizes += [*script.fitted.sizes, *(size for take in takes for size in take.sizes)]
    written = {size.value if isinstance(size, cst.Integer) else script.batch_sizes.keys(size) for size in sizes}
    if len(written) > 1:
        yield from (take.node for take in takes if not take.counted)


def _single_fits(script: TrainingFile) -> Iterator[cst.Call]:
    """Fits of one epoch in a loop, as those on a replay memory: their batches are what the script takes at a time."""
    for fit in script.fitted.calls:
        epochs = argument(fit.call, "epochs", 3)
        once = epochs is None or number(epochs.value) == 1
        if once and any(script.index.loops_around(way) for way in leading(script.origins, [fit.call])):
            yield fit.call


def _hooked(script: TrainingFile) -> Iterator[cst.FunctionDef | cst.Lambda]:
    """What callbacks of the file's own do at each step, but to show something."""
    shown = _shown(script)
    for hook in script.keras_stepping.hooks:
        if isinstance(hook, cst.Lambda):
            only_says = hook.body in shown
        else:
            only_says = all(_is_text(part) or _is_shown(script, part, shown) for part in statements(hook.body))
        if not only_says:
            yield hook


def _is_text(part: cst.CSTNode) -> bool:
    return isinstance(part, cst.Expr) and isinstance(part.value, cst.SimpleString | cst.ConcatenatedString)


def _shown(script: TrainingFile) -> frozenset[cst.CSTNode]:
    """The calls that show what was computed from what there is."""
    return frozenset(effect.call for effect in script.written.effects if only_shows(script.origins, effect.call))


def _by_step(script: TrainingFile, steps: Steps) -> Iterator[cst.CSTNode]:
    """Questions in a step whose answer may be another one at a later step, but those after which something is shown,
    and those by a number of steps that is divided; and other uses of such a number."""
    loops = [loop.loop for loop in script.loops]
    pace = StepNumbers(script.origins, loops, unnumbered=_counted(script))
    shown = _shown(script)
    written = {effect.call for effect in script.written.effects if effect.kind is not EffectKind.PRINT}
    divided = {bound.node for bound in steps.bounds}
    asked = [node for node in script.index.order if isinstance(node, cst.If | cst.IfExp | cst.While)]
    shows = {node for node in asked if _shows(script, node, shown)}
    for node in asked:
        if Later.COUNT not in pace.of(node.test) or not pace.in_step(node):
            continue
        if divided.isdisjoint(nodes(node.test)) and (node not in shows or _writes_once(node, written)):
            yield node.test
    known = {*shows, *loops, *(node for node in asked if pace.in_step(node))}
    judged = {*script.sliced, *script.keras_stepping.computed, *own_classes(script)}
    yield from Counted(script.origins, pace, shown=shown, divided=divided, asked=known, judged=judged).odd()


def _shows(script: TrainingFile, node: cst.If | cst.IfExp | cst.While, shown: frozenset[cst.CSTNode]) -> bool:
    """Whether all that hangs on a question is what the script says or writes."""
    if isinstance(node, cst.IfExp):
        return any(above in shown for above in script.index.ancestors(node))
    return all(_is_shown(script, part, shown) for part in hanging_on(node))


def _writes_once(node: cst.If | cst.IfExp | cst.While, written: Collection[cst.CSTNode]) -> bool:
    """Whether one of the calls that write files is made at some steps by their number, which may never come where there
    are fewer: not in turn, nor at the first."""
    if any(isinstance(each, cst.Modulo) or is_first(each) for each in nodes(node.test)):
        return False
    return any(each in written for each in nodes(node))


def _is_shown(script: TrainingFile, part: cst.CSTNode, shown: frozenset[cst.CSTNode]) -> bool:
    if isinstance(part, cst.If):
        return _shows(script, part, shown)
    return isinstance(part, cst.Pass) or (isinstance(part, cst.Expr) and part.value in shown)


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
