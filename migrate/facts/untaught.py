"""Ways to train, and places in training loops, that no rule migrates: each is named, none is passed over in silence."""

from __future__ import annotations

import libcst as cst

from ..catalogue import (
    NAMED_SYSTEMS,
    OTHER_SYSTEMS,
    STRATEGIES,
    STRATEGY_PREFIXES,
    TF1_PREFIXES,
    UPDATES,
    VARIABLE_COLLECTIONS,
    Kind,
    is_of_one_replica,
)
from .data import Chain
from .other_training import other_training
from .program import Problem, Unknown, last_name, method, receiver, spelled, unfollowed
from .training import Gradient, Untaped, changes_its_sources
from .training_file import TrainingFile

_TPU = (
    f"{STRATEGIES}.cluster_resolver.TPUClusterResolver",
    f"{STRATEGIES}.TPUStrategy",
    f"{STRATEGIES}.experimental.TPUStrategy",
)
_BY_HAND = "migrate this part by hand with tfdp.runtime; the automatic rule for it does not exist yet"


def untaught(script: TrainingFile) -> list[Problem]:
    """Ways to train that are recognised but not migrated."""
    reason = "models that this function makes and compiles are trained outside the file, if at all"
    next_step = "train them by fit in this file"
    handed = [Problem("TFDP031", node, reason, next_step) for node in script.fitted.handed_models]
    found = [p for call in script.index.methods("minimize", *UPDATES) if (p := _untaught(script, call)) is not None]
    written = _written_out(script)
    tapes = (*_unknown_tapes(script), *_tensor_updates(script), *written, *_untaped(script, written))
    return [*handed, *found, *other_training(script), *tapes, *_in_other_files(script)]


def _in_other_files(script: TrainingFile) -> list[Problem]:
    """Calls that train by another file's code, where the script trains by nothing else."""
    if script.trained or script.fitted.calls:
        return []
    next_step = "put the training step and the loop around it into one file"
    reason = "this trains in another file ({}), whose code is left alone"
    return [Problem("TFDP010", c, reason.format(e.place), next_step) for c, e in script.elsewhere.items()]


def without_tape(script: TrainingFile) -> list[Problem]:
    """Variables that are trained step by step without a gradient tape."""
    written = _written_out(script)
    return [*written, *_untaped(script, written)]


def _untaught(script: TrainingFile, call: cst.Call) -> Problem | None:
    if script.origins.function(call.func) is not None:
        return None
    name, kinds = method(call), script.origins.kinds(receiver(call))
    unknown = None in kinds and script.names.api(call.func) is None
    if name == "minimize" and unknown:
        next_step = "write the step with tf.GradientTape and apply_gradients"
        why = unfollowed(script.origins, receiver(call), lambda _: False)
        reason = "minimize() is not migrated where its optimizer is not known"
        return Problem.since(script.index, "TFDP031", call, reason, why, next_step)
    taken = any(call is u.call for g in script.gradients for u in g.updates)
    if name in UPDATES and Kind.OPTIMIZER in kinds and not taken:
        reason = "cannot tell where the gradients of this update come from"
        next_step = "take them with tf.GradientTape in this file"
        return Problem.since(script.index, "TFDP030", call, reason, _gradients(script, call), next_step)
    return None


def _gradients(script: TrainingFile, call: cst.Call) -> Unknown | None:
    """Why what an update is given is not known to be a tape's gradients."""
    given = call.args[0].value if call.args else None
    if isinstance(given, cst.Call) and script.origins.called(given) == "builtins.zip" and given.args:
        given = given.args[0].value
    return unfollowed(script.origins, given, lambda _: False) if given is not None else None


def _unknown_tapes(script: TrainingFile) -> list[Problem]:
    """A tape whose name does not lead to TensorFlow's: by a star import, or TensorFlow 1's module."""
    reason = "cannot tell whether this GradientTape is TensorFlow's (no import, a star import, compat.v1?)"
    next_step = "import tensorflow by name: `import tensorflow as tf`"
    named = (c for c in script.index.calls if last_name(c.func) == "GradientTape")
    unknown = (c for c in named if script.origins.called(c) != "tensorflow.GradientTape")
    return [Problem("TFDP030", call, reason, next_step) for call in unknown]


