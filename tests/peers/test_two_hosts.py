"""Two hosts as two network namespaces with a link between them: by two launchers, and by an engine's variables.

Needs root and `ip`; skipped where there is neither.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TypeAlias

import numpy as np
import pytest
from peers.small_training import SCRIPT

from tfdp.migrate import engine

ROOT = Path(__file__).parents[2]
LIMIT_SECONDS = 180
SECRET = "of these tests only"
DEVICE = "veth0"
FIRST, SECOND = "10.77.33.1", "10.77.33.2"
LOOP = """
import sys, time
import tensorflow as tf
import tfdp.runtime as dp
dp.init()
ones = tf.ones([1000])
for step in range(int(sys.argv[1])):
    dp.allreduce(ones, op=dp.Sum)
    if step == 20:
        print("goes on", flush=True)
    time.sleep(0.05)
print("through", flush=True)
"""


Processes: TypeAlias = "list[subprocess.Popen[str]]"


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def hosts() -> Iterator[tuple[str, str]]:
    """The names of the namespaces; the link's ends in them are called DEVICE."""
    if os.getuid() or shutil.which("ip") is None:
        pytest.skip("two hosts need network namespaces: root, and `ip` (iproute2)")
    names = f"tfdp-a-{os.getpid()}", f"tfdp-b-{os.getpid()}"
    try:
        for name in names:
            ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespaces here: {error.stderr.decode().strip()}")
    try:
        ip("link", "add", DEVICE, "netns", names[0], "type", "veth", "peer", "name", DEVICE, "netns", names[1])
        for name, address in zip(names, (FIRST, SECOND), strict=True):
            ip("-n", name, "addr", "add", f"{address}/24", "dev", DEVICE)
            for device in ("lo", DEVICE):
                ip("-n", name, "link", "set", device, "up")
        yield names
    finally:
        for name in names:
            ip("netns", "del", name)


