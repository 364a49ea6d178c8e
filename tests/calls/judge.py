"""Whether workers have trained what one process trains: array by array, step by step. Imports no TensorFlow."""

import numpy as np

SHOWN = 5
IDLE = ("one row", "no rows", "takes no tensors")  # calls that have no rows to divide
EAGERLY = "runs eagerly, and calls layers"  # which are divided
UNKNOWN = "may do more than to compute"
NOTHING = "nothing in this script could be sharded"


def wrong(kind, reference, outcome, *, alone=False):
    """Why several workers' outcome is not that of the reference, in words; empty where it is. alone: there is one."""
    (wanted,) = reference.ranks or (None,)
    if wanted is None or wanted.error:
        return f"one process alone cannot train it:\n{wanted.error if wanted else reference.output}"
    if not outcome.ranks:
        return f"the workers did not end it alike; the launch said:\n{outcome.output}"
    if outcome.ranks[0].error:
        return _errors(kind, outcome.ranks)
    bound = 0.0 if alone and kind.repeats else kind.bound
    for rank, said in enumerate(outcome.ranks):
        found = list(differences(wanted.arrays, said.arrays, bound))
        if found:
            more = f"\n  and {len(found) - SHOWN} more" if len(found) > SHOWN else ""
            return f"rank {rank} differs from one process:\n  " + "\n  ".join(found[:SHOWN]) + more
    return "" if alone else _undivided(kind, outcome.ranks)


def _errors(kind, ranks):
    allowed = kind.may_refuse if kind.divided else (*kind.may_refuse, NOTHING)
    if all(said.refused and any(words in said.said for words in allowed) for said in ranks):
        return ""
    return "\n".join(f"--- rank {rank} ---\n{said.error}" for rank, said in enumerate(ranks))


def _undivided(kind, ranks):
    """What was not divided that should be; or what is not the same on all workers."""
    reports = [{name: not reason for name, reason in said.report} for said in ranks]
    if any(report != reports[0] for report in reports):
        return f"the workers divide different layers: {[said.report for said in ranks]}"
    if kind.divided and not any(reports[0].values()):
        return f"nothing was divided: {ranks[0].report}"
    whole = [
        f"{name} {reason}"
        for name, reason in ranks[0].report
        if reason not in ("", *IDLE) and not reason.startswith(EAGERLY)
    ]
    if kind.divided == "beside" and not any(UNKNOWN in each for each in whole):
        return f"all of it was divided: {ranks[0].report}"
    return f"not divided: {'; '.join(whole)}" if kind.divided is True and whole else ""


def differences(wanted, found, bound):
    """Those arrays that differ by more than bound, relative to the largest number in the same model, step or loss."""
    if list(wanted) != list(found):
        yield f"other arrays: {sorted(set(wanted) ^ set(found))[:SHOWN] or 'in another order'}"
        return
    scales = _scales(wanted)
    for name, array in wanted.items():
        difference = _difference(array, found[name])
        if difference > bound * scales[_thing(name)]:
            yield f"{name}: {difference:.2e} of {scales[_thing(name)]:.2e}"


def _thing(name):
    """The step and the model, optimizer or loss that an array is of: of one whose gradient is zero, all is rounding."""
    return name.partition(".")[0]


def _scales(arrays):
    scales = {}
    for name, array in arrays.items():
        if array.dtype.kind == "f" and array.size:
            scales[_thing(name)] = max(scales.get(_thing(name), 0.0), float(np.nanmax(np.abs(array), initial=0.0)))
        else:
            scales.setdefault(_thing(name), 0.0)
    return scales


def _difference(wanted, found):
    """The largest; infinite where the arrays cannot be compared or numbers that are no floats differ."""
    if wanted.shape != found.shape or wanted.dtype != found.dtype:
        return np.inf
    if wanted.dtype.kind != "f":
        return 0.0 if np.array_equal(wanted, found) else np.inf
    if not np.array_equal(np.isfinite(wanted), np.isfinite(found)):
        return np.inf
    apart = np.where(np.isfinite(wanted), np.abs(wanted.astype("f8") - found.astype("f8")), 0.0)
    return float(apart.max(initial=0.0))
