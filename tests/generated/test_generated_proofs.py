"""A few generated scripts are proved: what is migrated trains the same model, whatever fragment is in it.

Only where `TFDP_GENERATED_PROOFS=N` says how many, of half a minute each; `TFDP_GENERATED_SEED` chooses others.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from itertools import count, islice
from pathlib import Path

import pytest
from judge import Case, judged, written
from kinds import KINDS

COUNT = int(os.environ.get("TFDP_GENERATED_PROOFS", "0"))
SEED = os.environ.get("TFDP_GENERATED_SEED", "0")

pytestmark = pytest.mark.skipif(not COUNT, reason="TFDP_GENERATED_PROOFS=N proves N generated scripts")


def _migrated(number: int) -> Case:
    """The first script from this seed on that the tool migrates, with a fragment of any kind."""
    chances = (random.Random(f"{SEED} {number} {again}") for again in count())
    cases = (written(chance.choice, chance.choice([None, *KINDS])) for chance in chances)
    return next(case for case in islice(cases, 100) if judged(case).what in {"input", "calls"})


@pytest.mark.parametrize("number", range(COUNT))
def test_a_script_is_proved_or_ends_by_name(number: int, tmp_path: Path) -> None:
    case = _migrated(number)
    script = tmp_path / "generated.py"
    script.write_text(case.text)
    command = [sys.executable, "-m", "tfdp.migrate", "verify", "--steps", "4", str(script)]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, check=False, timeout=500)
    named = done.returncode == 2 and "tfdp" in done.stderr
    assert done.returncode == 0 or named, f"{done.stdout}\n{done.stderr}\n{case.text}"
