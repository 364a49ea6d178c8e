"""Starts the kinds of training in one process and on real ranks. Imports no TensorFlow."""

import ast
import importlib.metadata
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing

import numpy as np

HERE = pathlib.Path(__file__).parent
RUNNER = HERE / "run_kinds.py"
STALL_SECONDS = "60"
AT_ONCE = 40  # kinds of one launch: a process becomes slower with every model that it has made
HASH_SEED = "7"


class Kind(typing.NamedTuple):
    """What a kind's decorator says; see kinds/__init__.py."""

    module: str
    name: str
    divided: bool | str = True
    bound: float = 1e-12
    keras: int = 2
    may_refuse: tuple[str, ...] = ()
    repeats: bool = True
    sample: bool = False


def keras_version():
    """The major one of the Keras that `tf.keras` is here."""
    if os.environ.get("TF_USE_LEGACY_KERAS") == "1":
        return 2
    return int(importlib.metadata.version("keras").split(".")[0])


def kinds():
    """All of kinds/, in order, read without importing them."""
    return [kind for path in sorted((HERE / "kinds").glob("[!_]*.py")) for kind in _of_file(path)]


def _of_file(path):
    for node in ast.parse(path.read_text()).body:
        for decorator in getattr(node, "decorator_list", ()):
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if isinstance(called, ast.Name) and called.id == "kind":
                keywords = decorator.keywords if isinstance(decorator, ast.Call) else ()
                yield Kind(path.stem, node.name, **{each.arg: ast.literal_eval(each.value) for each in keywords})


ENTROPY = Kind("", "entropy", divided=False)  # what each process draws before the first kind


class Said(typing.NamedTuple):
    """What one process has made of one kind."""

    error: str | None
    refused: bool = False
    said: str = ""
    report: tuple = ()
    seconds: float = 0.0
    arrays: dict[str, np.ndarray] | None = None


class Outcome(typing.NamedTuple):
    """What all processes have: empty, with their output, where they did not end it alike."""

    ranks: tuple[Said, ...]
    output: str = ""


def runnable(wanted):
    return [kind for kind in wanted if kind.keras <= keras_version()]


def trained(wanted, ranks, *, calls=True, runner=RUNNER, **environ):
    """Run kinds on `ranks` workers, in few launches; by name. Without `calls`: as the script is, alone."""
    found, remaining = {}, [ENTROPY, *runnable(wanted)]
    while remaining:
        some = remaining[:AT_ONCE]
        done, output = _launched(some, ranks, calls, runner, environ)
        found |= {kind.name: Outcome(said) for kind, said in zip(some, done, strict=False)}
        # Where not even the first has ended, no other will.
        failed = int(len(done) < len(some)) if done or some[0] != ENTROPY else len(remaining)
        found |= {kind.name: Outcome((), output) for kind in remaining[len(done) : len(done) + failed]}
        remaining = remaining[len(done) + failed :]
    return found


def _launched(wanted, ranks, calls, runner, environ):
    """What the ranks said of the kinds that they ended alike, up to the first that they did not; the output."""
    with tempfile.TemporaryDirectory() as folder:
        plan = pathlib.Path(folder, "plan.json")
        plan.write_text(json.dumps({"calls": calls, "kinds": [each[:2] for each in wanted if each != ENTROPY]}))
        launcher = ["-m", "tfdp.runtime.launch", "-np", str(ranks)] if ranks > 1 else []
        done = subprocess.run(
            [sys.executable, *launcher, str(runner), str(plan)],
            env=environment(**environ),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            timeout=120 + 30 * len(wanted),
            check=False,
        )
        by_rank = [_lines(pathlib.Path(folder), rank) for rank in range(ranks)]
    return list(_ended_alike(wanted, by_rank)), done.stdout


def environment(**change):
    """One processor for each process: sums of floating-point numbers must not depend on how many there are."""
    base = {name: value for name, value in os.environ.items() if not name.startswith("TFDP_")}
    threads = dict.fromkeys(("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS"), "1") | {"TF_NUM_INTEROP_THREADS": "2"}
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TFDP_STALL_SECONDS": STALL_SECONDS, "PYTHONHASHSEED": HASH_SEED}
    return {**base, **threads, **quiet, "CUDA_VISIBLE_DEVICES": "", **change}


def _lines(folder, rank):
    path = folder / f"{rank}.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []
    return {line["kind"]: _said(line, folder / f"{line['kind']}.{rank}.npz") for line in lines}


def _said(line, path):
    arrays = dict(np.load(path)) if path.exists() else {}
    kept = {name: line[name] for name in ("error", "refused", "said", "report", "seconds") if name in line}
    return Said(**kept, arrays=arrays)


def _ended_alike(wanted, by_rank):
    for kind in wanted:
        said = tuple(lines.get(kind.name) for lines in by_rank)
        if None in said or len({each.error is None for each in said}) > 1:
            return
        yield said
