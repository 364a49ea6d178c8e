"""tfdp where it keeps watch: the real pre-commit, and the shell steps of the README's workflow."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "fixtures" / "scripts" / "smddp_mnist" / "before.py"


def shell(command: str | list[str], cwd: Path, code: int | None = 0, **variables: str) -> str:
    """Run as a workflow's step runs; its whole output."""
    line = ["bash", "-eo", "pipefail", "-c", command] if isinstance(command, str) else command
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        line,
        cwd=cwd,
        env={**os.environ, "PATH": path, "GIT_CONFIG_GLOBAL": os.devnull, **variables},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert code is None or done.returncode == code, done.stdout
    return done.stdout


def repository(path: Path, **files: bytes) -> Path:
    path.mkdir(exist_ok=True)
    shell("git init -q -b main && git config user.email a@example.org && git config user.name a", path)
    for name, data in files.items():
        (path / f"{name}.py").write_bytes(data)
    shell("git add -A && git commit -qm start", path)
    return path


# --- pre-commit -------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def hooks(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The checkout as a repository of hooks: pre-commit clones it and installs it into an environment of its own."""
    path = tmp_path_factory.mktemp("hooks") / "tfdp"
    wanted = ["migrate", "rules", "runtime", "pyproject.toml", "hatch_build.py", "README.md", "LICENSE"]
    path.mkdir()
    for name in [*wanted, ".pre-commit-hooks.yaml"]:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, path / name, ignore=shutil.ignore_patterns("__pycache__"))
        else:
            shutil.copy(source, path / name)
    return repository(path)


def test_hooks_of_the_real_pre_commit(hooks: Path, tmp_path: Path) -> None:
    work = repository(tmp_path / "work", train=SCRIPT.read_bytes(), other=b"print(1)\n")
    variables = {"PRE_COMMIT_HOME": str(tmp_path / "home")}

    def run(hook: str, code: int) -> str:
        rev = shell("git rev-parse HEAD", hooks).strip()
        config = {"repos": [{"repo": str(hooks), "rev": rev, "hooks": [{"id": hook}]}]}
        (work / ".pre-commit-config.yaml").write_text(yaml.safe_dump(config))
        shell("git add -A", work)
        return shell([sys.executable, "-m", "pre_commit", "run", "--all-files"], work, code, **variables)

    said = run("tfdp-check", 1)
    assert re.search(r"tfdp check\.+Failed", said)
    assert "train.py:6:1: TFDP001 initialise the runtime" in said
    assert (work / "train.py").read_bytes() == SCRIPT.read_bytes()
    assert "files were modified by this hook" in run("tfdp-migrate", 1)
    assert b"dp.init(" in (work / "train.py").read_bytes()
    assert re.search(r"tfdp migrate\.+Passed", run("tfdp-migrate", 0))
    assert re.search(r"tfdp check\.+Passed", run("tfdp-check", 0))
    installed = [p.name for p in (tmp_path / "home").glob("repo*/py_env*/lib/python*/site-packages/*")]
    assert "libcst" in installed
    assert not [name for name in installed if name.startswith(("tensorflow", "numpy", "keras"))]


def in_readme(key: str) -> Any:
    """The README's YAML block that has the key."""
    blocks = re.findall(r"```yaml\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    return next(block for block in map(yaml.safe_load, blocks) if key in block)


def test_the_hook_in_the_readme(tmp_path: Path) -> None:
    work = repository(tmp_path / "work", train=SCRIPT.read_bytes(), other=b"print(1)\n")
    (work / ".pre-commit-config.yaml").write_text(yaml.safe_dump(in_readme("repos")))
    shell("git add -A", work)
    said = shell([sys.executable, "-m", "pre_commit", "run", "--all-files"], work, 1, PRE_COMMIT_HOME=str(tmp_path))
    assert "train.py:6:1: TFDP001 initialise the runtime" in said
    assert (work / "train.py").read_bytes() == SCRIPT.read_bytes()


# --- the workflow in the README ---------------------------------------------------------------------------------------


def preview_step() -> str:
    (step,) = [s for s in in_readme("jobs")["jobs"]["tfdp"]["steps"] if s.get("name") == "preview"]
    return str(step["run"])


@pytest.fixture
def pull_request(tmp_path: Path) -> Path:
    """A clone, on a branch, of a repository that has an unmigrated script on its main branch."""
    origin = repository(tmp_path / "origin", old=SCRIPT.read_bytes(), gone=SCRIPT.read_bytes())
    shell(["git", "clone", "-q", str(origin), "clone"], tmp_path)
    clone = tmp_path / "clone"
    shell("git checkout -qb feature && git config user.email a@example.org && git config user.name a", clone)
    return clone


def preview(clone: Path, code: int) -> tuple[str, str]:
    temp = clone.parent / "temp"
    temp.mkdir()
    summary = temp / "summary.md"
    variables = {"GITHUB_BASE_REF": "main", "RUNNER_TEMP": str(temp), "GITHUB_STEP_SUMMARY": str(summary)}
    said = shell(preview_step(), clone, code, **variables)
    return summary.read_text() if summary.exists() else "", said


def test_the_workflow_previews_what_a_pull_request_touches(pull_request: Path) -> None:
    name = "a new script.py"
    (pull_request / name).write_bytes(SCRIPT.read_bytes())
    shell("git rm -q gone.py && git add -A && git commit -qm change", pull_request)
    summary, said = preview(pull_request, code=123)  # what xargs makes of a command's exit status 1
    assert summary.startswith(f"### `{name}`: would change\n")
    assert "| 6 | TFDP001 | initialise the runtime | " in summary
    assert f"::warning file={name},line=6,col=1,title=TFDP001::initialise the runtime" in said
    assert "old.py" not in summary + said
    patch = re.search(r"```diff\n(.*?)```", summary, re.DOTALL)
    assert patch is not None
    (pull_request.parent / "preview.diff").write_text(patch[1])
    shell("git apply ../preview.diff", pull_request)
    shell(["tfdp", "migrate", "--check", name], pull_request)


def test_the_workflow_passes_where_nothing_is_to_do(pull_request: Path) -> None:
    (pull_request / "notes.txt").write_text("no Python")
    shell("git add -A && git commit -qm change", pull_request)
    assert preview(pull_request, code=0) == ("", "")
