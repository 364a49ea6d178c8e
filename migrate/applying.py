"""Applies what rules yield to a syntax tree, in one pass."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import TypeVar

import libcst as cst

from ..rules._base import Context, Drop, Edit, Guard, Insert, Outcome, Parameter, Refuse, Rule, SetArg
from . import build
from .facts import Script
from .facts.program import SourceFile


class EngineError(Exception):
    """Two rules want to change one place, or a result does not parse: a defect of tfdp, never of the user's file."""


def changed(
    context: Context,
    file: SourceFile,
    outcomes: Iterable[tuple[Rule, Outcome]],
    refusals: Iterable[tuple[Rule, Refuse]],
    inserts: Iterable[tuple[str, Insert]],
) -> str:
    """The text of one file with all outcomes in it applied. Raises EngineError.

    inserts: in the order in which those at one place come, with the codes of their rules.
    """
    transformer = _Apply(context, outcomes, refusals, inserts)
    text = file.module.visit(transformer).code
    if lost := transformer.left:
        raise EngineError(f"there is no place for {'; '.join(lost)}")
    return text


_Key = TypeVar("_Key")
_Change = TypeVar("_Change", Edit, SetArg)


class _Apply(cst.CSTTransformer):
    """Applies a plan.

    Expressions are changed one for one; statements are added and guarded where their body is rebuilt.
    """

    def __init__(
        self,
        context: Context,
        outcomes: Iterable[tuple[Rule, Outcome]],
        refusals: Iterable[tuple[Rule, Refuse]],
        inserts: Iterable[tuple[str, Insert]],
    ) -> None:
        super().__init__()
        self._dp = context.dp
        self._edits: dict[tuple[cst.CSTNode, bool], tuple[Rule, Edit]] = {}
        self._arguments: dict[cst.CSTNode, dict[str, tuple[Rule, SetArg]]] = {}
        self._parameters: dict[cst.CSTNode, Parameter] = {}
        self._guards: dict[cst.CSTNode, Guard] = {}
        self._dropped: set[cst.CSTNode] = set()
        self._before: dict[cst.CSTNode, list[Insert]] = {}
        self._after: dict[cst.CSTNode, list[Insert]] = {}
        for rule, outcome in outcomes:
            if isinstance(outcome, Edit):
                self._once(self._edits, (outcome.node, outcome.around), rule, outcome)
            elif isinstance(outcome, SetArg):
                self._once(self._arguments.setdefault(outcome.call, {}), outcome.keyword, rule, outcome)
            elif isinstance(outcome, Parameter):
                self._parameters[outcome.function.params] = outcome
            elif isinstance(outcome, Guard):
                self._guards[outcome.statement] = outcome
            elif isinstance(outcome, Drop):
                self._dropped.add(outcome.statement)
        self._todo = _todo(context.script, [(r.code, o) for r, o in refusals])
        for _, insert in inserts:
            side = self._before if insert.where == "before" else self._after
            anchor = insert.anchor
            holder = context.script.index.parents.get(anchor)
            line = holder if isinstance(anchor, cst.BaseSmallStatement) and holder is not None else anchor
            side.setdefault(line, []).append(insert)

    @property
    def left(self) -> list[str]:
        """What was to be inserted and has not been."""
        return [each.code for side in (self._before, self._after) for inserts in side.values() for each in inserts]

    def _once(self, taken: dict[_Key, tuple[Rule, _Change]], key: _Key, rule: Rule, outcome: _Change) -> None:
        if key in taken:
            raise EngineError(f"{taken[key][0].code} and {rule.code} both change one place: {outcome.message}")
        taken[key] = (rule, outcome)

    def on_leave(self, original_node: cst.CSTNodeT, updated_node: cst.CSTNodeT) -> cst.CSTNodeT:
        node: cst.CSTNode = updated_node
        if original_node in self._arguments:
            node = self._set_arguments(cst.ensure_type(original_node, cst.Call), cst.ensure_type(node, cst.Call))
        for around in (False, True):
            if (edit := self._edits.get((original_node, around))) is not None:
                assert isinstance(node, cst.BaseExpression)
                node = edit[1].change(node)
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
            after = self._after.pop(old, ())
            for found, guard in self._parts(old, new):
                if found is None:
                    left += getattr(new, "leading_lines", ())
                    changed = True
                    if added := [*_added(self._before.get(old, ())), *_added(after)]:
                        self._close(result, open_guard, comment, indent)
                        result += added
                    continue
                part, left = build.below(left, found), []
                if guard is None or (open_guard and (_separated(part) or self._before.get(old))):
                    self._close(result, open_guard, comment, indent)
                if guard is not None:
                    comment = comment if open_guard else guard.comment
                    before, guarded = self._inserted_before(old, part)
                    result += before
                    open_guard.append(guarded)
                    changed = True
                    if after:
                        self._close(result, open_guard, comment, indent)
                        result += _added(after)
                else:
                    before, part = self._inserted_before(old, part)
                    result += [*before, part, *_added(after)]
            self._before.pop(old, None)
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
        before = _added(self._before.get(old, ()))
        if before:
            self._before[old] = [each for each in self._before[old] if each.at_each]
            leading = list(getattr(new, "leading_lines", ()))
            blank = next((i for i, line in enumerate(leading) if line.comment is not None), len(leading))
            before[0] = before[0].with_changes(leading_lines=leading[:blank])
            apart = [_BLANK, _BLANK] if isinstance(new, cst.FunctionDef | cst.ClassDef) else []
            new = new.with_changes(leading_lines=[*apart, *leading[blank:]])
        return before, new

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
                side[old] = side.pop(original)
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
        reason = re.sub(r" \(line \d+\)", "", refusal.reason)  # it would be another one when the comment stands there
        comment = f"# TODO(tfdp): {code} {reason}; {refusal.next_step}".replace("\n", " ")
        found.setdefault(statement, []).append(comment)
    return found


def _separated(statement: cst.BaseStatement) -> bool:
    return bool(getattr(statement, "leading_lines", ()))


_BLANK = cst.EmptyLine(indent=False)


def _added(inserts: Iterable[Insert]) -> list[cst.BaseStatement]:
    """The lines of what is inserted, with a blank one after an import."""
    added = [statement for each in inserts for statement in build.lines(each.code)]
    for i in range(1, len(added)):
        if _is_import(added[i - 1]) and not _is_import(added[i]) and not _separated(added[i]):
            added[i] = added[i].with_changes(leading_lines=[_BLANK])
    return added


def _is_import(statement: cst.BaseStatement) -> bool:
    return isinstance(statement, cst.SimpleStatementLine) and isinstance(statement.body[0], cst.Import | cst.ImportFrom)
