"""How many threads the model gets, with a counter of use in place of the system's, and once with the system's."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from dg_lsp.engine import memory as module
from dg_lsp.engine.memory import Cores, allowed


class Machine:
    """A machine of `online` cores of which others and this process use as many as is said here."""

    def __init__(self, patch: pytest.MonkeyPatch, online: int) -> None:
        self.now = self.own = self.others = self.mine = 0.0
        self.online = online
        patch.setattr(module, "allowed", lambda: online)
        patch.setattr(psutil, "cpu_count", lambda: online)
        patch.setattr(psutil, "cpu_percent", lambda: 100 * (self.others + self.mine) / online)
        patch.setattr(time, "perf_counter", lambda: self.now)
        patch.setattr(time, "process_time", lambda: self.own)

    def after(self, cores: Cores, seconds: float = 1.0) -> int:
        self.now += seconds
        self.own += seconds * self.mine
        return cores.threads()


@pytest.mark.parametrize(
    ("online", "others", "threads"),
    [
        (1, 0, 1),
        (1, 1, 1),
        (2, 0, 2),
        (2, 0.25, 2),
        (2, 0.5, 1),
        (2, 2, 1),
        (3, 0, 2),
        (4, 0, 2),
        (4, 1.8, 2),
        (4, 3, 1),
        (16, 0, 8),
        (16, 12, 4),
    ],
)
def test_as_many_as_others_leave_free_and_half_at_most(
    online: int, others: float, threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    machine = Machine(monkeypatch, online)
    cores = Cores()
    machine.others = others
    assert machine.after(cores) == threads


def test_what_the_process_itself_uses_is_no_use_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 2)
    cores = Cores()
    machine.mine = 2.0
    assert machine.after(cores) == 2
    machine.mine = machine.others = 1.0
    assert machine.after(cores) == 1
    machine.mine, machine.others = 1.0, 0.1
    assert machine.after(cores) == 2


def test_what_is_set_is_the_most(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 4)
    cores = Cores(4)
    assert machine.after(cores) == 4
    machine.others = 2.0
    assert machine.after(cores) == 2
    assert machine.after(Cores(1)) == 1


def test_it_does_not_look_at_every_step(monkeypatch: pytest.MonkeyPatch) -> None:
    machine = Machine(monkeypatch, 2)
    cores = Cores()
    assert machine.after(cores) == 2
    machine.others = 2.0
    assert machine.after(cores, 0.05) == 2
    assert machine.after(cores, 0.2) == 1


@pytest.fixture
def busy() -> Iterator[None]:
    """Programs that would use each core of this machine."""
    programs = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(allowed())]
    yield
    for program in programs:
        program.kill()
        program.wait()


@pytest.mark.skipif(
    psutil.cpu_count() != allowed(), reason="some of the machine's cores are not for this process"
)
@pytest.mark.usefixtures("busy")
def test_beside_busy_programs_one_thread_is_left() -> None:
    cores = Cores(2)
    time.sleep(1)
    assert cores.threads() == 1


@pytest.mark.parametrize(
    ("outer", "inner", "cores"),
    [
        ("max 100000", "max 100000", 8),
        ("150000 100000", "max 100000", 1),
        ("400000 100000", "250000 100000", 2),
    ],
)
def test_a_container_s_limit_counts(
    outer: str, inner: str, cores: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.cpu_count", lambda: 8)
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(8)), raising=False)
    (tmp_path / "own").write_text("0::/a\n")
    (tmp_path / "fs" / "a").mkdir(parents=True)
    (tmp_path / "fs" / "cpu.max").write_text(outer)
    (tmp_path / "fs" / "a" / "cpu.max").write_text(inner)
    assert allowed(tmp_path / "fs", tmp_path / "own") == cores


def test_cores_that_are_not_assigned_to_the_process_do_not_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.sched_getaffinity", lambda _: {3}, raising=False)
    assert allowed(tmp_path, tmp_path / "none") == 1
