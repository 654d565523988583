"""Nothing of a job outlives it, whatever it does: held by control groups, or without any."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.launcher import procfs
from rota.launcher.inside import InsideLauncher
from rota.runner.contain import hierarchies
from rota.runner.contain.fence import Fence
from rota.runner.contain.fences import Fences, found_here, of_runner, recorded
from rota.runner.contain.hierarchies import CORES, HOLD, MEMORY, CgroupTree, Hierarchies
from rota.runner.identity import name_of
from rota.wire import messages as m
from tests.runner.manager import FakeManager, ref

HERE = sorted(os.sched_getaffinity(0))
holding = pytest.mark.skipif(
    HOLD not in Hierarchies(f"rota-test-{os.getpid()}").found(), reason="no control group can be made here"
)

#: Forks twice, leaves its session, closes everything, ignores TERM and HUP, forgets its environment, works on.
DAEMON = """
import os, signal, sys
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
if os.fork(): os._exit(0)
os.setsid()
if os.fork(): os._exit(0)
if "again" not in sys.argv:
    os.execve(sys.executable, [sys.executable, *sys.argv, "again"], {})
with open(sys.argv[1] + ".new", "w") as file:
    file.write(str(os.getpid()))
os.rename(sys.argv[1] + ".new", sys.argv[1])
os.closerange(0, 1000)
while True: pass
"""

#: Counts in a file, with a child that does the same.
COUNT = """
import os, sys, time
name = sys.argv[1] + (".child" if not os.fork() else "")
for n in range(10 ** 9):
    with open(name, "w") as file:
        file.write(str(n))
    time.sleep(0.001)
"""


def program(manager: FakeManager, text: str) -> str:
    path = manager.home / "program.py"
    path.write_text(text)
    return f"{sys.executable} {path}"


def alive(pid: int) -> bool:
    seen = procfs.process(pid)
    return seen is not None and seen.alive


def groups_of(manager: FakeManager) -> list[str]:
    """Control groups of the jobs of this manager's runners."""
    prefixes = tuple(f"rota-{join.runner}-{job}." for join in manager.joins for job in range(1, 10))
    names = [(parent, name) for _, parent in hierarchies.parents() for name in os.listdir(parent)]
    return [f"{parent}/{name}" for parent, name in names if name.startswith(prefixes)]


def start(manager: FakeManager, command: str, job: int = 1) -> m.Grant:
    spec = manager.spec()
    grant = manager.grant(job, command, spec)
    manager.work([grant], spec)
    manager.until(lambda: any(one.job == job for one in manager.started))
    return grant


@pytest.fixture(params=["auto", "cgroup", "session"])
def runner(manager: FakeManager, request: pytest.FixtureRequest) -> FakeManager:
    manager.rules |= {"containment": request.param, "grace_s": 0.2}
    manager.begin()
    return manager


# ------------------------------------------------------------------ the end of a job


@pytest.mark.parametrize("killed", [False, True], ids=["ends by itself", "is killed"])
def test_a_daemon_that_hides_is_dead_before_its_cores_are_free(runner: FakeManager, killed: bool) -> None:
    daemon = program(runner, DAEMON)
    wait = "while ! test -e go; do sleep 0.01; done"
    first = start(runner, f"echo $ROTA_CPU_LIST; {daemon} one; {daemon} two; {wait}")
    runner.until(lambda: (runner.home / "one").exists() and (runner.home / "two").exists())
    pids = [int((runner.home / name).read_text()) for name in ("one", "two")]
    # The next one wants the same seat: when it runs, nothing of the first may be left. It must be here before the
    # first ends, since a seat that nothing waits for is given back.
    spec = runner.spec()
    look = "; ".join(f"grep -s State /proc/{pid}/status" for pid in pids)
    runner.work([runner.grant(2, f"{look}; echo $ROTA_CPU_LIST", spec)], spec, seats=0)
    if killed:
        runner.send(m.Kill([ref(first)]))
    else:
        (runner.home / "go").touch()
    ended, after = runner.wait_for([1, 2])
    assert not any(alive(pid) for pid in pids)
    *states, cores = runner.output(after)[0].decode().splitlines()
    assert all("zombie" in state or "dead" in state for state in states)
    assert cores.encode() == runner.output(ended)[0].strip(), "on the same cores"
    runner.until(lambda: not groups_of(runner))


