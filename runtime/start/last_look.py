"""Do all ranks end with the same variables? Between two fingerprints, and after the last, nobody has looked."""

import atexit
import contextlib
import json

import numpy as np
import tensorflow as tf

from ..foundation import TfdpError, uncaught
from ..framework import name_of
from ..job import current, end_badly, is_initialized
from ..store import LAST
from .same_start import digests, known_variables, ranks_and_names

# TensorFlow adds up slices of one row in any order: variables that are updated so differ in their last bits.
NEAR = 1e-5
_shapes_of_slices: set[tuple[int, ...]] = set()


def look_at_the_end() -> None:
    """At the end of a process that nothing has failed, all that gradients were exchanged for is compared."""
    atexit.register(_look)


def note_slices(shapes: set[tuple[int, ...]]) -> None:
    """Variables of these shapes are updated by slices, or are slots of those that are."""
    _shapes_of_slices.update(shapes)


def _look() -> None:
    if uncaught() is not None or not is_initialized():
        return
    job, names, said = current(), {}, {}
    for key, variable in known_variables():
        with contextlib.suppress(NotImplementedError):  # of a graph, which has a session
            value = np.asarray(tf.convert_to_tensor(variable).numpy())
            if value.dtype != object:
                is_near = tuple(value.shape) in _shapes_of_slices
                names[key] = name_of(variable)
                said[key] = float(np.linalg.norm(value.astype(np.float64))) if is_near else int(digests(value)[0])
    try:
        with job.transport.ended():
            answers = job.store.gather(LAST, json.dumps(said).encode())
    except TfdpError:  # another rank has failed, which is said, or has not come to its end in all the time there is
        return
    every = [json.loads(answer) for answer in answers]
    common = [key for key in said if all(key in each for each in every)]
    apart = [[_differ(each[key], every[0][key]) for key in common] for each in every]
    if np.any(apart):
        which = ranks_and_names([names[key] for key in common], np.array(apart))
        end_badly(
            f"{which} at the end of the job: the ranks no longer trained the same model, and what rank 0 has written "
            "may be wrong. Something gives a variable, or a rate, a value of one rank alone: assign what is the same "
            "on all ranks, such as dp.broadcast_object(value)"
        )


def _differ(mine: float, roots: float) -> bool:
    if isinstance(roots, float):
        return bool(abs(mine - roots) > NEAR * abs(roots))
    return mine != roots
