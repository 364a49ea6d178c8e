"""Runs the rules over one file's facts and applies what they yield in one pass."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar

import libcst as cst

from tfdp.migrate import build, files, imports
from tfdp.migrate.facts.script import Script
from tfdp.rules import RULES
from tfdp.rules._base import (
    LINEAR,
    Batch,
    Context,
    Drop,
    Edit,
    Guard,
    Insert,
    Outcome,
    Parameter,
    Refuse,
    Rule,
    Scaling,
    SetArg,
    place,
)

# A file without any of these trains nothing that tfdp knows, whatever it imports: its facts are not worth computing.
_TRAINING_MARKS = (
    b"GradientTape",
    b"apply_gradients",
    b"assign_sub",
    b".fit",
    b".minimize",
    b"train_on_batch",
    b".search(",
    b".apply(",
    b"stimator",
    b"horovod",
    b"smdistributed",
)


class EngineError(Exception):
    """Two rules want to change one place, or a result does not parse: a defect of tfdp, never of the user's file."""


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
    if not script.trains:
        return unchanged
    plan = make_plan(script, batch, RULES, partial, scaling)
    if (plan.refused and not partial) or not (plan.outcomes or plan.refusals):
        return replace(unchanged, findings=plan.findings)
    after = files.encode(text, apply(script, plan))
    check(path, after)
    return replace(unchanged, after=after, findings=plan.findings)


def parse(path: str, source: str) -> Script:
    """The facts of a source text. Raises files.UnreadableSource with the place of a syntax error."""
    try:
        module = cst.parse_module(source)
    except cst.ParserSyntaxError as error:
        raise files.UnreadableSource(
            path, error.raw_line, error.raw_column + 1, "this is not valid Python: " + error.message
        ) from error
    if module.code != source:
        reason = "this text would not come back byte for byte: is there a form feed at its start? Remove it"
        raise files.UnreadableSource(path, 1, 1, reason)
    return Script(module)


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
    plan = Plan(Context(script, batch, name, scaling), imported, partial)
    for rule in rules:
        for outcome in rule.run(plan.context):
            if isinstance(outcome, Refuse):
                plan.refusals.append((rule, outcome))
            else:
                plan.outcomes.append((rule, outcome))
    return plan


def apply(script: Script, plan: Plan) -> str:
    """The source text with every outcome of the plan applied in one pass."""
    inserts = [(r.code, o) for r, o in plan.outcomes if isinstance(o, Insert)]
    if not plan.imported:
        at = script.entry.imports
        code = f"import {imports.MODULE} as {plan.context.dp}"
        inserts.append(("", Insert(at.anchor, "before" if at.first else "after", code, "")))
    transformer = _Apply(plan, sorted(inserts, key=lambda i: i[0]), script)
    return script.module.visit(transformer).code


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


_Key = TypeVar("_Key")
_Change = TypeVar("_Change", Edit, SetArg)


