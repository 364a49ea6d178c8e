"""`tfdp verify`: options in, an exit code out. 0 proved, 1 not proved, 2 nothing could be compared.

Imports nothing that takes time before the options are known to make sense.
"""

from __future__ import annotations

import dataclasses
import datetime
import importlib.util
import os
import shlex
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .console import cleaning_up
from .inputs import no_script
from .report.streams import give, say

if TYPE_CHECKING:
    from ..rules._base import Batch, Policy
    from .report.proof.account import Account
    from .verify.proof import Proof
    from .verify.texts import Texts

COULD_NOT_RUN = 2


@dataclass(frozen=True)
class VerifyOptions:
    """The command's options, under their names on the command line.

    against: the original, where `script` is migrated already. timeout: seconds for
    each run. steps: None to go past an epoch's end. html, png: files to write. args: the script's own.
    """

    script: str
    policy: Policy
    args: tuple[str, ...] = ()
    np: int = 2
    steps: int | None = None
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
        if self.show_reference and (self.as_json or self.html or self.png):
            return "--show-reference runs nothing, so there is nothing to report with --json, --html or --png"
        return ""


def verify(options: VerifyOptions) -> int:
    """Make the proof that is asked for and say what it shows. Raises OSError where a file cannot be written."""
    obstacle = _obstacle(options)
    if obstacle:
        say(f"tfdp: error: {obstacle}")
        return COULD_NOT_RUN
    from .verify import CouldNotRun

    began = time.monotonic()
    texts, proof, reason, failed = None, None, "", None
    try:
        texts = _texts(options)
        if options.show_reference:
            give(texts.reference)
            return 0
        proof = _proof(options, texts)
    except CouldNotRun as error:
        reason, failed = error.reason, error.failed_run
    account = _account(options, texts, proof, time.monotonic() - began)
    return _report(options, dataclasses.replace(account, reason=reason, failed_run=failed))


def _obstacle(options: VerifyOptions) -> str:
    """What would make all work be in vain, told before any is done."""
    from ..runtime import launch

    for script in (options.script, options.against):
        if script and (reason := no_script(script)):
            return reason
    if os.access(options.script, os.R_OK) and (reason := launch.unfinished(options.script)):
        return reason
    if not (importlib.util.find_spec("tensorflow") and importlib.util.find_spec("numpy")):
        return "verify runs the script, and TensorFlow is not installed here: pip install 'tfdp[cpu]' or 'tfdp[gpu]'"
    for file in (options.html, options.png):
        folder = os.path.dirname(os.path.abspath(file)) if file else "."
        if not os.path.isdir(folder):
            return f"{file} cannot be written: there is no folder {folder}"
        if file and (os.path.isdir(file) or not os.access(file if os.path.exists(file) else folder, os.W_OK)):
            return f"{file} cannot be written: {'a directory' if os.path.isdir(file) else 'not permitted'}"
    if options.png:
        from .report.proof import image

        return "" if image.available() else image.MISSING
    return ""


def _batch(options: VerifyOptions, texts: Texts | None) -> Batch:
    from .verify.texts import mode

    return texts.batch if texts else options.policy.batch or mode(options.script)


def _texts(options: VerifyOptions) -> Texts:
    from .verify import texts

    if options.against:
        return texts.of_both(options.script, options.against, options.np, options.policy)
    return texts.of_original(options.script, options.np, options.policy)


def _proof(options: VerifyOptions, texts: Texts) -> Proof:
    from .report.steps import Steps
    from .verify import record
    from .verify.checks import with_another_original

    with (
        cleaning_up(),
        Steps(options.steps) as steps,
        record(
            texts.against,
            options.np,
            options.steps,
            reference=texts.reference,
            batch=texts.batch,
            calls=texts.road == "calls",
            names=texts.road == "names",
            args=options.args,
            timeout=options.timeout,
            watch=steps.at,
            original=texts.original,
            keep_randomness=options.keep_randomness,
            float64=options.float64,
        ) as recording,
    ):
        proof = recording.prove(texts.migrated, texts.path)
    return with_another_original(proof) if texts.differs else proof


def _account(options: VerifyOptions, texts: Texts | None, proof: Proof | None, seconds: float) -> Account:
    from .report.proof.account import Account, versions

    return Account(
        script=options.script,
        against=options.against or (texts.found if texts else "") or None,
        options=_said(options, texts),
        proof=proof,
        original=texts.original if texts else b"",
        migrated=texts.migrated if texts else b"",
        reference=texts.reference if texts else b"",
        differs=texts is not None and texts.differs,
        seconds=seconds,
        made=f"{datetime.datetime.now(datetime.timezone.utc):%Y-%m-%d %H:%M} UTC",
        versions=versions(),
    )


def _said(options: VerifyOptions, texts: Texts | None) -> dict[str, str]:
    """What was asked for, in words, without what is as usual."""
    said, policy = {"processes": str(options.np), "batch": _batch(options, texts)}, options.policy
    if policy.shard != "auto":
        said["shard"] = policy.shard
    if options.steps is not None:
        said["steps"] = str(options.steps)
    if policy.lr_scale != "linear":
        said["learning-rate scale"] = policy.lr_scale
    if policy.warmup_steps:
        said["warm-up steps"] = str(policy.warmup_steps)
    if options.float64:
        said["float64"] = "free"
    if options.keep_randomness:
        said["randomness"] = "kept"
    if options.args:
        said["arguments"] = shlex.join(options.args)
    return said


def _report(options: VerifyOptions, account: Account) -> int:
    """Write what is to be written, say the rest. stdout has the summary, or the JSON alone."""
    from .report.proof import data, image, page, text

    if options.as_json:
        give(data.render(account))
    for line in text.lines(account, whole=options.verbose):
        if options.as_json or account.proof is None:
            say(line)
        else:
            give(f"{line}\n")
    if options.html:
        with open(options.html, "w", encoding="utf-8") as file:
            file.write(page.render(account))
    if options.png:
        image.write(account, options.png)
    return account.verdict.exit_code
