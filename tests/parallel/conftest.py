"""Runs `cases_*.py` on real ranks, started by the real launcher.

A cases file is imported by every rank. Each function `case_…` in it runs on all ranks, in the order of the file, and
asserts for itself; a case passes when it has passed on every rank. Importing TensorFlow takes seconds, so the cases of
a family of files (`cases_keras_…`, `cases_training_…`) share one launch for each number of ranks. Constants of a file:

    RANKS         the numbers of ranks to run on over shared memory, a literal tuple; (2,) if missing
    DEVICE_RANKS  the same over `device`, which is TensorFlow's ring here; (2,) if missing
    ENVIRON       variables for the ranks, a literal dict; files with others have launches of their own
    INIT          keyword arguments of `dp.init`, a literal dict, or {"as_written": True} for what another system's
                  `init` does; the same
    APART         True where one rank alone makes variables, which later files would meet: a launch of its own
    KEPT          of the launches, as (ranks, transport), those of `make test`, where these are others than the one of
                  most ranks over shared memory; `make long` has them all

Over shared memory the ranks are started as those of a user are. Over `device` they are forks (tests/forking), which
begin with TensorFlow imported: what comes before that is the same over both.
"""

import ast
import contextlib
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import typing
import zlib

import pytest
from forking.client import in_use

RUNNER = pathlib.Path(__file__).with_name("run_cases.py")
# TensorFlow may hold a rank, with Python's lock, each time it lets go of a dataset's iterator: its autotuner misses the
# word that it is to end and sleeps on, up to a minute, and several iterators may be let go of one after the other.
STALL_SECONDS = "240"
LIMIT_SECONDS = 120
CASES_LIMIT_SECONDS = 1200
OUTCOMES = pytest.StashKey()


def pytest_collect_file(file_path, parent):
    if file_path.parent == RUNNER.parent and file_path.name.startswith("cases_") and file_path.suffix == ".py":
        return CasesFile.from_parent(parent, path=file_path)
    return None


def launch_environment(**change):
    base = {name: value for name, value in os.environ.items() if not name.startswith("TFDP_")}
    quiet = {"TF_CPP_MIN_LOG_LEVEL": "3", "TFDP_STALL_SECONDS": STALL_SECONDS}
    return {**base, **quiet, **change}


@pytest.fixture
def launch(tmp_path):
    """Run a script's text on `np` ranks, with `options` of the launcher; gives the finished process."""

    def run(np, script, *args, options=(), limit_seconds=LIMIT_SECONDS, **environ):
        path = tmp_path / "script.py"
        path.write_text(script)
        return subprocess.run(
            [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(np), *options, str(path), *args],
            env=launch_environment(**environ),
            capture_output=True,
            text=True,
            timeout=limit_seconds,
            check=False,
        )

    return run


@pytest.fixture
def alone_and_killed(launch, tmp_path):
    """Run a script left alone, and with ranks that it kills itself, in a folder each, which is its first argument, with
    `--max-restarts`; gives each time the folder, the kills and the finished process."""

    def run(script, killed, *args):
        for kills in ([], killed):
            folder = tmp_path / f"{len(kills)}"
            folder.mkdir()
            done = launch(2, script, str(folder), *args, *kills, options=("--max-restarts", "4"), limit_seconds=400)
            assert done.returncode == 0, done.stderr
            assert done.stderr.count("all ranks are started again") == len(kills)
            yield folder, kills, done

    return run


class CasesFile(pytest.File):
    """One `cases_*.py`, read without importing it: that would import TensorFlow here."""

    def collect(self):
        body = ast.parse(self.path.read_text()).body
        found = {"RANKS": (2,), "DEVICE_RANKS": (2,), "ENVIRON": {}, "INIT": {}, "APART": False, "KEPT": ()}
        for node in body:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name) and node.targets[0].id in found:
                found[node.targets[0].id] = ast.literal_eval(node.value)
        family = self.path.stem if found["APART"] else self.path.stem.split("_")[1]
        alike = json.dumps([family, found["ENVIRON"], found["INIT"]], sort_keys=True)
        cases = [node for node in body if isinstance(node, ast.FunctionDef) and node.name.startswith("case_")]
        launches = [(np, "shared_memory") for np in found["RANKS"]] + [(np, "device") for np in found["DEVICE_RANKS"]]
        kept = found["KEPT"] or [(max(found["RANKS"]), "shared_memory")]
        for (np, transport), node in itertools.product(launches, cases):
            name = f"{node.name.removeprefix('case_')}[{np}-{transport}]"
            launch = Launch(np, transport, alike)
            item = CaseItem.from_parent(self, name=name, launch=launch, case=node.name, line=node.lineno)
            if (np, transport) not in kept:
                item.add_marker(pytest.mark.long)
            yield item


class Launch(typing.NamedTuple):
    """Ranks that cases share."""

    np: int
    transport: str
    alike: str  # the family of files, and what its ranks are started with, as JSON

    @property
    def group(self):
        """A name for pytest-xdist, which cuts it out of a test's: brackets in it would hide it."""
        return f"{self.np}-{self.transport}-{zlib.crc32(self.alike.encode())}"

    def outcome(self, session):
        """What each rank says of the cases, and the launch; the first to ask runs all that were selected."""
        known = session.stash.setdefault(OUTCOMES, {})
        if self not in known:
            asked = [item for item in session.items if isinstance(item, CaseItem) and item.launch == self]
            known[self] = self._run([(str(item.path), item.case) for item in asked], session.config)
        return known[self]

    def _run(self, cases, config):
        _, environ, init = json.loads(self.alike)
        forks = in_use(config) if self.transport == "device" else contextlib.nullcontext()
        with tempfile.TemporaryDirectory() as folder, forks:
            plan = pathlib.Path(folder, "plan.json")
            plan.write_text(json.dumps({"cases": cases, "init": init}))
            done = subprocess.run(
                [sys.executable, "-m", "tfdp.runtime.launch", "-np", str(self.np), str(RUNNER), str(plan)],
                env=launch_environment(**environ, TFDP_TRANSPORT=self.transport),
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                timeout=CASES_LIMIT_SECONDS,
                check=False,
            )
            ranks = []
            for rank in range(self.np):
                path = pathlib.Path(folder, f"{rank}.jsonl")
                lines = path.read_text().splitlines() if path.exists() else []
                ranks.append({tuple(entry["case"]): entry["error"] for entry in map(json.loads, lines)})
            return ranks, done


class CaseItem(pytest.Item):
    """One case on one number of ranks over one transport."""

    def __init__(self, *, launch, case, line, **kwargs):
        super().__init__(**kwargs)
        self.launch, self.case, self.line = launch, case, line
        # Run by one process of pytest's, the first with the time of them all.
        self.add_marker(pytest.mark.xdist_group(launch.group))
        self.add_marker(pytest.mark.timeout(CASES_LIMIT_SECONDS + 60))

    def runtest(self):
        ranks, done = self.launch.outcome(self.session)
        mine = (str(self.path), self.case)
        failed = {rank: said[mine] for rank, said in enumerate(ranks) if said.get(mine)}
        if failed:
            raise CaseFailedError("\n".join(f"--- rank {rank} ---\n{error}" for rank, error in failed.items()))
        if not all(mine in said for said in ranks):
            raise CaseFailedError(f"not run to the end on all ranks; the launch said:\n{done.stdout}")

    def repr_failure(self, excinfo, style=None):
        if isinstance(excinfo.value, CaseFailedError):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self):
        return self.path, self.line - 1, self.name


class CaseFailedError(Exception):
    """Carries what the ranks said."""