@holding
def test_a_job_that_lasts_is_fenced_to_exactly_its_cores(manager: FakeManager) -> None:
    place = Hierarchies(f"rota-test-{os.getpid()}").place(CORES)
    if place is None or len(HERE) < 2:
        pytest.skip("cores cannot be fenced here")
    manager.begin()
    start(manager, "sleep 600 & wait")
    pid = manager.started[0].pid
    (path,) = manager.until(lambda: [name for name in groups_of(manager) if name.startswith(f"{place.parent}/")])
    tree = {seen.pid for seen in procfs.table().values() if seen.session == pid and seen.alive}
    manager.until(lambda: set(map(int, Path(f"{path}/cgroup.procs").read_text().split())) >= tree)
    assert Path(f"{path}/cpuset.cpus").read_text().strip() == str(manager.picks()[0])
    with pytest.raises(OSError, match="Invalid argument"):
        os.sched_setaffinity(pid, {manager.picks()[1]})


# ------------------------------------------------------------------ frozen


#: A runner that freezes and continues its tasks when a file says so.
LAUNCH = """
import os, sys
from rota.runner import log
from rota.runner.agent import Agent
from rota.runner.contain.fences import Fences
from rota.runner.contain.hierarchies import CgroupTree
from rota.runner.report.link import unix_dial

home = sys.argv[1]
log.open_log(home + "/runner.log")
agent = Agent(unix_dial(home + "/socket"), home + "/runners")
if os.path.exists(home + "/proc"):
    tree = CgroupTree()
    tree.proc = home + "/proc"
    agent.containment.fences = Fences(agent.identity.id, tree, launchers=agent.launchers)

def look(now):
    for word in ("stop", "go"):
        if os.path.exists(f"{home}/{word}"):
            tasks = list(agent.tasks.by_key.values())
            done = all([agent.containment.freeze(task, word == "stop") for task in tasks])
            os.rename(f"{home}/{word}", f"{home}/{word}.{done}")
    agent.loop.due(now + 0.01)

agent.ticks.insert(0, look)
agent.run()
"""


class Freezing(FakeManager):
    """A manager whose runner freezes all its tasks when this says so."""

    def begin(self) -> object:  # type: ignore[override]
        process = subprocess.Popen([sys.executable, "-c", LAUNCH, str(self.home)], start_new_session=True)
        self.processes.append(process)
        self.accept()
        return process

    def say(self, word: str) -> None:
        (self.home / f"{word}.True").unlink(missing_ok=True)
        (self.home / word).touch()
        self.until(lambda: (self.home / f"{word}.True").exists())


@pytest.fixture(params=["auto", "cgroup", "session", "version 1"])
def freezing(request: pytest.FixtureRequest) -> Iterator[Freezing]:
    with tempfile.TemporaryDirectory(prefix="rota-") as home:
        fake = Freezing(Path(home))
        containment = "auto" if request.param == "version 1" else request.param
        fake.rules |= {"containment": containment, "grace_s": 0.2}
        if request.param == "version 1":
            Older(Path(home, "proc"))
        try:
            fake.begin()
            yield fake
        finally:
            fake.finish()


def counts(manager: FakeManager) -> tuple[str, str]:
    return (manager.home / "count").read_text(), (manager.home / "count.child").read_text()


def wait_for_more(manager: FakeManager) -> None:
    """Both of them count on."""
    manager.until(lambda: (manager.home / "count").exists() and (manager.home / "count.child").exists())
    before = counts(manager)
    manager.until(lambda: all(now and now != then for now, then in zip(counts(manager), before, strict=True)))


