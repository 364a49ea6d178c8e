"""Rules as text: the list of them, and one rule's documentation."""

from __future__ import annotations

import difflib
import functools
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from ...rules._base import Rule

_CODE = re.compile(r"`([^`\n]+)`")
_SENTENCE_END = re.compile(r"(?<=[.!?])(?<!et al\.)\s")


class UnknownRule(Exception):  # noqa: N818 - says what is wrong, like KeyError's relatives in this code
    """No rule has this code or name; the message names the nearest ones."""


def listing(rules: Sequence[Rule]) -> str:
    """One line for each rule: code, name, first sentence of its documentation."""
    width = max((len(rule.name) for rule in rules), default=0)
    rows = (f"{click.style(r.code, fg='cyan')}  {r.name:<{width}}  {first_sentence(r.doc)}" for r in rules)
    return "".join(f"{row}\n" for row in rows)


def first_sentence(doc: str) -> str:
    """The first sentence of the first paragraph, on one line."""
    paragraph = " ".join(doc.strip().split("\n\n")[0].split())
    return _SENTENCE_END.split(paragraph)[0]


@functools.cache
def reasons() -> Mapping[str, str]:
    """For each rule's code the first sentence of why it is there."""
    from ...rules import RULES

    return {rule.code: first_sentence(_section(rule.doc, "Why")) for rule in RULES}


def _section(doc: str, heading: str) -> str:
    _, _, rest = doc.partition(f"\n{heading}\n")
    return re.split(r"\n(?=\S)", rest)[0]


def find(rules: Sequence[Rule], asked: str) -> Rule:
    """The rule with this code or name, in any case. Raises UnknownRule."""
    by_label = {label.lower(): rule for rule in rules for label in (rule.code, rule.name)}
    rule = by_label.get(asked.strip().lower())
    if rule is not None:
        return rule
    word = asked.strip().lower()
    near = [label for label in by_label if word and word in label] or difflib.get_close_matches(word, by_label, n=3)
    named = list(dict.fromkeys(f"{by_label[label].code} ({by_label[label].name})" for label in near[:5]))
    hint = f"did you mean {' or '.join(named)}? " if named else ""
    raise UnknownRule(f"no rule is called {asked!r}; {hint}`tfdp rules` lists them all")


def explanation(rule: Rule) -> str:
    """A rule's documentation with a title; headings, code and the result of the example stand out in colour."""
    title = f"{click.style(rule.code, fg='cyan', bold=True)} {click.style(rule.name, bold=True)}"
    return "\n".join([title, "", *(_styled(line) for line in rule.doc.strip().splitlines()), ""])


def _styled(line: str) -> str:
    # Headings are the only lines that start at the margin and end without a full stop.
    if line and not line.startswith(" ") and not line.endswith("."):
        return click.style(line, bold=True)
    return _CODE.sub(lambda code: click.style(code[0], fg="cyan"), line)
