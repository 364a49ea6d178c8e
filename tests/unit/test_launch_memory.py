"""What the launcher makes of a rank that somebody has killed."""

import pytest

from tfdp.runtime.launch.memory import OutOfMemory


@pytest.mark.parametrize(
    ("cgroup", "file", "text"),
    [
        ("0::/job", "job/memory.events", "low 0\noom 2\noom_kill {}\n"),
        ("0::/not/seen/here", "memory.events", "oom_kill {}\n"),
        ("4:memory:/job\n0::/", "memory/job/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill {}\n"),
    ],
)
def test_the_kernels_own_count_is_compared(tmp_path, cgroup, file, text):
    (tmp_path / "proc" / "self").mkdir(parents=True)
    (tmp_path / "proc" / "self" / "cgroup").write_text(cgroup + "\n")
    (tmp_path / "proc" / "meminfo").write_text("MemTotal: 4 kB\nMemAvailable:    1572864 kB\n")
    counts = tmp_path / "cgroups" / file
    counts.parent.mkdir(parents=True)
    counts.write_text(text.format(3))
    memory = OutOfMemory(tmp_path / "proc", tmp_path / "cgroups")
    assert "no process of this job sent SIGKILL" in memory.hint()
    assert "(1.5 GiB of memory are available now)" in memory.hint()
    counts.write_text(text.format(4))
    assert memory.hint().startswith("the kernel's out-of-memory killer has ended 1 process(es) of this container")


def test_where_nothing_can_be_read_there_is_a_hint_only(tmp_path):
    assert "that is mostly the kernel's out-of-memory killer" in OutOfMemory(tmp_path, tmp_path).hint()