def assert_still(manager: FakeManager) -> None:
    """Neither of them counts on, if they have begun at all.

    A process that gets a STOP in the middle of a system call ends the call first, and it may be writing.
    """
    pid = manager.started[0].pid
    manager.until(lambda: not any(seen.state == "R" for seen in procfs.table().values() if seen.session == pid))
    before = [path.read_text() for path in sorted(manager.home.glob("count*"))]
    time.sleep(0.1)
    assert [path.read_text() for path in sorted(manager.home.glob("count*"))] == before


def test_a_frozen_job_stands_still_and_goes_on_where_it_was(freezing: Freezing) -> None:
    start(freezing, f"{program(freezing, COUNT)} count")
    wait_for_more(freezing)
    for _ in range(2):
        freezing.say("stop")
        assert_still(freezing)
        freezing.say("go")
        wait_for_more(freezing)


def test_a_job_can_be_frozen_before_it_has_a_fence(freezing: Freezing) -> None:
    start(freezing, f"{program(freezing, COUNT)} count")
    freezing.say("stop")
    assert_still(freezing)
    freezing.say("go")
    wait_for_more(freezing)


def test_a_frozen_job_that_is_killed_hears_it(freezing: Freezing) -> None:
    polite = f"trap 'echo bye; exit 7' TERM; {program(freezing, COUNT)} count & wait"
    grant = start(freezing, polite)
    wait_for_more(freezing)
    freezing.say("stop")
    freezing.send(m.Kill([ref(grant)]))
    (done,) = freezing.wait_for([1])
    assert done.outcome.reason == "kill_requested"
    assert freezing.output(done)[0] == b"bye\n"
    freezing.until(lambda: not groups_of(freezing))


def test_a_frozen_job_of_a_dead_runner_is_ended_by_its_successor(freezing: Freezing) -> None:
    start(freezing, f"{program(freezing, COUNT)} count")
    wait_for_more(freezing)
    freezing.say("stop")
    pid = freezing.started[0].pid
    freezing.processes[-1].send_signal(signal.SIGKILL)
    freezing.processes[-1].wait()
    freezing.hang_up()
    freezing.begin()
    freezing.until(lambda: freezing.settles)
    (done,) = freezing.settles[0].ended
    assert done.outcome.reason == "lost"
    assert not [seen for seen in procfs.table().values() if seen.session == pid and seen.alive]
    assert not groups_of(freezing)


# ------------------------------------------------------------------ a fence of its own


BEGIN = "import os, signal, time; first = os.getpid()"
READY = "if os.getpid() == first: os.write(1, b'ready\\n')\ntime.sleep(600)"


def spawned(fence: Fence, text: str) -> subprocess.Popen[bytes]:
    """A process inside, once it has said that it is ready."""
    process = subprocess.Popen(
        [sys.executable, "-c", f"{BEGIN}\n{text}\n{READY}"],
        stdout=subprocess.PIPE,
        start_new_session=True,
        preexec_fn=lambda: fence.add(os.getpid()),
    )
    fence.add(process.pid)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.stdout.close()
    return process


class Nothing(CgroupTree):
    """A host without control groups."""

    proc = "/nonexistent"


class Older(CgroupTree):
    """This host as if it had no groups of version 2."""

    def __init__(self, proc: Path) -> None:
        self.proc = str(proc)
        proc.mkdir()
        for name, other in (("cgroup", "0::"), ("mountinfo", "cgroup2")):
            lines = Path("/proc/self", name).read_text().splitlines(keepends=True)
            (proc / name).write_text("".join(line for line in lines if other not in line))


@pytest.fixture(params=["best", "version 1", "none"])
def fence(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Fence]:
    """A fence by the best that this host has, by version 1 alone, and by no group."""
    tree = {"best": CgroupTree, "version 1": lambda: Older(tmp_path / "proc"), "none": Nothing}[request.param]()
    fences = Fences(f"test-{os.getpid()}", tree)
    if request.param != "none" and fences.hierarchies.place(HOLD) is None:
        pytest.skip("not on this host")
    made = fences.make(1, 1, cores={HERE[0]})
    assert (request.param == "version 1") == ({group.version for group in made.groups} == {1})
    yield made
    assert made.kill_all()
    assert made.remove_patiently()


