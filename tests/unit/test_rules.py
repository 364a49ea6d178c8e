"""Every rule's cases: fixtures/rules/TFDPnnn/<reason>.py holds an input and, after `# output`, what it must become.

`# refuse: CODE:LINE …` instead says where it must be refused, `# keeps: CODE:LINE` why `--batch per-worker` is;
without a marker the file must not change. A first line `# batch: global` selects that mode, `# shard: calls` a road.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tfdp.migrate import engine, files
from tfdp.migrate.facts import describe, read
from tfdp.rules import RULES
from tfdp.rules._base import Policy

ROOT = Path(__file__).parents[2]
CASES = sorted((ROOT / "fixtures" / "rules").glob("*/*.py"))
SCRIPTS = sorted((ROOT / "fixtures" / "scripts").glob("*/before.py"))
HEADINGS = ("What it does", "Why", "Example", "When it refuses")


def split(path: Path) -> tuple[str, str | None, list[str]]:
    text = path.read_text()
    if "\n# refuse: " in text:
        before, _, refusals = text.partition("\n# refuse: ")
        return before, None, refusals.split()
    if "\n# keeps: " in text:
        before, _, kept = text.partition("\n# keeps: ")
        return before, None, [f"keeps {kept.strip()}"]
    before, marker, after = text.partition("\n# output\n")
    return before, after if marker else before, []


def migrated(path: Path, source: bytes) -> engine.Migration:
    first = source.partition(b"\n")[0].decode()
    shard, batch = "auto", first.removeprefix("# batch: ") if first.startswith("# batch: ") else ""
    if first.startswith("# shard: "):
        shard, _, batch = first.removeprefix("# shard: ").partition(" ")
    return engine.migrate(path.name, source, Policy(shard, batch or None))  # type: ignore[arg-type]


@pytest.mark.parametrize("path", CASES, ids=[f"{p.parent.name}-{p.stem}" for p in CASES])
def test_case(path: Path) -> None:
    before, after, refusals = split(path)
    result = migrated(path, before.encode())
    if refusals and refusals[0].startswith("keeps "):
        assert not result.refused, result.findings
        script = read(before)
        assert (kept := script.unwidened) is not None
        assert f"keeps {kept.code}:{script.position(kept.node)[0]}" == refusals[0]
        assert engine.migrate(path.name, before.encode(), Policy(batch="per-worker")).refused
        return
    if refusals:
        assert [f"{f.code}:{f.line}" for f in result.findings] == refusals
        assert result.after == result.before
        return
    assert not result.refused, result.findings
    assert after is not None
    assert result.after.decode() == after
    again = migrated(path, result.after)
    assert again.after == result.after
    assert not again.findings
    ast.parse(result.after)


@pytest.mark.parametrize("batch", [None, "per-worker", "global"])
@pytest.mark.parametrize(
    ("path", "newline"),
    [*((p, "\n") for p in SCRIPTS), (SCRIPTS[0], "\r\n")],
    ids=[*(p.parent.name for p in SCRIPTS), f"{SCRIPTS[0].parent.name}-crlf"],
)
def test_whole_scripts(path: Path, batch: str | None, newline: str) -> None:
    """A script whose batch cannot be another has no `after_global.py`. Where both were made by sharding its input, that
    is asked for."""
    before = path.read_text().replace("\n", newline).encode()
    other = path.with_name("after_global.py")
    by_input = "dp.init()" in path.with_name("after.py").read_text()
    result = engine.migrate("before.py", before, Policy("input" if by_input else "auto", batch))  # type: ignore[arg-type]
    assert engine.migrate("before.py", before).road in {"calls", None}
    if batch == "per-worker" and not other.exists():
        assert result.refused or not result.trains
        return
    kept = batch == "global" or (batch is None and result.road == "calls")
    after = other if kept and other.exists() else path.with_name("after.py")
    expected = after.read_text().replace("\n", newline)
    assert result.after.decode() == expected
    for mode in (None, "global") if newline == "\n" else ():
        again = engine.migrate("after.py", result.after, Policy(batch=mode))
        assert (again.after, again.findings) == (result.after, ())


def test_every_rule_has_cases_that_change_and_cases_that_must_not() -> None:
    changing = {p.parent.name for p in CASES if "\n# output\n" in p.read_text()}
    refusing = {code.partition(":")[0] for p in CASES for code in split(p)[2]}
    staying = {p.parent.name for p in CASES if split(p)[1] == split(p)[0]}
    assert {r.code for r in RULES} <= changing | refusing
    assert changing >= {r.code for r in RULES if r.code not in {"TFDP053", "TFDP070", "TFDP075"}}
    assert staying


@pytest.mark.parametrize("rule", RULES, ids=lambda r: r.code)
def test_documentation(rule) -> None:
    assert re.fullmatch(r"TFDP\d{3}", rule.code)
    positions = [rule.doc.find(f"\n{heading}\n") for heading in HEADINGS]
    assert all(p > 0 for p in positions)
    assert positions == sorted(positions)
    assert rule.summary.endswith(".")
    example = rule.doc.split("\nExample\n")[1].split("\nWhen it refuses\n")[0]
    ast.parse("\n".join(line[4:] for line in example.splitlines()))


def test_every_problem_has_a_rule_that_reports_it() -> None:
    codes = {r.code for r in RULES}
    sources = "\n".join(p.read_text() for p in (ROOT / "migrate" / "facts").rglob("*.py"))
    used = set(re.findall(r'"(TFDP\d{3})"', sources))
    assert used
    assert used <= codes


def test_facts_are_described_for_a_case_of_every_rule() -> None:
    for path in {p.parent.name: p for p in CASES if not p.read_text().startswith(("# batch", "# shard"))}.values():
        text = describe(read(split(path)[0]))
        assert "road" in text or text.startswith("not a training script"), path


def test_a_text_that_would_not_come_back_is_refused() -> None:
    source = "\x0cimport tensorflow as tf\nwith tf.GradientTape() as tape:\n    pass\n"
    with pytest.raises(files.UnreadableSource, match="byte for byte"):
        engine.migrate("train.py", source.encode())


def test_an_indentation_that_only_python_reads_is_named_with_its_line_and_remedy() -> None:
    source = "import keras\nif 1:\n\tif 2:\n            x = 1\n\ty = 2\n"
    compile(source, "train.py", "exec")
    with pytest.raises(files.UnreadableSource, match=r"train\.py:3:1: libCST cannot read .* expand -t 8"):
        engine.parse("train.py", source)


def test_a_text_that_python_does_not_compile_is_refused_with_its_place() -> None:
    fit = 'model = tf.keras.Sequential()\nmodel.compile("sgd", "mse")\nmodel.fit(x, y)\n'
    source = f"import tensorflow as tf\nfrom __future__ import division\n{fit}"
    with pytest.raises(files.UnreadableSource, match="this is not valid Python: from __future__ imports") as found:
        engine.migrate("train.py", source.encode())
    assert found.value.line == 2
