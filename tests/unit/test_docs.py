"""What the documentation lists is what there is."""

from __future__ import annotations

import re
from pathlib import Path

import tfdp.runtime as dp
from tfdp.migrate import engine
from tfdp.migrate.cli import main
from tfdp.rules import RULES
from tfdp.rules._base import CALLS_ONLY, EVERY_ROAD, INPUT_ONLY, Policy

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"


def test_every_rule_is_listed() -> None:
    listed = [line for line in (DOCS / "rules.md").read_text().splitlines() if line.startswith("| TFDP")]
    assert listed == [f"| {r.code} | {r.name} | {r.summary} |" for r in RULES]


def test_the_roads_of_every_rule_are_listed() -> None:
    text = (DOCS / "rules.md").read_text()
    for name, roads in (("both", EVERY_ROAD), ("sharded input", INPUT_ONLY), ("sharded calls", CALLS_ONLY)):
        assert f"| {name} | {', '.join(r.code for r in RULES if r.roads == roads)} |" in text


def test_every_public_name_of_the_runtime_is_named() -> None:
    text = (DOCS / "runtime.md").read_text()
    assert [name for name in dp._WHERE if f"`{name}" not in text] == []


def test_every_environment_variable_that_is_documented_is_read() -> None:
    sources = "\n".join(p.read_text() for p in (ROOT / "runtime").rglob("*.py"))
    named = set(re.findall(r"`(TFDP_[A-Z_]+)`", (DOCS / "runtime.md").read_text()))
    assert named
    assert [name for name in named if f'"{name}"' not in sources] == []


def test_the_readme_shows_the_real_diff() -> None:
    readme = (ROOT / "README.md").read_text()
    shown = re.search(r"```diff\n(.*?)```", readme, re.DOTALL)
    assert shown is not None
    source = (ROOT / "fixtures" / "scripts" / "smddp_mnist" / "before.py").read_bytes()
    made = engine.migrate("train.py", source, Policy(batch="per-worker")).after
    before, after = (set(text.decode().splitlines()) for text in (source, made))
    for line in shown[1].splitlines():
        if line[:1] == "+":
            assert line[1:] in after
        elif line[:1] == "-":
            assert line[1:] in before - after
        elif line.strip() != "…":
            assert line[1:] in before & after


def test_every_option_of_verify_is_documented() -> None:
    text = (DOCS / "verify.md").read_text()
    options = [name for option in main.commands["verify"].params for name in option.opts if name.startswith("-")]
    assert options
    assert [name for name in options if f"`{name}" not in text] == []