def test_a_fence_of_its_own_freezes_kills_and_is_empty_then(fence: Fence) -> None:
    process = spawned(fence, "signal.signal(signal.SIGTERM, signal.SIG_IGN); os.fork()")
    assert not fence.empty()
    assert len(fence.living()) == 2
    assert fence.freeze(True)
    assert fence.frozen
    assert fence.freeze(False)
    assert fence.freeze(True), "and it is killed while it is frozen"
    assert fence.kill_all()
    assert process.wait() == -signal.SIGKILL
    assert fence.empty()


def test_a_fence_can_be_found_again_and_ended_by_another(fence: Fence) -> None:
    process = spawned(fence, "")
    again = recorded(fence.record(), 1, 1, InsideLauncher())
    if not fence.exists:
        assert again is None
        return
    assert again is not None
    assert again.record() == fence.record()
    assert [one.pid for one in again.living()] == [process.pid]
    assert list(of_runner(f"test-{os.getpid()}")) == ["1.1"]
    fence.freeze(True)
    assert again.kill_all()
    process.wait()
    assert again.remove_patiently()


def test_what_moves_into_a_group_below_is_still_inside(fence: Fence) -> None:
    if not fence.exists:
        return
    process = spawned(fence, "")
    for path in fence.paths:
        os.makedirs(f"{path}/deeper/still")
    Path(fence.paths[0], "deeper/still/cgroup.procs").write_text(str(process.pid))
    assert [one.pid for one in fence.living()] == [process.pid]
    assert fence.freeze(True)
    assert fence.kill_all()
    assert process.wait() == -signal.SIGKILL
    assert fence.remove_patiently()
    assert not any(os.path.exists(path) for path in fence.paths)


@holding
def test_a_fence_keeps_what_is_inside_to_its_cores(fence: Fence) -> None:
    if CORES not in fence.by_purpose:
        assert not fence.keep_to({HERE[-1]}), "affinity must do it"
        return
    process = spawned(fence, "")
    assert os.sched_getaffinity(process.pid) == {HERE[0]}
    assert fence.keep_to({HERE[-1]})
    assert os.sched_getaffinity(process.pid) == {HERE[-1]}


# ------------------------------------------------------------------ other hosts than this one


class Fake(CgroupTree):
    """The control groups of another host, in a directory: a group made there has the files it would have."""

    def __init__(self, top: Path, mounts: dict[str, tuple[int, str, list[str]]]) -> None:
        """`mounts`: by name, the version, the own group, and the files that a new group has."""
        self.proc = str(top / "proc")
        self._files: dict[str, list[str]] = {}
        (top / "proc").mkdir()
        own, mounted = "", ""
        for name, (version, path, files) in mounts.items():
            mount = top / name
            (mount / path.lstrip("/")).mkdir(parents=True)
            self._files[str(mount)] = ["cgroup.procs", *files]
            for directory in (mount, mount / path.lstrip("/")):
                self._fill(directory, self._files[str(mount)])
            own += f"0::{path}\n" if version == 2 else f"3:{name}:{path}\n"
            kind = "cgroup2 none rw" if version == 2 else f"cgroup none rw,{name}"
            mounted += f"30 20 0:26 / {mount} rw - {kind}\n"
        (top / "proc" / "cgroup").write_text(own)
        (top / "proc" / "mountinfo").write_text(mounted)

    def _fill(self, directory: Path, files: list[str]) -> None:
        for file in files:
            (directory / file).write_text("0-7\n" if file == "cpuset.mems" else "")

    def make(self, path: str) -> None:
        super().make(path)
        (files,) = (files for mount, files in self._files.items() if path.startswith(f"{mount}/"))
        self._fill(Path(path), files)

    def remove(self, path: str) -> None:
        for file in Path(path).iterdir():
            file.unlink()
        super().remove(path)


