"""The kinds of fragments, each with its mark: exact, or wrong and of which class of mistakes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import counts
import outside
import own
from carriers import CARRIERS
from rows import PLACES, outputs_lost
from sketch import LOOPS, ROADS, TAPES, Sketch


@dataclass(frozen=True)
class Kind:
    """A fragment, and which part of a script it fills."""

    build: Callable[[Sketch], None]
    roads: tuple[str, ...]
    number: int = 0  # of the class of mistakes
    part: str = ""


def _at(place: str, row_by_row: bool) -> Callable[[Sketch], None]:
    put, _, rowwise, mixing = PLACES[place]

    def build(s: Sketch) -> None:
        put(s, s.pen.pick(rowwise if row_by_row else mixing))

    return build


_PARTS = {"map": "data", "loop": "loop", "step": "step", "loss": "loss"}
EXACT = {
    f"rows by {place}": Kind(_at(place, True), roads, part=_PARTS.get(place, "model"))
    for place, (_, roads, _, _) in PLACES.items()
}
KINDS: dict[str, Kind] = {
    **{
        f"mixed: {place}": Kind(_at(place, False), roads, 0 if place == "loss" else 1)
        for place, (_, roads, _, _) in PLACES.items()
    },
    "loss: lost": Kind(outputs_lost, TAPES),
    "count: factor of the loss": Kind(counts.factor_of_the_loss, TAPES, 2),
    "count: given to the step": Kind(counts.given_to_the_step, TAPES, 2),
    "count: rate": Kind(counts.rate, LOOPS, 2),
    "count: gradients": Kind(counts.gradients, TAPES, 2),
    "count: clip norm": Kind(counts.clip_norm, TAPES, 2),
    "count: seen so far": Kind(counts.seen_so_far, TAPES, 2),
    "count: kept": Kind(counts.kept, TAPES, 2),
    "threshold on the batch": Kind(counts.threshold, LOOPS, 3),
    "by the loss: weight": Kind(own.lam_by_the_loss, TAPES, 4),
    "by the loss: rate": Kind(own.rate_by_the_loss, LOOPS, 4),
    "by the loss: variable": Kind(own.variable_by_the_loss, TAPES, 4),
    "by the loss: number of steps": Kind(own.number_of_steps, LOOPS, 4),
    **{f"carried: {carrier}": Kind(own.by(carrier), TAPES, 4) for carrier in CARRIERS},
    "carried: property by a made function": Kind(own.property_by_a_made_function, TAPES, 4),
    "by the loss: end": Kind(own.stop_by_the_loss, LOOPS, 4),
    "by the loss: batches left out": Kind(own.skip_by_the_loss, LOOPS, 4),
    "variable: last batch": Kind(own.variable_of_the_last_batch, LOOPS, 5),
    "variable: collected": Kind(own.variable_of_collected_examples, LOOPS, 5),
    "variable: kept": Kind(own.variable_of_what_was_kept, LOOPS, 5),
    "variable: of a metric": Kind(own.variable_of_a_metric, LOOPS, 5),
    "variable: plain number": Kind(own.plain_state, ("tape in the loop",), 5),
    "variable: first batch": Kind(own.variable_of_the_first_batch, LOOPS, 5),
    "variable: layer": Kind(own.variable_of_a_layer, ROADS, 5),
    "exception": Kind(own.exception, LOOPS, 6),
    "exception: flag": Kind(own.exception_as_a_flag, LOOPS, 6),
    "exception: with": Kind(own.exception_in_a_with, LOOPS, 6),
    "exception: in a question": Kind(own.exception_in_a_question, LOOPS, 6),
    "by the batch": Kind(own.by_the_batch, LOOPS, 4),
    "left out by examples": Kind(own.left_out, LOOPS, 6),
    "left out by itertools": Kind(
        own.left_out_by_itertools,
        LOOPS,
        6,  # all batches are read, whole
    ),
    "callback: batches": Kind(own.callback_of_batches, ("fit",), 7),
    "seed": Kind(outside.seed, ROADS, 8),
    "seed: of a hash": Kind(outside.seed_of_a_hash, ROADS, 8),
    "seed: of a class": Kind(outside.seed_of_a_class, ROADS, 8),
    "seed: own order": Kind(outside.own_order, ROADS, 8),
    "seed: order of each epoch": Kind(outside.order_of_each_epoch, LOOPS, 8),
    "zip": Kind(outside.zipped, TAPES, 9),
    "writer: known": Kind(outside.known_writer, ROADS, 10),
    "writer: unknown": Kind(outside.unknown_writer, ROADS, 10),
}
