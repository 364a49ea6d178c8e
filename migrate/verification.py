"""`tfdp verify`: an order in, an exit code out. 0 proved, 1 not proved, 2 nothing could be compared.

Imports nothing that takes time before the order is known to make sense.
"""

from __future__ import annotations

import datetime
import importlib.util
import os
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .console import cleaning_up
from .report.streams import give, say

if TYPE_CHECKING:
    from ..rules._base import Batch, Scale
    from .report.proof.account import Account
    from .verify.proof import Proof
    from .verify.texts import Texts

COULD_NOT_RUN = 2


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
    keep_randomness: bool = False
    float64: bool = False
    as_json: bool = False
    html: str | None = None
    png: str | None = None
    verbose: bool = False

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
    """Make the proof that is asked for and say what it shows. Raises OSError where a file cannot be written."""
    obstacle = _obstacle(order)
    if obstacle:
        say(f"tfdp: error: {obstacle}")
        return COULD_NOT_RUN
    from .verify import CouldNotRun

    began = time.monotonic()
    texts, proof, reason = None, None, ""
    try:
        texts = _texts(order)
        if order.show_reference:
            give(texts.reference)
            return 0
        proof = _proof(order, texts)
    except CouldNotRun as error:
        reason = str(error)
    return _report(order, _account(order, texts, proof, reason, time.monotonic() - began))


def _obstacle(order: Order) -> str:
    """What would make all work be in vain, told before any is done."""
    if not (importlib.util.find_spec("tensorflow") and importlib.util.find_spec("numpy")):
        return "verify runs the script, and TensorFlow is not installed here: pip install 'tfdp[cpu]' or 'tfdp[gpu]'"
    for file in (order.html, order.png):
        folder = os.path.dirname(os.path.abspath(file)) if file else "."
        if not os.path.isdir(folder):
            return f"{file} cannot be written: there is no folder {folder}"
        if file and (os.path.isdir(file) or not os.access(file if os.path.exists(file) else folder, os.W_OK)):
            return f"{file} cannot be written: {'a directory' if os.path.isdir(file) else 'not permitted'}"
    if order.png:
        from .report.proof import image

        return "" if image.available() else image.MISSING
    return ""


def _batch(order: Order) -> Batch:
    from .verify import texts

    return order.batch or (texts.mode(order.script) if order.against else "per-worker")


def _texts(order: Order) -> Texts:
    from ..rules._base import Scaling
    from .verify import texts

    batch, scaling = _batch(order), Scaling(order.lr_scale, order.warmup_steps)
    if order.against:
        return texts.of_both(order.script, order.against, order.np, batch, scaling)
    return texts.of_original(order.script, order.np, batch, scaling)


def _proof(order: Order, texts: Texts) -> Proof:
    from .report.steps import Steps
    from .verify import record

    with (
        cleaning_up(),
        Steps(order.steps) as steps,
        record(
            texts.against,
            order.np,
            order.steps,
            reference=texts.reference,
            batch=_batch(order),
            args=order.args,
            timeout=order.timeout,
            watch=steps.at,
            original=texts.original,
            keep_randomness=order.keep_randomness,
            float64=order.float64,
        ) as recording,
    ):
        return recording.prove(texts.migrated, texts.path)


def _account(order: Order, texts: Texts | None, proof: Proof | None, reason: str, seconds: float) -> Account:
    from .report.proof.account import Account, versions

    return Account(
        script=order.script,
        against=order.against,
        options=_options(order),
        proof=proof,
        reason=reason,
        original=texts.original if texts else b"",
        migrated=texts.migrated if texts else b"",
        reference=texts.reference if texts else b"",
        seconds=seconds,
        made=f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        versions=versions(),
    )


def _options(order: Order) -> dict[str, str]:
    """What was asked for, in words, without what is as usual."""
    said = {"processes": str(order.np), "batch": _batch(order), "steps": str(order.steps)}
    if order.lr_scale != "linear":
        said["learning-rate scale"] = order.lr_scale
    if order.warmup_steps:
        said["warm-up steps"] = str(order.warmup_steps)
    if order.float64:
        said["float64"] = "free"
    if order.keep_randomness:
        said["randomness"] = "kept"
    if order.args:
        said["arguments"] = shlex.join(order.args)
    return said


def _report(order: Order, account: Account) -> int:
    """Write what is to be written, say the rest. stdout has the summary, or the JSON alone."""
    from .report.proof import data, image, page, text

    if order.as_json:
        give(data.render(account))
    for line in text.lines(account, whole=order.verbose):
        if order.as_json or account.proof is None:
            say(line)
        else:
            give(f"{line}\n")
    if order.html:
        with open(order.html, "w", encoding="utf-8") as file:
            file.write(page.render(account))
    if order.png:
        image.write(account, order.png)
    return account.verdict.exit_code
