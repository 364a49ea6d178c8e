"""Average gradients over the workers before they are applied.

What it does
    Wraps the tape of every gradient that reaches an update, and only of those: `tape.gradient(loss, variables)` becomes
    `dp.DistributedGradientTape(tape).gradient(loss, variables)`. Gradients of a loss that is a sum over the batch, or
    one value per example, are added up: `dp.DistributedGradientTape(tape, op=dp.Sum)`.

Why
    Averaged where they are taken, gradients are the same on all workers before anything clips or accumulates them.
    Gradients for other purposes (penalties, saliency, adversarial examples) belong to one worker's examples.

Example
    gradients = tape.gradient(loss, model.trainable_variables)
    # becomes
    gradients = dp.DistributedGradientTape(tape).gradient(loss, model.trainable_variables)

When it refuses
    Where an update's gradients come from outside the file, or which tape is meant is not certain. Where a step or its
    update, or how often it is taken, depends on a value that may differ by worker, such as the loss; where an exception
    that one worker's examples may raise skips it. Where plain tensors are trained, or variables without a tape, as by
    contrastive divergence. Where averaged gradients are changed by what each worker draws itself or makes from its own
    examples, as by noise.
"""

from __future__ import annotations

from collections.abc import Iterator

from ..migrate import build
from ._base import INPUT_ONLY, Context, Edit, Outcome

ROADS = INPUT_ONLY


def outcomes(context: Context) -> Iterator[Outcome]:
    wrapper = f"{context.dp}.DistributedGradientTape"
    for gradient in (*context.script.trained, *context.script.fitted.averaging.taped):
        if not gradient.wrapped and not gradient.minimized and not gradient.fed:
            yield Edit(gradient.tape, build.calling(wrapper), "average gradients over all workers")
