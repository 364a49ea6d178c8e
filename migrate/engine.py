"""Runs the rules over one file's facts and applies what they yield in one pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property

import libcst as cst

from ..rules import RULES
from ..rules._base import LINEAR, Batch, Context, Insert, Outcome, Refuse, Rule, Scaling, place
from . import files, imports, nesting, sequence
from .applying import EngineError, changed
from .facts import Script
from .facts.program import Program, SourceFile

# A file without any of these trains nothing that tfdp knows, whatever it imports: its facts are not worth computing.
_TRAINING_MARKS = (
    b"GradientTape",
    b"apply_gradients",
    b"assign",
    b"set_weights",
    b"set_value",
    b"scatter_",
    b"backend.update",
    b".fit",
    b"minimize",
    b"ptimizer",
    b"gradients(",
    b"updates=",
    b"learning.train",
    b"train_on_batch",
    b".search(",
    b".apply(",
    b"stimator",
    b"horovod",
    b"smdistributed",
)


@dataclass(frozen=True)
class Finding:
    """One thing said about a file. `line` and `column` count from 1 in the file before the change."""

    code: str
    line: int
    column: int
    message: str
    refusal: bool
    next_step: str = ""


@dataclass(frozen=True)
class Migration:
    """What became of one file; with a refusal nothing is changed, unless a part was asked for."""

    path: str
    before: bytes
    after: bytes
    findings: tuple[Finding, ...]
    trains: bool = False

    @property
    def changed(self) -> bool:
        """Whether the file would be written."""
        return self.after != self.before

    @property
    def refused(self) -> bool:
        """Whether the file is a training script that cannot be migrated as a whole; `after` is then partial at most."""
        return any(f.refusal for f in self.findings)


def migrate(
    path: str,
    source: bytes,
    batch: Batch = "per-worker",
    partial: bool = False,
    scaling: Scaling = LINEAR,
) -> Migration:
    """Migrate one file's bytes; with `partial` also where something is refused, which a `TODO(tfdp)` comment then says.

    Raises files.UnreadableSource for what is no Python source, EngineError for a defect of tfdp.
    """
    unchanged = Migration(path, source, source, ())
    if not files.mentions_framework(source) or not any(mark in source for mark in _TRAINING_MARKS):
        return unchanged
    text = files.decode(path, source)
    script = parse(path, text.source)
    with nesting.room(path, script):
        after, findings = _migrated(path, text, script, batch, partial, scaling) if script.trains else (None, ())
        trains = script.trains
    return replace(unchanged, after=source if after is None else after, findings=findings, trains=trains)


def _migrated(  # noqa: PLR0917
    path: str, text: files.Text, script: Script, batch: Batch, partial: bool, scaling: Scaling
) -> tuple[bytes | None, tuple[Finding, ...]]:
    """The text after the change, None where there is none, and what is said of it."""
    plan = in_order(make_plan(script, batch, RULES, partial, scaling))
    if (plan.refused and not partial) or not (plan.outcomes or plan.refusals):
        return None, plan.findings
    after = files.encode(text, apply(script, plan))
    check(path, after)
    return after, plan.findings


def parse(path: str, source: str) -> Script:
    """The facts of a source text. Raises files.UnreadableSource with the place of a syntax error."""
    try:
        module = cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise files.UnreadableSource(
            path, error.raw_line, error.raw_column + 1, "this is not valid Python: " + error.message
        ) from error
    nesting.refuse_deep(path, source, module)
    with nesting.room():
        if module.code != source:
            reason = "this text would not come back byte for byte: is there a form feed at its start? Remove it"
            raise files.UnreadableSource(path, 1, 1, reason)
        return Script(Program(SourceFile(module)))


@dataclass
class Plan:
    """All outcomes of all rules for one file."""

    context: Context
    imported: bool
    partial: bool = False
    outcomes: list[tuple[Rule, Outcome]] = field(default_factory=list)
    refusals: list[tuple[Rule, Refuse]] = field(default_factory=list)

    @property
    def refused(self) -> bool:
        return bool(self.refusals)

    @cached_property
    def findings(self) -> tuple[Finding, ...]:
        """What is said about the plan, in the order of the text; a plan that is not carried out says only why."""
        position = self.context.script.position
        found = [Finding(r.code, *position(o.node), o.reason, True, o.next_step) for r, o in self.refusals]
        if self.partial or not self.refused:
            found += [
                Finding(r.code, *position(place(o)), o.message, False)
                for r, o in self.outcomes
                if not isinstance(o, Refuse)
            ]
        return tuple(sorted(set(found), key=lambda f: (f.line, f.column, f.code, f.message)))


def make_plan(
    script: Script,
    batch: Batch,
    rules: Iterable[Rule],
    partial: bool = False,
    scaling: Scaling = LINEAR,
) -> Plan:
    """Ask every rule; all of them read the same untouched tree."""
    name, imported = imports.alias(script.index, script.entry.imports.anchor)
    plan = _ask(Context(script, batch, name, scaling), rules, imported, partial)
    if imported or (plan.refused and not partial) or script.entry.start == script.entry.imports:
        return plan
    early = sequence.first_early(plan.context, plan.outcomes)
    return plan if early is None else _ask(replace(plan.context, early=early), rules, imported, partial)


def _ask(context: Context, rules: Iterable[Rule], imported: bool, partial: bool) -> Plan:
    plan = Plan(context, imported, partial)
    for rule in rules:
        for outcome in rule.run(context):
            if isinstance(outcome, Refuse):
                plan.refusals.append((rule, outcome))
            else:
                plan.outcomes.append((rule, outcome))
    return plan


def in_order(plan: Plan) -> Plan:
    """A plan, with refusals for what it would write where a name has no value yet, or the runtime has not started."""
    if plan.partial or not plan.refused:
        context = plan.context
        plan.refusals += sequence.out_of_place(context, plan.imported, plan.outcomes)
    return plan


def apply(script: Script, plan: Plan) -> str:
    """The source text with every outcome of the plan applied in one pass. Raises EngineError."""
    file = script.program.entry
    if any(script.index.file(place(o)) is not file for _, o in plan.outcomes):
        raise EngineError("a rule changes a file that is not the one to be written")
    inserts = [(r.code, o) for r, o in plan.outcomes if isinstance(o, Insert)]
    if not plan.imported:
        at = script.entry.imports
        code = f"import {imports.MODULE} as {plan.context.dp}"
        inserts.append(("", Insert(at.anchor, "before" if at.first else "after", code, "")))
    return changed(plan.context, file, plan.outcomes, plan.refusals, sorted(inserts, key=lambda i: i[0]))


def check(path: str, after: bytes) -> None:
    """A result that does not compile is never written."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(after, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        raise EngineError(
            f"{path}: the migrated text does not compile ({error}); the file is unchanged; please report this"
        ) from error
