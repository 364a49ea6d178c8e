"""python tests/generated/table.py [SCRIPTS OF EACH KIND] [SEED] [FILE] [KIND]: what becomes of generated scripts.

The FILE gets those that are accepted, and those marked exact. `TFDP_CHECKOUT` is the folder of another state of tfdp.
"""

from __future__ import annotations

import json
import os
import random
import sys
import traceback
from collections import Counter
from pathlib import Path

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(Path(os.environ.get("TFDP_CHECKOUT", HERE.parents[1])) / ".editable")]

from judge import judged, written  # noqa: E402
from kinds import KINDS  # noqa: E402


def main(count: int, seed: int, keep: str | None, only: str = "") -> None:
    rows: dict[str, Counter[str]] = {}
    codes: dict[str, Counter[str]] = {}
    kept = []
    for kind in (k for k in (None, *KINDS) if only in (k or "exact")):
        name = kind or "exact"
        chance = random.Random(f"{seed} {name}")
        rows[name], codes[name] = Counter(), Counter()
        for _ in range(count if kind else 4 * count):
            case = written(chance.choice, kind)
            try:
                verdict = judged(case)
                what, said = verdict.what, verdict.said
            except Exception:
                what, said = "crashed", (("", 0, traceback.format_exc()),)
            rows[name][what] += 1
            codes[name].update({code for code, *_ in said if code})
            if kind is None or what in ("input", "untouched", "crashed"):
                kept.append({"kind": name, "road": case.road, "what": what, "said": said, "text": case.text})
        number = KINDS[kind].number if kind else "-"
        print(
            f"| {number} | {name} | {sum(rows[name].values())} | {dict(rows[name])} | {dict(codes[name])} |", flush=True
        )
    if keep:
        Path(keep).write_text(json.dumps(kept, indent=0))


if __name__ == "__main__":
    main(*(int(word) for word in (sys.argv[1:] + ["20", "0"][len(sys.argv) - 1 :])[:2]), *(sys.argv[3:5] or [None]))