def _written_out(script: TrainingFile) -> list[Problem]:
    """`w.assign_sub(rate * gradient)` where no tape's gradient is known to reach an update: it is written out, too, or
    comes another way."""
    if script.trained or (script.gradients and script.fitted.calls):
        return []
    reason = "a variable is changed step by step here, and tfdp cannot tell how this trains without a tf.GradientTape"
    if script.gradients:
        reason = "a variable is changed step by step here, and tfdp cannot tell by which gradient"
    next_step = "take the gradient with tf.GradientTape, or write `# tfdp: ignore[TFDP030]` here if this trains nothing"
    changed = script.index.methods("assign_sub")
    of_variables = (c for c in changed if Kind.VARIABLE in script.origins.kinds(receiver(c)))
    return [Problem("TFDP030", call, reason, next_step) for call in of_variables]


def _untaped(script: TrainingFile, written: list[Problem]) -> list[Problem]:
    """`W.assign_add(rate * (positive - negative))`: training by another rule than a gradient's."""
    others_train = bool(script.trained or script.fitted.calls)
    known = {p.node for p in written} | {u.call for g in script.gradients for u in g.updates}
    updates = Untaped(script.origins, (g.call for g in script.gradients)).updates(others_train)
    next_step = (
        "train by tf.GradientTape and an optimizer, or by hand with tfdp.runtime: shard the data, and average what is "
        "added with dp.allreduce(…); write `# tfdp: ignore[TFDP030]` here if this trains nothing"
    )
    reason = "`{}` is changed step by step, by data or draws and by what it is itself, without a tf.GradientTape"
    return [
        Problem("TFDP030", u.place, reason.format(script.index.code(u.variable)), next_step)
        for u in updates
        if u.place not in known
    ]


def _tensor_updates(script: TrainingFile) -> list[Problem]:
    """`w = w - rate * gradient` in a loop over data: no variable is trained, but a tensor under the same name."""
    reason = "this gradient changes plain tensors, which are not kept equal on all workers"
    next_step = "keep what is trained in tf.Variable and change it by assign_sub or an optimizer"
    found = (g for g in script.gradients if not g.updates and changes_its_sources(script.origins, g))
    return [Problem("TFDP030", g.call, reason, next_step) for g in found]


def escaped(script: TrainingFile) -> list[Problem]:
    """Gradients of variables that no update of this file receives, but code outside it may."""
    reason = "gradients leave the file here; cannot tell whether they reach an update"
    next_step = "apply them in this file, or average them by hand with dp.DistributedGradientTape"
    leaving = (g for g in script.gradients if g.escapes and not g.updates and not g.wrapped)
    found = (g for g in leaving if of_variables(g) or any(_is_update(e) for e in g.escapes))
    return [Problem("TFDP030", g.escapes[0], reason, next_step) for g in found]


def of_variables(gradient: Gradient) -> bool:
    """Whether it is one by all that a model trains."""
    sources = gradient.sources
    return isinstance(sources, cst.Attribute) and last_name(sources) in VARIABLE_COLLECTIONS


def _is_update(place: cst.CSTNode) -> bool:
    """`optimizer.apply_gradients(…)` of an optimizer that is not known: no other library's method has that name."""
    return isinstance(place, cst.Call) and method(place) == "apply_gradients"


def unwrapped(script: TrainingFile) -> list[Problem]:
    """Gradients of trained variables whose tape cannot be wrapped where they are taken."""
    reason = "cannot tell which of several tapes this is"
    next_step = "take the gradient from a tape that has a name of its own"
    found = (g for g in script.trained if not g.fed and any(o.path for o in script.origins.of(g.tape)))
    return [Problem("TFDP030", g.call, reason, next_step) for g in found]


def averaged_twice(script: TrainingFile) -> list[Problem]:
    """Updates in loops by an optimizer that fits a model, too, and averages what it is given."""
    fitted = (u.given.value for u in script.fitted.averaging.updates if u.compiled is not None)
    made = {o.node for value in fitted if value is not None for o in script.origins.of(value)}
    updates = (u for g in script.trained if not g.minimized for u in g.updates if u.kind == "keras")
    twice = (u for u in updates if any(o.node in made for o in script.origins.of(u.receiver)))
    reason = (
        "this optimizer fits a model, too, where it averages its gradients: those of a tape would be averaged twice"
    )
    return [Problem("TFDP031", u.call, reason, "make an optimizer for each") for u in twice]


def on_calls(script: TrainingFile) -> list[Problem]:
    """A script whose calls are shared already: its input stays whole."""
    if not script.shards_calls:
        return []
    reason = "the script is migrated to sharded calls, where the input stays whole"
    return [Problem("TFDP001", script.calls("init")[0], reason, "start again from the original script")]


