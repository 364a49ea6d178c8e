"""`Runner` and `horovod.run`: a function on new processes, from a driver that stays one process."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tfdp.runtime import Runner, WorkerError
from tfdp.runtime.horovod import run

SCRIPT = Path(__file__).parents[2] / "fixtures" / "names" / "horovod_runner.py"


def who(**given: int) -> tuple[str, int, dict[str, int]]:
    return os.environ["TFDP_RANK"], os.getpid(), given


def fails(rank: int) -> None:
    if os.environ["TFDP_RANK"] == str(rank):
        raise KeyError(f"of rank {rank}")


def test_rank_0s_value_comes_back_from_new_processes(capsys: pytest.CaptureFixture[str]) -> None:
    def main(**given: int) -> tuple[str, int, dict[str, int]]:
        print("said by", who()[0])
        return who(**given)

    rank, process, given = Runner(np=2).run(main, epochs=3)
    assert (rank, given) == ("0", {"epochs": 3})
    assert {"[0] said by 0", "[1] said by 1"} <= set(capsys.readouterr().out.splitlines())
    again = Runner(np=-2, driver_log_verbosity="log_callback_only").run(main, epochs=3)
    assert process != again[1] != os.getpid()
    assert "said by" not in capsys.readouterr().out


def test_what_a_worker_raises_is_raised_with_rank_and_traceback() -> None:
    with pytest.raises(WorkerError, match=r"rank 1 of 2 failed(.|\n)*in fails(.|\n)*KeyError: 'of rank 1'") as raised:
        Runner(np=2).run(fails, rank=1)
    assert raised.value.rank == 1
    assert isinstance(raised.value.__cause__, KeyError)


def test_a_worker_that_is_gone_is_no_result() -> None:
    def leave() -> None:
        if os.environ["TFDP_RANK"] == "0":
            print("last words", flush=True)
            os._exit(0)

    with pytest.raises(WorkerError, match=r"otherwise than by returning(.|\n)*last words"):
        Runner(np=2).run(leave)


def test_a_function_that_cannot_be_sent_says_what_to_do() -> None:
    lock = __import__("threading").Lock()
    with pytest.raises(TypeError, match="inside of it"):
        Runner(np=2).run(lambda: lock)
    with pytest.raises(TypeError, match="a function is needed"):
        Runner(np=2).run("main")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("given", "error"),
    [
        ({"np": 0}, ValueError),
        ({"np": 2.0}, TypeError),
        ({"np": True}, TypeError),
        ({"np": 2, "driver_log_verbosity": "some"}, ValueError),
    ],
)
def test_bad_arguments(given: dict[str, object], error: type[Exception]) -> None:
    with pytest.raises(error):
        Runner(**given)  # type: ignore[arg-type]


def test_modules_are_those_of_the_driver(tmp_path: Path) -> None:
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder, answer in ((project, "right"), (elsewhere, "wrong")):
        folder.mkdir()
        (folder / "helpers.py").write_text(f"def main():\n    return {answer!r}\n")
    (elsewhere / "selectors.py").write_text("raise SystemExit('not the standard library')\n")
    text = (
        "import sys\nsys.path.pop(0) if sys.path[0] == '' else None\nimport helpers\nfrom tfdp.runtime import Runner\n"
    )
    (project / "driver.py").write_text(text + "print(Runner(np=2).run(helpers.main))\n")
    done = subprocess.run(
        [sys.executable, str(project / "driver.py")], cwd=elsewhere, capture_output=True, text=True, check=False
    )
    assert done.stdout == "right\n", done.stderr


def test_only_rank_0s_value_has_to_be_sent() -> None:
    assert Runner(np=2).run(lambda: 7 if who()[0] == "0" else __import__("threading").Lock()) == 7


def test_a_driver_that_has_joined_a_job_of_one_starts_processes(tmp_path: Path) -> None:
    text = "import tfdp.runtime as dp\nimport os\ndp.init()\n"
    (tmp_path / "script.py").write_text(text + "print(dp.Runner(np=2).run(lambda: os.environ['TFDP_SIZE']))\n")
    done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout == "2\n"


def test_horovod_run_gives_what_each_rank_gives() -> None:
    found = run(who, kwargs={"k": 1}, np=3, hosts="localhost:3", use_gloo=True)
    assert [(rank, given) for rank, _, given in found] == [(str(rank), {"k": 1}) for rank in range(3)]
    with pytest.raises(ValueError, match="this machine"):
        run(who, num_proc=2, hosts="one:1,other:1")
    with pytest.raises(ValueError, match="min_num_proc"):
        run(who, num_proc=2, min_num_proc=1)


def test_in_a_job_it_is_a_call(tmp_path: Path) -> None:
    text = "from tfdp.runtime import Runner\nimport os\n"
    text += "print(Runner(np=5).run(lambda k: (k, os.environ['TFDP_RANK']), k=7))\n"
    (tmp_path / "script.py").write_text(text)
    command = [sys.executable, "-m", "tfdp.runtime.launch", "-np", "2", "script.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=120)
    assert sorted(done.stdout.splitlines()) == ["[0] (7, '0')", "[1] (7, '1')"]


def test_the_drivers_code_runs_once(tmp_path: Path) -> None:
    from tfdp.migrate import engine

    migrated = engine.migrate("train.py", SCRIPT.read_bytes())
    assert not migrated.refused
    (tmp_path / "train.py").write_bytes(migrated.after)
    done = subprocess.run(
        [sys.executable, "train.py"], cwd=tmp_path, capture_output=True, text=True, check=True, timeout=240
    )
    assert "trained on 2 processes" in done.stdout
    assert (tmp_path / "driver.log").read_text() == "driver\n"