class _Apply(cst.CSTTransformer):
    """Applies a plan.

    Expressions are changed one for one; statements are added and guarded where their body is rebuilt.
    """

    def __init__(self, plan: Plan, inserts: list[tuple[str, Insert]], script: Script) -> None:
        super().__init__()
        self._dp = plan.context.dp
        self._edits: dict[cst.CSTNode, tuple[Rule, Edit]] = {}
        self._arguments: dict[cst.CSTNode, dict[str, tuple[Rule, SetArg]]] = {}
        self._parameters: dict[cst.CSTNode, Parameter] = {}
        self._guards: dict[cst.CSTNode, Guard] = {}
        self._dropped: set[cst.CSTNode] = set()
        self._before: dict[cst.CSTNode, list[str]] = {}
        self._after: dict[cst.CSTNode, list[str]] = {}
        for rule, outcome in plan.outcomes:
            if isinstance(outcome, Edit):
                self._once(self._edits, outcome.node, rule, outcome)
            elif isinstance(outcome, SetArg):
                self._once(self._arguments.setdefault(outcome.call, {}), outcome.keyword, rule, outcome)
            elif isinstance(outcome, Parameter):
                self._parameters[outcome.function.params] = outcome
            elif isinstance(outcome, Guard):
                self._guards[outcome.statement] = outcome
            elif isinstance(outcome, Drop):
                self._dropped.add(outcome.statement)
        self._todo = _todo(script, [(r.code, o) for r, o in plan.refusals])
        for _, insert in inserts:
            side = self._before if insert.where == "before" else self._after
            anchor = insert.anchor
            holder = script.index.parents.get(anchor)
            line = holder if isinstance(anchor, cst.BaseSmallStatement) and holder is not None else anchor
            side.setdefault(line, []).append(insert.code)

    def _once(self, taken: dict[_Key, tuple[Rule, _Change]], key: _Key, rule: Rule, outcome: _Change) -> None:
        if key in taken:
            raise EngineError(f"{taken[key][0].code} and {rule.code} both change one place: {outcome.message}")
        taken[key] = (rule, outcome)

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> cst.CSTNodeT:
        node: cst.CSTNode = updated_node
        if original_node in self._arguments:
            node = self._set_arguments(cst.ensure_type(original_node, cst.Call), cst.ensure_type(node, cst.Call))
        if original_node in self._edits:
            assert isinstance(node, cst.BaseExpression)
            node = self._edits[original_node][1].change(node)
        if (added := self._parameters.get(original_node)) is not None:
            node = build.with_parameter(cst.ensure_type(node, cst.Parameters), added.name, added.default)
        if isinstance(original_node, cst.Module | cst.IndentedBlock):
            indent = getattr(original_node, "indent", None)
            body, left = self._body(original_node.body, node.body, indent)  # type: ignore[attr-defined]
            if body is not None:
                node = node.with_changes(body=body, footer=[*left, *node.footer])  # type: ignore[attr-defined]
        elif isinstance(original_node, cst.SimpleStatementSuite):
            node = self._suite(original_node, cst.ensure_type(node, cst.SimpleStatementSuite))
        if original_node in self._todo:
            node = build.commented(node, self._todo[original_node])
        return node  # type: ignore[return-value]

    def _set_arguments(self, original: cst.Call, updated: cst.Call) -> cst.Call:
        for keyword, (_, setting) in self._arguments[original].items():
            index = next(
                (i for i, a in enumerate(original.args) if a.keyword is not None and a.keyword.value == keyword), None
            )
            positional = [i for i, a in enumerate(original.args) if a.keyword is None and not a.star]
            if index is None and setting.position is not None and setting.position < len(positional):
                index = positional[setting.position]
            value = setting.change(updated.args[index].value if index is not None else None)
            updated = build.with_argument(updated, index, build.keyword(keyword, value))
            if setting.becomes is not None and index is not None:
                renamed = updated.args[index].with_changes(keyword=cst.Name(setting.becomes))
                updated = updated.with_changes(args=[*updated.args[:index], renamed, *updated.args[index + 1 :]])
        return updated

    # --- statements ---------------------------------------------------------------------------------------------------

    def _body(
        self, original: Sequence[cst.BaseStatement], updated: Sequence[cst.BaseStatement], indent: str | None = None
    ) -> tuple[list[cst.BaseStatement] | None, list[cst.EmptyLine]]:
        """The rebuilt body, or None where nothing in it changes at this level, and the comments left at its end."""
        result: list[cst.BaseStatement] = []
        open_guard: list[cst.BaseStatement] = []
        left: list[cst.EmptyLine] = []
        comment = ""
        changed = False
        for old, new in zip(original, updated, strict=True):
            changed = changed or old in self._before or old in self._after
            for found, guard in self._parts(old, new):
                if found is None:
                    left += getattr(new, "leading_lines", ())
                    changed = True
                    continue
                part, left = build.below(left, found), []
                if guard is None or (open_guard and (_separated(part) or old in self._before)):
                    self._close(result, open_guard, comment, indent)
                if guard is not None:
                    comment = comment if open_guard else guard.comment
                    before, guarded = self._inserted_before(old, part)
                    result += before
                    open_guard.append(guarded)
                    changed = True
                    if old in self._after:
                        self._close(result, open_guard, comment, indent)
                        result += self._inserted_after(old)
                else:
                    result += self._with_inserts(old, part)
        self._close(result, open_guard, comment, indent)
        if changed and not result:
            result = build.lines("pass")
        return result if changed else None, [line for line in left if line.comment is not None]

    def _close(
        self, result: list[cst.BaseStatement], open_guard: list[cst.BaseStatement], comment: str, indent: str | None
    ) -> None:
        if open_guard:
            result.append(build.guard(self._dp, comment, list(open_guard), indent))
            open_guard.clear()

    def _parts(
        self, old: cst.BaseStatement, new: cst.BaseStatement
    ) -> list[tuple[cst.BaseStatement | None, Guard | None]]:
        """A statement line as lines that are guarded as a whole or not at all: `a = 1; print(a)` becomes two.

        None stands for a line of which nothing is left.
        """
        if not isinstance(old, cst.SimpleStatementLine):
            return [(new, self._guards.get(old))]
        if not any(s in self._guards or s in self._dropped for s in old.body):
            return [(new, None)]
        assert isinstance(new, cst.SimpleStatementLine)
        if len(old.body) == 1:
            return [(None if old.body[0] in self._dropped else new, self._guards.get(old.body[0]))]
        parts: list[tuple[cst.BaseStatement, Guard | None]] = []
        for small_old, small_new in zip(old.body, new.body, strict=True):
            if small_old not in self._dropped:
                bare = small_new.with_changes(semicolon=cst.MaybeSentinel.DEFAULT)
                parts.append((cst.SimpleStatementLine([bare]), self._guards.get(small_old)))
        if not parts:
            return [(None, None)]
        parts[0] = (parts[0][0].with_changes(leading_lines=new.leading_lines), parts[0][1])
        parts[-1] = (parts[-1][0].with_changes(trailing_whitespace=new.trailing_whitespace), parts[-1][1])
        return [*parts]

    def _inserted_before(
        self, old: cst.BaseStatement, new: cst.BaseStatement
    ) -> tuple[list[cst.BaseStatement], cst.BaseStatement]:
        """The lines that come before a statement, and the statement with the comments that stay its own."""
        before = [s for code in self._before.get(old, ()) for s in build.lines(code)]
        if before:
            leading = list(getattr(new, "leading_lines", ()))
            blank = next((i for i, line in enumerate(leading) if line.comment is not None), len(leading))
            before[0] = before[0].with_changes(leading_lines=leading[:blank])
            apart = [_BLANK, _BLANK] if isinstance(new, cst.FunctionDef | cst.ClassDef) else []
            new = new.with_changes(leading_lines=[*apart, *leading[blank:]])
        return _spaced(before), new

    def _with_inserts(self, old: cst.BaseStatement, new: cst.BaseStatement) -> list[cst.BaseStatement]:
        before, new = self._inserted_before(old, new)
        return [*before, new, *self._inserted_after(old)]

    def _inserted_after(self, old: cst.BaseStatement) -> list[cst.BaseStatement]:
        return _spaced([s for code in self._after.get(old, ()) for s in build.lines(code)])

    def _suite(self, original: cst.SimpleStatementSuite, updated: cst.SimpleStatementSuite) -> cst.BaseSuite:
        """`if x: print(x)` gets a block of its own when what it holds is guarded or added to."""
        changed = any(s in self._guards or s in self._dropped for s in original.body)
        touched = changed or original in self._before or original in self._after
        if not touched:
            return updated
        old = cst.SimpleStatementLine(original.body)
        new = cst.SimpleStatementLine(updated.body, trailing_whitespace=updated.trailing_whitespace)
        for side in (self._before, self._after):
            if original in side:
                side[old] = side[original]
        body, _ = self._body([old], [new])
        assert body is not None
        return cst.IndentedBlock(body)


def _todo(script: Script, refusals: Iterable[tuple[str, Refuse]]) -> dict[cst.CSTNode, list[str]]:
    """The comments above each statement that something in it is left to do."""
    found: dict[cst.CSTNode, list[str]] = {}
    for code, refusal in refusals:
        statement = script.index.statement_of(refusal.node)
        while not hasattr(statement, "leading_lines") and not isinstance(statement, cst.Module):
            statement = script.index.parents[statement]
        comment = f"# TODO(tfdp): {code} {refusal.reason}; {refusal.next_step}".replace("\n", " ")
        found.setdefault(statement, []).append(comment)
    return found


def _separated(statement: cst.BaseStatement) -> bool:
    return bool(getattr(statement, "leading_lines", ()))


_BLANK = cst.EmptyLine(indent=False)


def _spaced(added: list[cst.BaseStatement]) -> list[cst.BaseStatement]:
    """Added lines with a blank one after an import."""
    for i in range(1, len(added)):
        if _is_import(added[i - 1]) and not _is_import(added[i]) and not _separated(added[i]):
            added[i] = added[i].with_changes(leading_lines=[_BLANK])
    return added


def _is_import(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Import | cst.ImportFrom)
