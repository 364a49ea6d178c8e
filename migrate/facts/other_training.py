"""Training by other means than tapes and Keras' fit: each is named, so that none is taken for a script without any."""

from __future__ import annotations

import libcst as cst

from ..catalogue import Kind
from .apis import GRAPH_ASSIGNS, GRAPH_GRADIENTS, GRAPH_OPTIMIZERS, GRAPH_TRAINING, OTHER_STARTS, PROBABILITY, SCIPY
from .program import Problem, argument, method, outside
from .training_file import TrainingFile

_BY_HAND = "migrate this part by hand with tfdp.runtime; the automatic rule for it does not exist yet"
_OF_TF1 = "{} is TensorFlow 1 style, which is not migrated yet"
_BY_TAPE = "write the step with tf.GradientTape and apply_gradients"
_KEPT = ("tensorflow.", "keras.", "builtins.", "tfdp.")  # what they do with an optimizer is known, or seen elsewhere


def other_training(script: TrainingFile) -> list[Problem]:
    """Calls that train, or may train, by means that are not migrated."""
    named = [p for call in script.index.calls if (p := _named(script, call)) is not None]
    return [*named, *_graph_gradients(script), *(() if named else _given_away(script))]


def _named(script: TrainingFile, call: cst.Call) -> Problem | None:
    api = script.origins.called(call)
    if GRAPH_OPTIMIZERS.match(api) or GRAPH_TRAINING.match(api):
        return Problem("TFDP075", call, _OF_TF1.format(api), _BY_HAND)
    if OTHER_STARTS.match(api):
        reason = f"the script is distributed already, by {api}"
        return Problem("TFDP070", call, reason, "remove that system's calls first")
    if api == "keras.backend.function" and argument(call, "updates", 2) is not None:
        return Problem("TFDP075", call, "a function of Keras' backend with updates is not migrated yet", _BY_HAND)
    if PROBABILITY.match(api) or (SCIPY.match(api) and script.gradients):
        return Problem("TFDP031", call, f"what {api} trains is not migrated yet", _BY_TAPE)
    return None


def _graph_gradients(script: TrainingFile) -> list[Problem]:
    """`tf.gradients` in a file that assigns to variables as well: a step that is written out."""
    apis = {call: script.origins.called(call) for call in script.index.calls}
    if not any(GRAPH_ASSIGNS.match(api) for api in apis.values()):
        return []
    return [
        Problem("TFDP075", c, _OF_TF1.format(api), _BY_HAND) for c, api in apis.items() if GRAPH_GRADIENTS.match(api)
    ]


def _given_away(script: TrainingFile) -> list[Problem]:
    """Optimizers that code outside the file gets, where nothing in the file trains by them."""
    origins = script.origins
    made = any(origins.kind(c.func) is Kind.OPTIMIZER for c in origins.index.calls)
    if not made or script.trained or script.fitted.by_keras:
        return []
    reason = "an optimizer leaves the file here; cannot tell what it trains"
    next_step = "train in this file, with tf.GradientTape or fit"
    given = [(c, a.value) for c in origins.index.calls for a in c.args if not a.star and _unknown(script, c)]
    return [
        Problem.since(script.index, "TFDP031", c, reason, outside(origins, c), next_step)
        for c, value in given
        if Kind.OPTIMIZER in origins.kinds(value)
    ]


def _unknown(script: TrainingFile, call: cst.Call) -> bool:
    """Whether a call leads out of the file to code of which nothing is known."""
    api = script.names.api(call.func)
    if api is not None:
        return not api.startswith(_KEPT) and script.origins.kind(call.func) is None
    inside = script.origins.function(call.func) is not None or script.origins.constructed(call) is not None
    return not inside and method(call) != "compile"
