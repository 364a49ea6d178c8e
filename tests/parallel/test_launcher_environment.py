"""What the launcher gives each rank: threads, a store, and nothing that anybody else could reach."""

import os
import re


def test_each_rank_has_its_part_of_the_threads_unless_the_user_has_set_them(launch):
    names = ("OMP_NUM_THREADS", "TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS")
    script = f"import os; print(*(os.environ.get(name) for name in {names}))"
    unset = dict.fromkeys(names, "")
    cores = len(os.sched_getaffinity(0))
    share = max(1, cores // 2)
    for name in names:
        os.environ.pop(name, None)
    assert set(launch(2, script).stdout.splitlines()) == {
        f"[{rank}] {share} {share} {max(2, share)}" for rank in range(2)
    }
    assert launch(1, script).stdout == "[0] None None None\n"
    assert launch(2, script, **{**unset, names[0]: "7", names[1]: "8", names[2]: "9"}).stdout.count("7 8 9") == 2


def test_no_port_is_opened_and_nothing_lies_in_dev_shm(launch):
    script = """
import os, pathlib
tables = [pathlib.Path(f"/proc/net/{name}") for name in ("tcp", "tcp6", "udp", "udp6")]
inodes = {line.split()[9] for table in tables if table.exists() for line in table.read_text().splitlines()[1:]}
for pid in (os.getpid(), os.getppid()):
    for fd in os.listdir(f"/proc/{pid}/fd"):
        try:
            target = os.readlink(f"/proc/{pid}/fd/{fd}")
        except FileNotFoundError:
            continue
        assert not (target.startswith("socket:") and target[8:-1] in inodes), target
        assert not target.startswith("/dev/shm/"), target
        if pid == os.getpid() and int(fd) > 2:
            print(fd, target.partition(":")[0])
print(os.environ["TFDP_STORE_FD"], "store")
"""
    done = launch(1, script)
    assert done.returncode == 0, done.stderr
    fd = re.search(r"(\d+) store", done.stdout)[1]
    assert f"[0] {fd} socket" in done.stdout, "its own end of the store"
    assert done.stdout.count(" socket\n") == 1, "and nobody else's"


def test_one_rank_in_a_launcher_is_a_job_of_one(launch):
    script = "import sys, tfdp.runtime as dp; dp.init(); print(dp.rank(), dp.size(), 'tensorflow' in sys.modules)"
    assert launch(1, script).stdout == "[0] 0 1 False\n"