KERNEL2 = ["cgroup.freeze", "cgroup.kill", "cgroup.events"]


def test_with_version_2_and_all_controllers_one_group_does_everything(tmp_path: Path) -> None:
    tree = Fake(tmp_path, {"all": (2, "/rota/agent", [*KERNEL2, "cpuset.cpus", "memory.max"])})
    fences = Fences("r", tree)
    fence = fences.make(7, 2, cores={1, 3}, memory=1 << 30)
    (path,) = fence.paths
    assert path == f"{tmp_path}/all/rota/agent/rota-r-7.2"
    assert (fence.holds, fence.limited) == (True, True)
    assert Path(path, "cpuset.cpus").read_text() == "1,3"
    assert Path(path, "memory.max").read_text() == str(1 << 30)
    fence.kill()
    assert Path(path, "cgroup.kill").read_text() == "1"
    kind, lines = found_here(fences)
    assert kind == "version 2"
    assert [level for level, _ in lines] == ["good"] * 3
    assert fence.remove()
    assert not Path(path).exists()


def test_with_version_2_without_controllers_it_only_holds(tmp_path: Path) -> None:
    tree = Fake(tmp_path, {"all": (2, "/agent", KERNEL2)})
    fence = Fences("r", tree).make(7, 2, cores={1}, memory=1 << 30)
    assert (fence.holds, fence.limited, len(fence.paths)) == (True, False, 1)
    assert not fence.keep_to({2})
    kind, lines = found_here(Fences("r", tree))
    assert (kind, [level for level, _ in lines]) == ("version 2", ["good", "note", "note"])


def test_with_version_1_there_is_a_group_in_each_hierarchy_that_is_needed(tmp_path: Path) -> None:
    tree = Fake(
        tmp_path,
        {
            "freezer": (1, "/", ["freezer.state"]),
            "cpuset": (1, "/", ["cpuset.cpus", "cpuset.mems"]),
            "memory": (1, "/box", ["memory.limit_in_bytes"]),
        },
    )
    fences = Fences("r", tree)
    assert fences.make(1, 1).paths == [f"{tmp_path}/freezer/rota-r-1.1"]
    fence = fences.make(7, 2, cores={0}, memory=1 << 30)
    assert fence.paths == [f"{tmp_path}/{name}/rota-r-7.2" for name in ("freezer", "cpuset", "memory/box")]
    assert fence.freeze(True)
    assert Path(fence.paths[0], "freezer.state").read_text() == "FROZEN"
    assert found_here(fences)[0] == "version 1"
    assert sorted(of_runner("r", tree)) == ["1.1", "7.2"]
    assert fence.remove()
    assert sorted(of_runner("r", tree)) == ["1.1"]


def test_on_a_hybrid_host_version_2_holds_and_version_1_does_the_rest(tmp_path: Path) -> None:
    mounts = {"unified": (2, "/", KERNEL2), "freezer": (1, "/", ["freezer.state"])}
    tree = Fake(tmp_path, {**mounts, "cpuset": (1, "/", ["cpuset.cpus", "cpuset.mems"])})
    fences = Fences("r", tree)
    fence = fences.make(7, 2, cores={0}, memory=1 << 30)
    assert fence.paths == [f"{tmp_path}/unified/rota-r-7.2", f"{tmp_path}/cpuset/rota-r-7.2"]
    assert found_here(fences)[0] == "hybrid"
    assert {what: place.version for what, place in fences.hierarchies.found().items()} == {HOLD: 2, CORES: 1}


def test_without_control_groups_a_fence_follows_its_processes() -> None:
    fences = Fences("r", Nothing())
    fence = fences.make(7, 2, cores={0}, memory=1 << 30)
    assert (fence.exists, fence.holds, fence.limited, fence.paths) == (False, False, False, [])
    assert fence.empty()
    assert found_here(fences)[0] == "none"


