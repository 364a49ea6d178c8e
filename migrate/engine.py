"""Runs the rules over one file's facts and applies what they yield in one pass."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property

import libcst as cst

from ..rules import RULES
from ..rules._base import AS_USUAL, Batch, Context, Insert, Outcome, Policy, Refuse, Road, Rule, place
from . import beside, dialects, files, imports, nesting, originals, sequence
from .applying import EngineError, changed
from .facts import Script
from .facts.program import Problem, Program, SourceFile
from .facts.training import Elsewhere
from .facts.untaught import distributed

_OTHER_SYSTEM = "TFDP070"
_OWN_POLICY = "the script says by itself what each worker's batch and rate are, and what it reads: it has no other mode"
_WITHOUT_TARGET = "leave --target out: tfdp's own runtime trains it"
_BY_IMPORTS = "leave --target out: it moves to tfdp's runtime by its imports"
_BESIDE = "{}, which it leads to, imports that system, too: migrate it as well"
_UNSEEN = "it is not seen what trains here; what does is divided when it runs"
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
    """What became of one file; with a refusal nothing is changed, unless a part was asked for.

    road: the one on which the script is migrated, or refused; None where it does not train. batch: the mode. unseen:
    whether something may train in it that is not seen.
    """

    path: str
    before: bytes
    after: bytes
    findings: tuple[Finding, ...]
    trains: bool = False
    road: Road | None = None
    batch: Batch = "global"
    unseen: bool = False

    @property
    def changed(self) -> bool:
        """Whether the file would be written."""
        return self.after != self.before

    @property
    def refused(self) -> bool:
        """Whether the file is a training script that cannot be migrated as a whole; `after` is then partial at most."""
        return any(f.refusal for f in self.findings)


@dataclass(frozen=True)
class _Asked:
    """What the caller wants of a migration."""

    policy: Policy
    partial: bool

    def road(self, script: Script) -> Road:
        """The road: calls, which are exact whatever the script says, where its input is neither asked to be sharded
        nor sharded by an earlier migration."""
        if self.policy.shard == "auto":
            return "input" if script.on_input else "calls"
        return self.policy.shard

    def mode(self, script: Script, road: Road) -> Batch:
        """The batch mode on one road: where none is asked for, the script's own batch on sharded calls."""
        keeps = road == "calls" and self.policy.scales_by_workers and not script.calls("init")
        return self.policy.batch or ("global" if keeps else "per-worker")

    def plan(self, script: Script, road: Road) -> Plan:
        """The plan on one road."""
        return in_order(make_plan(script, self.mode(script, road), RULES, self.partial, self.policy, road))


def migrate(
    path: str, source: bytes, policy: Policy = AS_USUAL, partial: bool = False, is_run: bool = True
) -> Migration:
    """Migrate one file's bytes; with `partial` also where something is refused, which a `TODO(tfdp)` comment then says.

    is_run: whether it is certain that the file is a script that is run: one in which something may train, though it is
    not known what, is divided as it runs.

    Raises files.UnreadableSource for what is no Python source, EngineError for a defect of tfdp.
    """
    unchanged = Migration(path, source, source, ())
    if (in_names := _in_names(unchanged, policy)) is not None:
        return in_names
    trains_here = files.mentions_framework(source) and any(mark in source for mark in _TRAINING_MARKS)
    elsewhere = functools.cache(lambda: beside.trained_by(path, source))
    may_train = functools.cache(lambda taken: is_run and beside.may_train(path, source, taken=taken))
    if not trains_here and not elsewhere() and not may_train(False):
        return unchanged
    text = files.decode(path, source)
    script = parse(path, text.source, elsewhere)
    with nesting.room(path, script):
        if not script.trains:
            unseen = may_train(bool(script.taken))
            return _unseen(unchanged, text, script, _Asked(policy, partial)) if unseen else unchanged
        if script.taken and policy.batch is None and policy.scales_by_workers:
            policy = replace(policy, batch="global")  # the other system's batch is that of all workers
        return _migrated(unchanged, text, script, _Asked(policy, partial))


