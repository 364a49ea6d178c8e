"""What a second rank writes that no guard keeps from it is said, once for each path."""

import pathlib

SCRIPT = """
import os, pathlib, sqlite3, sys, tempfile
import numpy as np
import tfdp.runtime as dp

dp.init(same_start=False)
out = pathlib.Path(sys.argv[1])
for turn in range(2):
    with open(out / "results.csv", "a") as file:
        file.write(f"{turn}\\n")
sqlite3.connect(out / "runs.db").close()
np.memmap(out / "cache.bin", np.float32, "w+", shape=(4,))
os.close(os.open(out / "by_number", os.O_WRONLY | os.O_CREAT))
os.chdir(out)
pathlib.Path("text.txt").write_text("x")
dp.barrier()

open(out / "results.csv").close()
sqlite3.connect(":memory:").close()
with tempfile.NamedTemporaryFile("w") as file:
    file.write("x")
with open(dp.root_path(out / "by_root"), "w") as file, open(dp.rank_path(out / "by_rank"), "w") as own:
    file.write("x")
dp.on_root(lambda: open(out / "on_root", "w").close())
(out / "module.py").write_text("") if dp.rank() == 0 else None
dp.barrier()
sys.path.insert(0, str(out))
import module
print("done")
"""


def test_each_path_that_all_ranks_write_is_said_once(launch, tmp_path):
    out, temporary = tmp_path / "out", tmp_path / "temporary"
    out.mkdir()
    temporary.mkdir()
    done = launch(3, SCRIPT, str(out), TMPDIR=str(temporary))
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") == 3
    said = [line for line in done.stderr.splitlines() if "opens" in line]
    names = ["results.csv", "runs.db", "cache.bin", "by_number", "text.txt"]
    assert [pathlib.Path(line.split(" opens ")[1].split(" for writing")[0]).name for line in said] == names
    assert all(line.startswith("[1] tfdp: ") and "script.py:" in line and "dp.on_root" in line for line in said)


def test_so_is_one_in_the_folder_of_the_job_also_where_that_is_a_temporary_one(launch, tmp_path):
    text = "import os, sys, tempfile\nimport tfdp.runtime as dp\n\ndp.init(same_start=False)\n"
    text += "open('log.txt', 'a').close()\ntempfile.TemporaryFile().close()\nopen(sys.argv[1], 'a').close()\n"
    text += "open(os.getcwd() + '.txt', 'a').close()\n"
    (tmp_path / "job").mkdir()
    command = f"import os\nos.chdir({str(tmp_path / 'job')!r})\n{text}"
    done = launch(2, command, str(tmp_path / "beside.txt"), TMPDIR=str(tmp_path))
    assert done.returncode == 0, done.stderr
    said = [line for line in done.stderr.splitlines() if "opens" in line]
    assert len(said) == 1
    assert "log.txt" in said[0]