def begin(host: str, line: list[str], folder: Path, **environ: str) -> "subprocess.Popen[str]":
    keep = {key: value for key, value in os.environ.items() if not key.startswith("TFDP_")}
    return subprocess.Popen(
        ["ip", "netns", "exec", host, *line],
        cwd=folder,
        env={**keep, "TF_CPP_MIN_LOG_LEVEL": "3", "TFDP_SECRET": SECRET, **environ},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def launchers(hosts: tuple[str, str], counts: tuple[int, int], folder: Path, *rest: str, **environ: str) -> Processes:
    found = []
    for node, (host, count) in enumerate(zip(hosts, counts, strict=True)):
        place = ["-np", str(count), "--nnodes", "2", "--node-rank", str(node), "--root", FIRST]
        found.append(begin(host, [sys.executable, "-m", "tfdp.runtime.launch", *place, *rest], folder, **environ))
    return found


def ends(processes: Processes) -> list[tuple[int, str, str]]:
    found = []
    for process in processes:
        out, err = process.communicate(timeout=LIMIT_SECONDS)
        found.append((process.returncode, out, err))
    return found


def weights(folder: Path) -> list[np.ndarray]:
    with np.load(folder / "weights.npz") as file:
        return [file[name] for name in file.files]


@pytest.mark.parametrize("counts", [(1, 1), (2, 1), (2, 2)])
def test_two_hosts_train_what_one_process_does(hosts: tuple[str, str], counts: tuple[int, int], tmp_path: Path) -> None:
    migrated = engine.migrate("train.py", SCRIPT.encode())
    folders = tmp_path / "one", tmp_path / "two"
    for folder, text in zip(folders, (SCRIPT.encode(), migrated.after), strict=True):
        folder.mkdir()
        (folder / "train.py").write_bytes(text)
    subprocess.run([sys.executable, "train.py"], cwd=folders[0], check=True, timeout=LIMIT_SECONDS)
    for status, out, err in ends(launchers(hosts, counts, folders[1], "train.py")):
        assert status == 0, out + err
    for ours, theirs in zip(weights(folders[1]), weights(folders[0]), strict=True):
        assert np.linalg.norm(ours - theirs) <= 1e-5 * np.linalg.norm(theirs)


def test_ranks_that_an_engine_has_dealt_round(hosts: tuple[str, str], tmp_path: Path) -> None:
    text = "import tensorflow as tf\nimport tfdp.runtime as dp\ndp.init()\n"
    text += "ranks = dp.allgather(tf.constant([dp.rank()]))\n"
    text += "print(dp.rank(), dp.local_rank(), dp.cross_rank(), dp.cross_size(), ranks.numpy().tolist(), flush=True)\n"
    (tmp_path / "train.py").write_text(text)
    processes = []
    for rank in range(4):
        place = {
            "OMPI_COMM_WORLD_RANK": str(rank),
            "OMPI_COMM_WORLD_SIZE": "4",
            "OMPI_COMM_WORLD_LOCAL_RANK": str(rank // 2),
            "OMPI_COMM_WORLD_LOCAL_SIZE": "2",
            "PMIX_NAMESPACE": tmp_path.name,
            "PYTHONHASHSEED": "0",
            "TFDP_ROOT": FIRST,
        }
        processes.append(begin(hosts[rank % 2], [sys.executable, "train.py"], tmp_path, **place))
    for rank, (status, out, err) in enumerate(ends(processes)):
        assert status == 0, err
        assert out == f"{rank} {rank // 2} {rank % 2} 2 [0, 1, 2, 3]\n"


COUNTS = """
import json, sys, time
import numpy as np, tensorflow as tf
import tfdp.runtime as dp
from tfdp.runtime.job import current
dp.init()
rank, size = dp.rank(), dp.size()

@tf.function
def reduced(each, op):
    return dp.allreduce(each, op=op)

for shape in ([5], [1001, 3], [2_000_003]):
    parts = [np.random.default_rng([each, len(shape)]).normal(size=shape).astype("float32") for each in range(size)]
    for op, wanted in ((dp.Sum, np.sum), (dp.Max, np.max), (dp.Min, np.min), (dp.Average, np.mean)):
        for function in (reduced, reduced.python_function):
            found = function(tf.constant(parts[rank]), op).numpy()
            np.testing.assert_allclose(found, wanted(parts, 0), rtol=1e-5, atol=1e-5)
assert dp.broadcast(tf.constant([rank, -rank]), 2).numpy().tolist() == [2, -2]
rows = dp.allgather(tf.constant([[rank, 1]] * (rank + 1))).numpy()
assert rows[:, 0].tolist() == [each for each in range(size) for _ in range(each + 1)]
assert dp.broadcast_object({"of": rank}, 3) == {"of": 3}
vector = tf.ones([2_000_000])
reduced(vector, dp.Sum)

def sent():
    with open("/sys/class/net/veth0/statistics/tx_bytes") as file:
        return int(file.read())

dp.barrier()
before = sent()
for _ in range(5):
    total = reduced(vector, dp.Sum)
assert set(total.numpy().tolist()) == {4.0}
dp.barrier()
time.sleep(0.3)  # what is counted is sent by then
if dp.local_rank() == 0:
    print(json.dumps([current().transport.name, (sent() - before) / 5 / 8e6]), flush=True)
"""


def test_over_the_link_goes_less_by_two_tiers(hosts: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(COUNTS)
    shares = {}
    for transport in ("ring", "two_tier"):
        environ = {"TFDP_TRANSPORT": "ring"} if transport == "ring" else {}  # by itself
        for status, out, err in ends(launchers(hosts, (2, 2), tmp_path, "train.py", **environ)):
            assert status == 0, err
            name, share = json.loads(out.partition("] ")[2])
            assert name == transport
            shares.setdefault(transport, []).append(share)
    assert all(1.5 <= share < 1.6 for share in shares["ring"]), shares
    assert all(1.0 <= share < 1.07 for share in shares["two_tier"]), shares


def test_hosts_with_unequally_many_ranks_have_no_tiers(hosts: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    for status, _, err in ends(launchers(hosts, (2, 1), tmp_path, "train.py", "1", TFDP_TRANSPORT="two_tier")):
        assert status != 0
        assert "the hosts have 1 and 2 ranks, and it needs equally many on each" in err


def test_a_rank_that_is_killed_between_the_tiers_ends_the_job(hosts: tuple[str, str], tmp_path: Path) -> None:
    kills = LOOP.replace("time.sleep(0.05)", "if step == 30 and dp.rank() == 3: os.kill(os.getpid(), 9)")
    (tmp_path / "train.py").write_text(f"import os{kills}")
    (first, _, err), (second, _, error) = ends(launchers(hosts, (2, 2), tmp_path, "train.py", "100"))
    assert (first, second) == (1, 128 + 9)
    assert "rank 3 ended with signal SIGKILL" in err
    assert "rank 3 failed first, with signal SIGKILL" in error


def goes_on(processes: Processes) -> None:
    """Return when all have made their first steps."""
    for process in processes:
        assert process.stdout is not None
        line = process.stdout.readline()
        assert "goes on" in line, line


def test_a_link_that_is_down_for_a_while(hosts: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    processes = launchers(hosts, (1, 1), tmp_path, "train.py", "100")
    goes_on(processes)
    ip("-n", hosts[0], "link", "set", DEVICE, "down")
    time.sleep(7)  # what is tested is a time
    ip("-n", hosts[0], "link", "set", DEVICE, "up")
    for status, out, err in ends(processes):
        assert (status, out) == (0, "[0] through\n" if "[0]" in out else "[1] through\n"), err
        assert re.search(r"nothing is heard of .* for 5 s; after 30 s it is lost", err)
        assert "is heard again" in err


def test_a_link_that_stays_down_ends_the_job_with_the_hosts_name(hosts: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    processes = launchers(hosts, (1, 1), tmp_path, "--link-timeout", "6", "train.py", "10000")
    goes_on(processes)
    ip("-n", hosts[0], "link", "set", DEVICE, "down")
    down = time.monotonic()
    (first, _, err), (second, _, error) = ends(processes)
    assert time.monotonic() - down < 6 + 5 + 10  # and what a busy machine adds
    assert (first, second) == (1, 1)
    assert re.search(rf"nothing has been heard of .* \({SECOND}\) for \d+ s, with rank 1", err)
    assert re.search(rf"nothing has been heard of the first host \({FIRST}:\d+\) for \d+ s", error)


@pytest.fixture
def over_ssh(hosts: tuple[str, str], tmp_path: Path) -> Iterator[dict[str, str]]:
    """An sshd on the second host; the variables with which its ssh client reaches it."""
    if shutil.which("sshd") is None or shutil.which("ssh") is None:
        pytest.skip("no ssh here: apt-get install openssh-server openssh-client")
    for name in ("host", "user"):
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / name)], check=True)
    os.makedirs("/run/sshd", exist_ok=True)
    options = {
        "AuthorizedKeysFile": tmp_path / "user.pub",
        "PidFile": tmp_path / "pid",
        "StrictModes": "no",
        "PermitRootLogin": "yes",
        "UsePAM": "no",
        "PasswordAuthentication": "no",
    }
    sshd = [str(shutil.which("sshd")), "-D", "-e", "-p", "2222", "-h", str(tmp_path / "host")]
    line = [*sshd, *(word for name, value in options.items() for word in ("-o", f"{name}={value}"))]
    server = subprocess.Popen(["ip", "netns", "exec", hosts[1], *line], stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    assert any("listening" in line for line in server.stderr), "it listens, or has ended"
    client = f"ssh -p 2222 -i {tmp_path / 'user'} -o StrictHostKeyChecking=no -o LogLevel=ERROR"
    yield {"TFDP_SSH": f"{client} -o UserKnownHostsFile={tmp_path / 'known'}", "PYTHONPATH": str(ROOT / ".editable")}
    server.terminate()
    server.communicate()


def test_hosts_over_ssh(hosts: tuple[str, str], over_ssh: dict[str, str], tmp_path: Path) -> None:
    text = "import os, sys\nimport tensorflow as tf\nimport tfdp.runtime as dp\ndp.init()\n"
    text += "ranks = dp.allgather(tf.constant([dp.rank()])).numpy().tolist()\n"
    text += "print(dp.rank(), dp.cross_rank(), ranks, os.environ['MINE'], 'TFDP_SECRET' in os.environ, flush=True)\n"
    text += "if sys.argv[1:] and dp.rank() == 2:\n    raise ValueError('no data')\ndp.barrier()\n"
    (tmp_path / "train.py").write_text(text)
    slots = ["-H", f"{FIRST}:1,{SECOND}:2", "-x", "MINE"]
    tfdp = [sys.executable, "-m", "tfdp.migrate", "run", *slots, "train.py"]
    [(status, out, err)] = ends([begin(hosts[0], tfdp, tmp_path, MINE="of mine", **over_ssh)])
    assert status == 0, err
    assert sorted(out.splitlines()) == [f"[{r}] {r} {int(r == 1)} [0, 1, 2] of mine False" for r in range(3)]
    [(status, _, err)] = ends([begin(hosts[0], [*tfdp, "fail"], tmp_path, MINE="", **over_ssh)])
    assert status == 1
    assert "rank 2 failed first, with exit status 1" in err
    assert "the job was ended by another host: rank 2 ended with ValueError: no data" in err


def test_a_status_of_the_script_is_no_failure_of_ssh(
    hosts: tuple[str, str], over_ssh: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text("import sys\nimport tfdp.runtime as dp\ndp.init()\nsys.exit(255)\n")
    tfdp = [sys.executable, "-m", "tfdp.migrate", "run", "-H", f"{FIRST}:1,{SECOND}:1", "train.py"]
    [(status, _, err)] = ends([begin(hosts[0], tfdp, tmp_path, **over_ssh)])
    assert status == 255
    assert "nothing has begun" not in err


def test_a_client_that_is_killed_leaves_nothing_behind(
    hosts: tuple[str, str], over_ssh: dict[str, str], tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    tfdp = [sys.executable, "-m", "tfdp.migrate", "run", "-H", f"{FIRST}:1,{SECOND}:1", "train.py", "100000"]
    process = begin(hosts[0], tfdp, tmp_path, **over_ssh)
    goes_on([process, process])
    process.kill()
    process.communicate(timeout=LIMIT_SECONDS)  # the end of its output is the end of all that has it
    left = subprocess.run(["pgrep", "-f", str(tmp_path)], capture_output=True, text=True, check=False).stdout.split()
    of_sshd = subprocess.run(["pgrep", "-f", "sshd.*2222"], capture_output=True, text=True, check=False).stdout.split()
    assert set(left) <= set(of_sshd)


def test_a_host_that_ssh_does_not_reach(hosts: tuple[str, str], tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(LOOP)
    tfdp = [sys.executable, "-m", "tfdp.migrate", "run", "-H", f"{FIRST}:1,{SECOND}:1", "train.py", "1"]
    [(status, _, err)] = ends([begin(hosts[0], tfdp, tmp_path, TFDP_SSH="ssh -o ConnectTimeout=5")])
    assert status == 255
    assert f"nothing has begun on {SECOND}: `ssh {SECOND}` must work without a question" in err
