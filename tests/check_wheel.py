"""Checks what is in the built wheel and sdist: `python tests/check_wheel.py WHEEL SDIST`."""

from __future__ import annotations

import sys
import tarfile
import zipfile
from pathlib import Path

ROOT = Path(__file__).parents[1]
FOLDERS = ("migrate", "rules", "runtime")


def sources() -> set[str]:
    """Every file of the three folders that belongs in a wheel."""
    found = (p for folder in FOLDERS for p in (ROOT / folder).rglob("*") if p.is_file())
    return {p.relative_to(ROOT).as_posix() for p in found if "__pycache__" not in p.parts}


def check(wheel: str, sdist: str) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = set(archive.namelist())
    code = {n for n in names if not n.split("/")[0].endswith(".dist-info")}
    expected = {f"tfdp/{name}" for name in sources()}
    assert code == expected, f"wheel: missing {sorted(expected - code)}, unexpected {sorted(code - expected)}"
    assert {f"tfdp/{folder}/py.typed" for folder in FOLDERS} <= names
    assert any(n.endswith("licenses/LICENSE") for n in names), "the wheel has no licence"
    with tarfile.open(sdist) as archive:
        packed = {n.split("/", 1)[1] for n in archive.getnames() if "/" in n}
    assert sources() <= packed, f"sdist: missing {sorted(sources() - packed)}"
    assert not any(n.startswith(".editable") for n in packed), "the sdist holds copies of the packages under .editable"
    print(f"wheel: {len(code)} files under tfdp/, sdist: {len(packed)} entries; contents as they should be")


if __name__ == "__main__":
    check(*sys.argv[1:3])
