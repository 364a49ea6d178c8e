"""A verification as JSON: `format` is raised when a key changes its meaning or goes."""

from __future__ import annotations

import json
import math
from typing import Any

from ...verify.judge import Point
from ...verify.proof import Proof
from .account import Account

FORMAT = 1


def render(account: Account) -> str:
    """One JSON object and a newline. A number that is not finite is a string: "inf", "nan"."""
    facts = {
        "format": FORMAT,
        "verdict": account.verdict.word,
        "exit": account.verdict.exit_code,
        "script": account.script,
        "against": account.against,
        "migration_differs": account.differs,
        "options": dict(account.options),
        "reason": account.why,
        "failed_run": vars(account.failed) if account.failed else None,
        **({} if account.proof is None else _proof(account.proof)),
        "seconds": round(account.seconds, 1),
        "made": account.made,
        "versions": dict(account.versions),
    }
    return json.dumps(_finite(facts), indent=2, ensure_ascii=False) + "\n"


def _proof(proof: Proof) -> dict[str, Any]:
    failure = proof.failure
    return {
        "np": proof.np,
        "batch": proof.batch,
        "steps_compared": len(proof.points),
        "seed": proof.seed,
        "failure": vars(failure) if failure else None,
        "cause": proof.cause,
        "diagnosis": proof.diagnosis,
        "largest": {"loss": proof.loss, "gradient": proof.gradient, "update": proof.update},
        "limits": vars(proof.limits),
        "variables": [vars(row) for row in proof.table],
        "steps": [_point(point) for point in proof.points],
        "float64": proof.float64,
        "coverage": {**vars(proof.coverage), "text": proof.coverage.text} if proof.coverage else None,
        "rounding": vars(proof.rounding) if proof.rounding else None,
        "examples": vars(proof.data) if proof.data else None,
        "files": vars(proof.effects) if proof.effects else None,
        "optimizers": vars(proof.settings) if proof.settings else None,
        "neutralised": list(proof.neutralised),
        "road": "calls" if proof.calls else "input",
        "as_in_life": list(proof.kept),
        "divided": [vars(part) for part in proof.division.divided] if proof.division else None,
        "not_divided": [vars(part) for part in proof.division.whole] if proof.division else None,
    }


def _point(point: Point) -> dict[str, Any]:
    losses = [{"reference": wanted, "migrated": mean} for wanted, mean in point.losses]
    return {**vars(point), "losses": losses}


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
