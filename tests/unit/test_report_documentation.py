"""The list of rules and one rule's documentation."""

import click
import pytest

from tfdp.migrate.report.documentation import UnknownRule, explanation, find, first_sentence, listing
from tfdp.rules import RULES


def test_the_list_has_a_line_for_each_rule() -> None:
    rows = click.unstyle(listing(RULES)).splitlines()
    assert [row.split()[:2] for row in rows] == [[rule.code, rule.name] for rule in RULES]
    assert all(row.endswith(".") for row in rows)


def test_first_sentence_is_one_line() -> None:
    assert (
        first_sentence("Shard `a.b` to\nthe workers. More.\n\nWhat it does\n    x\n") == "Shard `a.b` to the workers."
    )


@pytest.mark.parametrize("asked", ["TFDP010", "tfdp010", " shard-dataset "])
def test_a_rule_is_found_by_code_or_name(asked: str) -> None:
    assert find(RULES, asked).code == "TFDP010"


@pytest.mark.parametrize(("asked", "near"), [("TFDP01", "TFDP010"), ("shard-datset", "TFDP010"), ("40", "TFDP040")])
def test_an_unknown_rule_names_its_neighbours(asked: str, near: str) -> None:
    with pytest.raises(UnknownRule, match=rf"no rule is called '{asked}'; did you mean .*{near}.*`tfdp rules`"):
        find(RULES, asked)


def test_a_rule_far_from_all_has_no_neighbours() -> None:
    with pytest.raises(UnknownRule, match="no rule is called 'qqqq'; `tfdp rules` lists them all"):
        find(RULES, "qqqq")


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_the_documentation_is_all_there(rule: object) -> None:
    shown = explanation(rule)  # type: ignore[arg-type]
    assert click.unstyle(shown).splitlines()[2:] == rule.doc.strip().splitlines()  # type: ignore[attr-defined]
    assert click.style("What it does", bold=True) in shown