def test_controllers_are_switched_on_only_in_a_group_that_was_delegated(tmp_path: Path) -> None:
    tree = Fake(tmp_path, {"all": (2, "/service/agent", KERNEL2)})
    service = tmp_path / "all/service"
    for name, text in (
        ("cgroup.procs", ""),
        ("cgroup.controllers", "cpuset memory\n"),
        ("cgroup.subtree_control", ""),
    ):
        (service / name).write_text(text)
    Fences("r", tree).make(1, 1)
    assert (service / "cgroup.subtree_control").read_text() == ""
    try:
        os.setxattr(service, "user.delegate", b"1")
    except OSError:
        pytest.skip("no attributes of files here")
    Fences("r", tree).make(1, 2)
    assert (service / "cgroup.subtree_control").read_text() == "+memory", "the last that was written"


def test_a_group_that_was_not_made_by_rota_is_never_taken_for_one(tmp_path: Path) -> None:
    other = tmp_path / "system.slice"
    other.mkdir()
    (other / "cgroup.freeze").touch()
    assert recorded(str(other), 1, 1, InsideLauncher()) is None
    assert recorded("", 1, 1, InsideLauncher()) is None


def test_nothing_is_left_of_looking_for_places() -> None:
    places = Hierarchies(f"rota-looked-{os.getpid()}").found()
    assert set(places) <= {HOLD, CORES, MEMORY}
    left = [name for _, parent in hierarchies.parents() for name in os.listdir(parent) if "rota-looked" in name]
    assert left == []


def _occupied(runner: str, inside: int) -> Fence:
    """A fence of a runner, with a process in it. While it is empty, any runner that starts may remove it."""
    while True:
        fence = Fences(f"{runner}-{os.urandom(4).hex()}").make(1, 1)
        with contextlib.suppress(OSError):
            fence.add(inside)
        if all(os.path.isdir(path) for path in fence.paths):
            return fence


@holding
def test_empty_groups_of_dead_runners_are_removed_and_no_others(manager: FakeManager) -> None:
    host = name_of(socket.gethostname())
    dead = subprocess.Popen(["true"])
    dead.wait()
    with subprocess.Popen(["sleep", "100"]) as inside:
        made = {
            what: Fences(f"{host}-{pid}-{os.urandom(4).hex()}").make(1, 1)
            for what, pid in (("dead", dead.pid), ("alive", os.getpid()))
        }
        try:
            made["occupied"] = _occupied(f"{host}-{dead.pid}", inside.pid)
            manager.begin()
            assert {what: [os.path.isdir(path) for path in fence.paths] for what, fence in made.items()} == {
                "dead": [False],
                "occupied": [True],
                "alive": [True],
            }
        finally:
            inside.kill()
            inside.wait()
            for fence in made.values():
                fence.remove_patiently()


# ------------------------------------------------------------------ a script of the site

SCRIPT = """#!/bin/sh
echo "$@" >> {log}
test ! -e {home}/fails
case $1 in
make) touch {home}/held.$2.$3;;
add) echo $5 >> {home}/held.$2.$3;;
freeze) kill -STOP $(cat {home}/held.$2.$3);;
thaw) kill -CONT $(cat {home}/held.$2.$3);;
kill) kill -KILL $(cat {home}/held.$2.$3) || true;;
clean) rm {home}/held.$2.$3;;
esac 2> /dev/null
"""


@pytest.fixture
def scripted(freezing: Freezing) -> Freezing:
    script = freezing.home / "script"
    script.write_text(SCRIPT.format(log=freezing.home / "calls", home=freezing.home))
    script.chmod(0o755)
    freezing.send(m.Rules(**freezing.rules, containment_script=str(script)))
    return freezing


def calls(manager: FakeManager) -> list[list[str]]:
    path = manager.home / "calls"
    return [line.split(" ") for line in path.read_text().splitlines()] if path.exists() else []