def _in_names(unchanged: Migration, policy: Policy) -> Migration | None:
    """The migration of a script that trains by another system's names, which the runtime has; None of another one."""
    path, source = unchanged.path, unchanged.before
    found = replace(unchanged, trains=True, road="names", batch="per-worker")
    if originals.keeps_names(source):
        return found
    if not any(name.encode() in source for name in dialects.SYSTEMS):
        return None
    text = files.decode(path, source)
    module = _tree(path, text.source)
    with nesting.room():
        moved = dialects.moved(module)
        if moved is None:
            return None
        script = Script(Program(SourceFile(module)))
        refused = [_finding(script, p) for p in distributed(script, beside_names=True)]
    if policy not in (AS_USUAL, Policy(batch="per-worker")):
        first = moved.taken[0] if moved.taken else moved.refused[0]
        refused.append(Finding(_OTHER_SYSTEM, first.line, first.column, _OWN_POLICY, True, "leave these options out"))
    return _moved(found, text, moved, refused)


def _moved(unchanged: Migration, text: files.Text, moved: dialects.Moved, refused: Iterable[Finding]) -> Migration:
    """A script whose names are changed, as a whole or not at all."""
    left = {*refused, *(Finding(_OTHER_SYSTEM, *one[:3], True, one.next_step) for one in moved.refused)}
    if left:
        return replace(unchanged, findings=_by_place(left))
    after = files.encode(text, moved.module.code)
    check(unchanged.path, after)
    said = [Finding(_OTHER_SYSTEM, line, at, what, False) for line, at, what in moved.taken]
    if unchanged.road == "names" and said:
        others = beside.imports(unchanged.path, unchanged.before, dialects.SYSTEMS)
        said += (replace(said[0], message=_BESIDE.format(file)) for file in others)
    return replace(unchanged, findings=_by_place(said), after=after)


def single(path: str, source: bytes) -> Migration:
    """The one-worker form of a script that tfdp or another system distributes, refused where that is not understood;
    any other script as it is. Raises files.UnreadableSource."""
    text = files.decode(path, source)
    unchanged = Migration(path, source, source, (), trains=True)
    if (moved := dialects.without_runtime(_tree(path, text.source))) is not None:
        return _moved(unchanged, text, moved, ())
    script = parse(path, text.source)
    unchanged = replace(unchanged, trains=script.trains)
    if not script.taken:
        found = tuple(_finding(script, p) for p in distributed(script) if p.code == _OTHER_SYSTEM)
        return replace(unchanged, findings=found)
    after = files.encode(text, script.program.entry.module.code)
    check(path, after)
    return replace(unchanged, findings=_taken(script), after=after)


def horovod(path: str, source: bytes) -> Migration:
    """The script with sharded input, in Horovod's names; refused where it trains by sharded calls alone, or uses what
    Horovod has not. Raises files.UnreadableSource."""
    found = migrate(path, source, Policy(shard="input"))
    if found.road == "names":
        said_once = Finding(_OTHER_SYSTEM, 1, 1, "this script is distributed by Horovod or SMDDP", True, _BY_IMPORTS)
        return replace(found, findings=(said_once,), after=source)
    if found.refused:
        said = (replace(f, next_step=_WITHOUT_TARGET) if "--shard" in f.next_step else f for f in found.findings)
        return replace(found, findings=tuple(said))
    text = files.decode(path, found.after)
    moved = dialects.to_horovod(_tree(path, text.source))
    if moved is None:
        return found
    if moved.refused:
        origins = dialects.origins(files.decode(path, source).source, text.source)
        places = ((origins[one.line - 1], one) for one in moved.refused)
        left = {Finding(_OTHER_SYSTEM, line, one.column, one.message, True, one.next_step) for line, one in places}
        return replace(found, findings=_by_place(left), after=source)
    after = files.encode(text, moved.module.code)
    check(path, after)
    return replace(found, after=after)