def half_migrated(script: TrainingFile) -> list[Problem]:
    """A script that initialises the runtime, but does not use it in all places where it must."""
    if not script.calls("init") or not (script.trained or script.fitted.calls):
        return []
    open_chains = [c for c in script.chains if c.sharded is None and not _left_whole(script, c)]
    open_tapes = [g for g in script.trained if not g.wrapped and not script.ignored("TFDP030", g.call)]
    open_fits = [f for f in script.fitted.data if not f.sharded and not script.ignored("TFDP010", f.fit.call)]
    if not open_chains and not open_tapes and not open_fits and not script.array_batches.open:
        return []
    reason = "the script is migrated in part: some training data are not sharded, or some gradients not averaged"
    next_step = "finish by hand what was begun, or start again from the original script"
    return [Problem("TFDP001", script.calls("init")[0], reason, next_step)]


def _left_whole(script: TrainingFile, chain: Chain) -> bool:
    """Whether the author wants the dataset to stay whole."""
    return any(script.ignored("TFDP010", node) for link in chain.links for node in link.nodes)


def seeded_orders(script: TrainingFile) -> list[Problem]:
    """TensorFlow mixes its global seed into a shuffle's own: one by rank undoes a common order before the sharding."""
    if not script.seeds or script.common_until_training:
        return []
    reason = "this shuffle needs one order on all workers, but the script's global seed has to differ by worker"
    next_step = "shuffle records, after the stages that change their number, or remove the global seed"
    return [
        Problem("TFDP012", shuffle, reason, next_step) for point in script.shard_points for shuffle in point.shuffles
    ]


def general(script: TrainingFile) -> list[Problem]:
    """Hazards of the whole file."""
    if not script.trained and not script.fitted.calls:
        return []
    found = [*distributed(script), *script.devices.problems, *half_migrated(script)]
    return found if script.migrated else [*found, *seeded_orders(script)]


def distributed(script: TrainingFile, *, beside_names: bool = False) -> list[Problem]:
    """Calls of other systems that distribute training, and of TensorFlow 1.

    beside_names: of a script that keeps the names of such a system, which the runtime has: what it does besides. A
    session that Keras is given does nothing there, as it did.
    """
    found = _other_systems(script)
    for call in script.index.calls:
        api = script.origins.called(call)
        named = beside_names and api.startswith(NAMED_SYSTEMS)
        if api.startswith(STRATEGY_PREFIXES) and not named and not is_of_one_replica(api):
            found.append(_distributed(script, call, api))
        elif api.startswith(TF1_PREFIXES) and call not in script.devices.carried:
            if beside_names and _is_kerass_session(script, call):
                continue
            found.append(Problem("TFDP075", call, f"{api} is TensorFlow 1 style, which is not migrated yet", _BY_HAND))
    return found


def _distributed(script: TrainingFile, call: cst.Call, api: str) -> Problem:
    """What a call of another system asks for that `tfdp run` has not."""
    reason, next_step = f"the script is distributed already, by {api}", "remove that system's calls first"
    if api.startswith(_TPU):
        reason = f"this asks for a TPU, by {api}, and `tfdp run` is for GPUs and CPUs"
        next_step = "look for it in a `try:` of its own, with `except ValueError:` for where there is none"
    elif api.startswith(STRATEGIES) and spelled(script.program.entry.module, "TF_CONFIG"):
        reason = f"what {api} is for goes by TF_CONFIG, and what this file does with that is not followed"
        next_step = (
            "take out what sets it, and write what is read from it, such as the number of workers, as a constant"
        )
    return Problem("TFDP070", call, reason, next_step)


def _other_systems(script: TrainingFile) -> list[Problem]:
    """Imports of what would have other processes, or none, where `tfdp run` starts the workers."""
    next_step = "take out what the script does by it; each worker's number is dp.rank(), and their number dp.size()"
    every = (each for held in script.index.definitions.values() for found in held.values() for each in found)
    imported = {(each.statement, system) for each in every if each.kind == "import" for system in _systems_of(each.api)}
    reason = "the script is distributed already, by {}, whose processes are not those of tfdp run"
    return [Problem("TFDP070", node, reason.format(system), next_step) for node, system in imported]


def _systems_of(api: str) -> list[str]:
    return [system for system in OTHER_SYSTEMS if f"{api}.".startswith(f"{system}.")]


def _is_kerass_session(script: TrainingFile, call: cst.Call) -> bool:
    """`set_session(Session(config=…))`."""
    given = script.index.parents[call]
    around = script.index.parents[given]
    return isinstance(given, cst.Arg) and isinstance(around, cst.Call) and last_name(around.func) == "set_session"
