"""Jobs that take more than they asked for: left alone while there is room, ended when there is none."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from rota.plan.size import Size
from rota.runner.contain import hierarchies
from rota.runner.contain.fence import Fence
from rota.runner.contain.fences import Fences
from rota.runner.end import host_room
from rota.runner.end.host_room import HostRoom
from rota.wire import messages as m
from tests.runner.manager import FakeManager

MB = 1 << 20
PATH = b"PATH=" + os.environ["PATH"].encode()

#: A runner whose host has as much room as two files say.
LAUNCH = """
import sys
from rota.runner import log
from rota.runner.agent import Agent
from rota.runner.report.link import unix_dial
from rota.runner.end.host_room import HostRoom

home = sys.argv[1]
log.open_log(home + "/runner.log")
agent = Agent(unix_dial(home + "/socket"), home + "/runners")

def left(name):
    with open(home + "/" + name) as file:
        return HostRoom(int(file.read() or 1000), 1000)

def memory():
    with open(home + "/looks", "a") as file:
        file.write("x")
    return left("memory")

agent.watchdog.memory = memory
agent.watchdog.disk = lambda path: left("disk")
agent.run()
"""


class FullHost(FakeManager):
    """A manager whose runner believes what this says about memory and disk, in thousandths."""

    def __init__(self, home: Path) -> None:
        super().__init__(home)
        self.say("memory", 900)
        self.say("disk", 900)

    def say(self, what: str, left: int) -> None:
        (self.home / f"{what}.new").write_text(str(left))
        (self.home / f"{what}.new").rename(self.home / what)

    def wait_for_looks(self, count: int) -> None:
        """Until the runner has looked at what is left so many times more."""
        looks = self.home / "looks"
        before = looks.stat().st_size if looks.exists() else 0
        self.until(lambda: looks.exists() and looks.stat().st_size >= before + count)

    def spawn(self, *prefix: str) -> subprocess.Popen[bytes]:
        process = subprocess.Popen([*prefix, sys.executable, "-c", LAUNCH, str(self.home)], start_new_session=True)
        self.processes.append(process)
        return process

    def eat(self, job: int, mem: int, *, asked: int, then: str = "") -> m.Grant:
        """Open a seat for a job that takes `mem` bytes and waits until `go` is there."""
        spec = self.spec(size=Size(mem=asked))
        program = (
            f"import os, time; data = bytearray({mem}); open('on{job}', 'w').close()\n"
            f"while not os.path.exists('go'): time.sleep(0.02)\n{then}"
        )
        grant = self.grant(job, ["python3", "-c", program], spec)
        self.work([grant], spec, seats=self.seats(1, spec.size), env=PATH)
        self.until(lambda: (self.home / f"on{job}").exists())
        return grant


@pytest.fixture
def host() -> Iterator[FullHost]:
    with tempfile.TemporaryDirectory(prefix="rota-") as home:
        fake = FullHost(Path(home))
        try:
            fake.begin()
            yield fake
        finally:
            fake.finish()


def test_a_job_over_its_request_is_left_alone_while_there_is_room(host: FullHost) -> None:
    host.eat(1, 60 * MB, asked=20 * MB)
    host.say("memory", 60)  # not yet nearly full
    host.wait_for_looks(3)
    (host.home / "go").touch()
    (done,) = host.wait_for([1])
    assert (done.outcome.exit_code, done.outcome.reason) == (0, "")
    assert done.outcome.peak_mem > 60 * MB, "which is learned from"


def test_on_a_full_host_the_job_farthest_over_its_request_is_ended(host: FullHost) -> None:
    host.eat(1, 120 * MB, asked=500 * MB)
    host.eat(2, 90 * MB, asked=60 * MB)
    host.eat(3, 60 * MB, asked=10 * MB)
    host.say("memory", 40)
    (done,) = host.wait_for([3])
    host.say("memory", 900)
    assert done.outcome.reason == "memory"
    assert not done.outcome.permanent
    assert done.outcome.peak_mem > 60 * MB
    assert "asked for 10M" in done.outcome.message
    assert "nearly full" in done.outcome.message
    assert [ended.job for ended in host.ended] == [3], "the host had room again"
    host.say("memory", 40)
    (second,) = host.wait_for([2])
    assert second.outcome.reason == "memory"
    host.until(lambda: "no job here is over its request" in host.log())
    (host.home / "go").touch()
    (innocent,) = host.wait_for([1])
    assert (innocent.outcome.exit_code, innocent.outcome.reason) == (0, "")


def test_the_whole_tree_of_a_job_counts_and_is_ended_even_if_deaf(host: FullHost) -> None:
    spec = host.spec(size=Size(mem=40 * MB))
    eat = "import time; data = bytearray(30_000_000); open('on{}', 'w').close(); time.sleep(600)"
    command = "trap '' TERM; " + " ".join(f'python3 -c "{eat.format(n)}" &' for n in (1, 2)) + " wait; wait"
    host.work([host.grant(1, command, spec)], spec, seats=host.seats(1, spec.size), env=PATH)
    host.until(lambda: (host.home / "on1").exists() and (host.home / "on2").exists())
    host.say("memory", 10)
    (done,) = host.wait_for([1])
    assert done.outcome.reason == "memory"


def test_a_used_size_is_what_counts_as_the_request(host: FullHost) -> None:
    spec = host.spec(size=Size(mem=10 * MB))
    wait = "while not os.path.exists('go'): time.sleep(0.02)"
    program = f"import os, time; data = bytearray(60_000_000); open('on', 'w').close()\n{wait}"
    grant = msgspec.structs.replace(host.grant(1, ["python3", "-c", program], spec), size=Size(mem=300 * MB))
    host.work([grant], spec, seats=host.seats(1, Size(mem=300 * MB)), env=PATH)
    host.until(lambda: (host.home / "on").exists())
    host.say("memory", 10)
    host.until(lambda: "no job here is over its request" in host.log())
    (host.home / "go").touch()
    (done,) = host.wait_for([1])
    assert done.outcome.exit_code == 0


def test_a_full_disk_ends_the_job_in_scratch_that_is_farthest_over_its_request(host: FullHost) -> None:
    asked = {1: Size(disk=100 * MB), 2: Size(disk=1 * MB), 3: Size(disk=2 * MB)}
    megabytes = {1: 9, 2: 3, 3: 8}
    for job, size in asked.items():
        spec = host.spec(size=size, scratch=True)
        write = f"head -c {megabytes[job]}M /dev/zero > big; touch ../../on{job}"
        command = f"{write}; while ! test -e ../../go; do sleep 0.02; done"
        host.work([host.grant(job, command, spec)], spec, seats=host.seats(1, size))
    host.until(lambda: all((host.home / f"on{job}").exists() for job in asked))
    host.say("disk", 5)
    (done,) = host.wait_for([3])
    host.say("disk", 900)
    assert done.outcome.reason == "disk"
    assert done.outcome.peak_disk >= 8 * MB
    assert "asked for 2M" in done.outcome.message
    host.say("disk", 0)
    (second,) = host.wait_for([2])
    assert second.outcome.reason == "disk"
    host.until(lambda: "scratch directories is full" in host.log())
    (host.home / "go").touch()
    (innocent,) = host.wait_for([1])
    assert innocent.outcome.exit_code == 0


def test_a_full_disk_does_not_concern_jobs_outside_scratch(host: FullHost) -> None:
    host.say("disk", 0)
    (done,) = host.run("sleep 0.6")
    assert done.outcome.exit_code == 0


def test_a_job_that_fails_itself_on_a_full_disk_keeps_its_exit_code(host: FullHost) -> None:
    (done,) = host.run("echo x > /dev/full || exit 5", scratch=True)
    assert (done.outcome.exit_code, done.outcome.reason) == (5, "")


def test_a_behaviour_that_eats_memory_is_ended_and_the_outcome_stays(host: FullHost) -> None:
    eat = "import time; data = bytearray(60_000_000); open('on', 'w').close(); time.sleep(600)"
    spec = host.spec(size=Size(mem=10 * MB), on_exit=(f'run: python3 -c "{eat}"',))
    host.work([host.grant(1, "true", spec)], spec, seats=host.seats(1, spec.size), env=PATH)
    host.until(lambda: (host.home / "on").exists())
    host.say("memory", 10)
    (done,) = host.wait_for([1])
    assert (done.outcome.exit_code, done.outcome.reason) == (0, "")
    assert "nearly full" in done.outcome.behaviours[0].message


# ------------------------------------------------------------------ how much is left


def test_what_is_left_is_measured() -> None:
    memory = host_room.Memory()()
    assert 0 < memory.left <= memory.total
    disk = host_room.disk("/")
    assert 0 <= disk.left <= disk.total


def test_the_scarcest_room_counts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "cgroup.procs").touch()
    (tmp_path / "memory.max").write_text("1000\n")
    (tmp_path / "memory.current").write_text("960\n")
    (tmp_path / "memory.stat").write_text("anon 100\ninactive_file 300\n")
    monkeypatch.setattr(hierarchies, "candidates", lambda controller: [(2, str(tmp_path))])
    memory = host_room.Memory()
    assert memory() == HostRoom(340, 1000), "cached files can be taken back"
    (tmp_path / "memory.stat").write_text("anon 950\ninactive_file 10\n")
    assert memory() == HostRoom(50, 1000)


# ------------------------------------------------------------------ by control group


def limits_possible() -> bool:
    fence = limiting("test-probe", 64 * MB)
    return fence.remove() and fence.limited


def limiting(name: str, limit: int) -> Fence:
    return Fences(name).make(1, os.getpid(), hold=False, memory=limit)


by_cgroup = pytest.mark.skipif(not limits_possible(), reason="memory control groups cannot be made here")


@pytest.fixture(params=["auto", "cgroup"])
def strict(manager: FakeManager, request: pytest.FixtureRequest) -> FakeManager:
    """A runner that limits memory by control groups, however it holds processes together."""
    manager.rules |= {"enforce_memory": "cgroup", "containment": request.param}
    manager.begin()
    return manager


def leftovers(manager: FakeManager) -> list[str]:
    """Control groups of this runner."""
    runner = manager.joins[-1].runner
    return [name for _, parent in hierarchies.parents() for name in os.listdir(parent) if runner in name]


@by_cgroup
def test_the_kernel_ends_a_job_at_its_limit_and_that_is_the_reason(strict: FakeManager) -> None:
    size = Size(mem=50 * MB)
    spec = strict.spec(size=size)
    direct = strict.grant(1, ["python3", "-c", "bytearray(200_000_000)"], spec)
    below = strict.grant(2, "python3 -c 'bytearray(200_000_000)'; exit 3", spec)
    strict.work([direct, below], spec, seats=strict.seats(1, size), env=PATH)
    for done in strict.wait_for([1, 2]):
        assert done.outcome.reason == "memory"
        assert "asked for 50M" in done.outcome.message
        assert 50 * MB <= done.outcome.peak_mem <= 80 * MB
        assert not done.outcome.permanent
    strict.until(lambda: not leftovers(strict))


@by_cgroup
def test_a_job_within_its_limit_runs_as_ever(strict: FakeManager) -> None:
    size = Size(mem=100 * MB)
    spec = strict.spec(size=size)
    commands = ["python3 -c 'bytearray(50_000_000)'; echo fine", "exit 3", "head -c 300M /dev/zero > big; rm big"]
    grants = [strict.grant(1 + n, command, spec) for n, command in enumerate(commands)]
    strict.work(grants, spec, seats=strict.seats(1, size), env=PATH)
    fine, three, files = strict.wait_for([1, 2, 3])
    assert strict.output(fine)[0] == b"fine\n"
    assert (three.outcome.exit_code, three.outcome.reason) == (3, "")
    assert files.outcome.exit_code == 0
    assert files.outcome.peak_mem < 50 * MB, "cached files are not what it needs"
    strict.until(lambda: not leftovers(strict))


@by_cgroup
def test_a_job_that_survives_the_death_of_a_child_has_succeeded(strict: FakeManager) -> None:
    size = Size(mem=50 * MB)
    spec = strict.spec(size=size)
    strict.work(
        [strict.grant(1, "python3 -c 'bytearray(200_000_000)' || true", spec)],
        spec,
        seats=strict.seats(1, size),
        env=PATH,
    )
    (done,) = strict.wait_for([1])
    # Version 2 ends the whole job at once; version 1 only the process that was too large.
    assert done.outcome.reason in {"", "memory"}
    assert (done.outcome.reason == "") == (done.outcome.exit_code == 0)


@by_cgroup
def test_a_job_without_a_request_has_no_limit(strict: FakeManager) -> None:
    (done,) = strict.run("python3 -c 'bytearray(200_000_000)'", env=PATH)
    assert done.outcome.exit_code == 0


@by_cgroup
def test_a_sigkill_from_outside_is_not_called_lack_of_memory_even_with_a_limit(strict: FakeManager) -> None:
    size = Size(mem=50 * MB)
    spec = strict.spec(size=size)
    strict.work([strict.grant(1, "kill -KILL $$", spec)], spec, seats=strict.seats(1, size))
    (done,) = strict.wait_for([1])
    assert (done.outcome.signal, done.outcome.reason) == (signal.SIGKILL, "")


@pytest.fixture
def narrow(manager: FakeManager) -> Iterator[FakeManager]:
    """A runner that is itself in a control group with little memory, as below another batch system."""
    fence = limiting("test-around", 160 * MB)
    (path,) = fence.paths
    join = f'echo $$ > {path}/cgroup.procs; exec "$@"'
    manager.rules["containment"] = "session"
    manager.spawn("sh", "-c", join, "sh")
    manager.accept()
    yield manager
    manager.finish()
    assert fence.remove_patiently()


SLOWLY = (
    "import time; data = [bytearray(90_000_000)]\nwhile True: data.append(bytearray(500_000)); time.sleep(0.02)"
)


@by_cgroup
@pytest.mark.parametrize("program", ["bytearray(400_000_000)", SLOWLY], ids=["at once", "slowly"])
def test_the_limit_of_a_group_around_the_runner_is_respected(narrow: FakeManager, program: str) -> None:
    size = Size(mem=20 * MB)
    spec = narrow.spec(size=size)
    narrow.work([narrow.grant(1, ["python3", "-c", program], spec)], spec, seats=narrow.seats(1, size), env=PATH)
    (done,) = narrow.wait_for([1])
    # Whoever is quicker, the runner or the kernel.
    assert done.outcome.reason == "memory"
    (after,) = narrow.run("echo works")
    assert narrow.output(after)[0] == b"works\n"