def _by_place(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    return tuple(sorted(findings, key=lambda f: (f.line, f.column, f.code, f.message)))


def _taken(script: Script) -> tuple[Finding, ...]:
    return tuple(Finding(_OTHER_SYSTEM, line, at, said, False) for line, at, said in script.taken)


def _migrated(unchanged: Migration, text: files.Text, script: Script, asked: _Asked) -> Migration:
    """The migration of a script that trains."""
    found, road = replace(unchanged, trains=True), asked.road(script)
    outside = script.outside_vocabulary if road == "input" and not script.shards_calls else None
    if outside is None:
        return _carried_out(found, text, asked.plan(script, road))
    again = "start again from the original script" if script.calls("init") else "leave --shard input out"
    first = replace(_finding(script, outside), next_step=outside.next_step or again)
    return replace(found, road=road, batch=asked.policy.batch or "per-worker", findings=(first,))


def _unseen(unchanged: Migration, text: files.Text, script: Script, asked: _Asked) -> Migration:
    """The migration of a script in which something may train that is not seen: by sharded calls, with its own batch."""
    found = replace(unchanged, trains=True, road="calls")
    policy = asked.policy
    if policy.shard == "input" or policy.batch == "per-worker" or not policy.scales_by_workers:
        return replace(found, findings=(Finding("TFDP010", 1, 1, _UNSEEN, True, "leave these options out"),))
    kept = _Asked(replace(policy, batch="global", shard="calls"), asked.partial)
    return _carried_out(replace(found, unseen=True), text, kept.plan(script, "calls"))


def _finding(script: Script, problem: Problem) -> Finding:
    return Finding(problem.code, *script.position(problem.node), problem.reason, True, problem.next_step)


def _carried_out(found: Migration, text: files.Text, plan: Plan) -> Migration:
    """What becomes of a file by a plan."""
    context, script = plan.context, plan.context.script
    taken = () if plan.refused else _taken(script)
    found = replace(found, findings=_by_place((*plan.findings, *taken)), road=context.road, batch=context.batch)
    if (plan.refused and not plan.partial) or not (plan.outcomes or plan.refusals):
        return found
    after = files.encode(text, apply(script, plan))
    try:
        check(found.path, after)
    except EngineError:
        _check_original(found.path, found.before)
        raise
    return replace(found, after=after)


def _check_original(path: str, before: bytes) -> None:
    """What Python does not take, but its grammar does, as a `__future__` that comes late. Raises UnreadableSource."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(before, path, "exec", dont_inherit=True)
    except SyntaxError as error:
        reason = f"this is not valid Python: {error.msg}"
        raise files.UnreadableSource(path, error.lineno or 1, error.offset or 1, reason) from error


def parse(path: str, source: str, elsewhere: Callable[[], Mapping[str, Elsewhere]] = dict) -> Script:
    """The facts of a source text, with what is known to train in other files; of one that is distributed already those
    of its one-worker form, where that is understood.

    Raises files.UnreadableSource with the place of a syntax error.
    """
    module = _tree(path, source)
    with nesting.room():
        alone = dialects.single(module)
        if alone is None:
            return Script(Program(SourceFile(module)), elsewhere)
        return Script(Program(SourceFile(alone.module, places=alone.places)), elsewhere, alone.taken)


def _tree(path: str, source: str) -> cst.Module:
    """The syntax tree of a text, which has its every byte. Raises files.UnreadableSource."""
    try:
        module = cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise files.read_by_python_alone(path, source, error.message, error.raw_line) from error
    nesting.refuse_deep(path, source, module)
    with nesting.room():
        if module.code != source:
            reason = "this text would not come back byte for byte: is there a form feed at its start? Remove it"
            raise files.UnreadableSource(path, 1, 1, reason)
    return module


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
        return _by_place(set(found))


def make_plan(  # noqa: PLR0917 - options, each with a default
    script: Script,
    batch: Batch,
    rules: Iterable[Rule],
    partial: bool = False,
    policy: Policy = AS_USUAL,
    road: Road = "input",
) -> Plan:
    """Ask every rule; all of them read the same untouched tree."""
    context = Context(script, batch, "", policy, road=road)
    name, imported = imports.alias(script.index, context.entry.imports.anchor)
    plan = _ask(replace(context, dp=name), rules, imported, partial)
    if imported or (plan.refused and not partial) or context.entry.start == context.entry.imports:
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
        at = plan.context.entry.imports
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