@pytest.mark.parametrize("freezing", ["auto", "cgroup"], indirect=True)
def test_a_script_of_the_site_is_used_instead_of_control_groups(scripted: Freezing) -> None:
    grant = start(scripted, f"{program(scripted, COUNT)} count")
    wait_for_more(scripted)
    scripted.until(lambda: any(call[0] == "add" for call in calls(scripted)))
    pid = scripted.started[0].pid
    assert calls(scripted)[0] == ["make", "1", "1", str(scripted.picks()[0]) if len(HERE) > 1 else ""]
    assert ["add", *calls(scripted)[0][1:], str(pid)] in calls(scripted)
    assert not groups_of(scripted)
    scripted.say("stop")
    assert_still(scripted)
    scripted.say("go")
    wait_for_more(scripted)
    scripted.send(m.Kill([ref(grant)]))
    scripted.wait_for([1])
    verbs = [call[0] for call in calls(scripted)]
    assert "freeze" in verbs
    assert "thaw" in verbs
    assert verbs[-1] == "clean"
    assert not list(scripted.home.glob("held*"))


@pytest.mark.parametrize("freezing", ["auto", "cgroup"], indirect=True)
def test_a_script_stops_what_was_started_after_the_last_look_at_a_job(scripted: Freezing) -> None:
    os.mkfifo(scripted.home / "begin")
    start(scripted, f"sleep 600 & read go < begin; {program(scripted, COUNT)} count")
    scripted.until(lambda: [call[0] for call in calls(scripted)].count("add") >= 2)  # the shell and `sleep`
    (scripted.home / "begin").write_text("")
    wait_for_more(scripted)
    scripted.say("stop")
    assert_still(scripted)
    scripted.say("go")
    wait_for_more(scripted)


@pytest.mark.parametrize("freezing", ["auto"], indirect=True)
def test_a_command_that_is_run_inside_a_job_is_given_to_the_script(scripted: Freezing) -> None:
    grant = start(scripted, "sleep 600")
    scripted.until(lambda: any(call[0] == "add" for call in calls(scripted)))
    scripted.send(m.StartChannel(1, grant.job, grant.attempt, grant.token, cmd=["sh", "-c", "echo $$ > pid; cat"]))
    path = scripted.home / "pid"
    scripted.until(lambda: path.exists() and path.read_text().endswith("\n"))
    scripted.until(lambda: ["add", path.read_text().strip()] in [[call[0], call[-1]] for call in calls(scripted)])


@pytest.mark.parametrize("freezing", ["cgroup"], indirect=True)
def test_what_is_run_after_a_job_is_given_to_the_script(scripted: Freezing) -> None:
    scripted.run("true", on_exit=("run: echo $$ > pid",))
    pid = (scripted.home / "pid").read_text().strip()
    assert ["add", pid] in [[call[0], call[-1]] for call in calls(scripted)]


@holding
@pytest.mark.parametrize("freezing", ["cgroup"], indirect=True)
def test_if_the_script_fails_control_groups_are_used_and_that_is_logged(scripted: Freezing) -> None:
    (scripted.home / "script").write_text("#!/bin/sh\nexit 3\n")
    start(scripted, "sleep 600")
    assert groups_of(scripted)
    assert f"{scripted.home}/script make 1 1" in scripted.log()
    assert "failed with 3" in scripted.log()


@pytest.mark.parametrize("freezing", ["auto"], indirect=True)
def test_a_script_of_a_dead_runner_is_called_by_its_successor(scripted: Freezing) -> None:
    start(scripted, f"{program(scripted, COUNT)} count")
    scripted.until(lambda: any(call[0] == "add" for call in calls(scripted)))
    wait_for_more(scripted)
    scripted.say("stop")
    scripted.processes[-1].send_signal(signal.SIGKILL)
    scripted.processes[-1].wait()
    scripted.hang_up()
    scripted.begin()
    scripted.until(lambda: scripted.settles)
    assert calls(scripted)[-1][:3] == ["clean", "1", "1"]
    assert not alive(scripted.started[0].pid)
