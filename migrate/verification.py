"""`tfdp verify`: an order in, an exit code out. 0 proved, 1 not proved, 2 nothing could be compared.

Imports nothing that takes time before the order is known to make sense.
"""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tfdp.migrate.report.streams import give, say

if TYPE_CHECKING:
    from tfdp.rules._base import Batch, Scale

PROVED, NOT_PROVED, COULD_NOT_RUN = 0, 1, 2


@dataclass(frozen=True)
class Order:
    """The command's options, under their names on the command line.

    batch: None where it is not given. against: the original, where `script` is migrated already. timeout: seconds for
    each run. html, png: files to write. args: the script's own.
    """

    script: str
    args: tuple[str, ...] = ()
    np: int = 2
    steps: int = 20
    batch: Batch | None = None
    lr_scale: Scale = "linear"
    warmup_steps: int = 0
    against: str | None = None
    timeout: float = 600.0
    show_reference: bool = False
    as_json: bool = False
    html: str | None = None
    png: str | None = None

    def contradiction(self) -> str:
        """What is wrong with the options together, in words; empty where nothing is."""
        if self.batch == "global" and (self.lr_scale != "linear" or self.warmup_steps):
            return "--lr-scale and --warmup-steps are for --batch per-worker: global keeps all rates"
        if self.lr_scale == "none" and self.warmup_steps:
            return "--warmup-steps needs a factor to rise to: --lr-scale linear or sqrt"
        if self.show_reference and (self.as_json or self.html or self.png):
            return "--show-reference runs nothing, so there is nothing to report with --json, --html or --png"
        return ""


def verify(order: Order) -> int:
    """Make the proof that is asked for and say what it shows. Raises OSError where a report cannot be written."""
    missing = _missing()
    if missing:
        say(f"tfdp: error: {missing}")
        return COULD_NOT_RUN
    from tfdp.migrate.verify import CouldNotRun

    try:
        return _verify(order)
    except CouldNotRun as error:
        say(f"{error}\ncould not run: nothing is proved, and nothing is disproved")
        return COULD_NOT_RUN


def _verify(order: Order) -> int:
    from tfdp.migrate.report.steps import Steps
    from tfdp.migrate.verify import CouldNotRun, record, texts
    from tfdp.rules._base import Scaling

    batch = order.batch or (texts.mode(order.script) if order.against else "per-worker")
    scaling = Scaling(order.lr_scale, order.warmup_steps)
    if order.against:
        made = texts.of_both(order.script, order.against, order.np, batch, scaling)
    else:
        made = texts.of_original(order.script, order.np, batch, scaling)
    if order.as_json or order.html or order.png:
        raise CouldNotRun("--json, --html and --png are not there yet")
    if order.show_reference:
        give(made.reference)
        return PROVED
    with ExitStack() as stack:
        watch = stack.enter_context(Steps(order.steps)).at
        recording = stack.enter_context(
            record(
                made.path,
                order.np,
                order.steps,
                reference=made.reference,
                batch=batch,
                args=order.args,
                timeout=order.timeout,
                watch=watch,
            )
        )
        proof = recording.prove(made.migrated)
    give(f"{proof}\n")
    if proof.timed_out:
        return COULD_NOT_RUN
    return PROVED if proof.proved else NOT_PROVED


def _missing() -> str:
    """What has to be installed first."""
    if importlib.util.find_spec("tensorflow") and importlib.util.find_spec("numpy"):
        return ""
    return "verify runs the script, and TensorFlow is not installed here: pip install 'tfdp[cpu]' or 'tfdp[gpu]'"
