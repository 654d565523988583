"""A real manager that meets bugs: it drops what it was deciding, starts anew in the same process, and goes on.

One deployment serves all tests of this file but those about how a manager begins and ends.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from http.client import HTTPConnection
from pathlib import Path

import pytest

import rota as rota_package
from rota.errors import Bug, RotaError
from tests.deployment import Deployment, add_new, deployment, is_alive, wait_until

_BUGS = Path(__file__).with_name("bugs")
_FOREVER = "sleep 600"


class Buggy:
    """A deployment whose manager meets the bugs that it is told to."""

    def __init__(self, rota: Deployment, file: Path) -> None:
        self.rota = rota
        self._file = file
        #: of the manager only: commands need not wait for an interpreter
        self.env = rota.env | {"PYTHONPATH": str(_BUGS), "ROTA_TEST_BUGS": str(file)}

    def start(self) -> subprocess.CompletedProcess[str]:
        return self.rota.rota("manager", "start", env=self.env)

    def meets(self, *bugs: str) -> None:
        self._file.write_text("".join(f"{bug}\n" for bug in bugs))

    @property
    def left(self) -> list[str]:
        """The bugs that were not met yet."""
        return self._file.read_text().splitlines()

    def generation(self) -> int:
        with self.rota.client() as client:
            return client.manager_status().generation

    def places(self) -> list[str]:
        """Where bugs were met since the manager was resumed."""
        with self.rota.client() as client:
            bugs = client.manager_status().bugs
        return [] if bugs is None else [each.place for each in bugs.recent for _ in range(each.times)]


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Buggy]:
    top = tmp_path_factory.mktemp("bugs")
    with deployment(top, http="on") as made:
        buggy = Buggy(made, top / "bugs.txt")
        assert buggy.start().returncode == 0, made.logs()
        wait_until(made.runner_pids, "a runner")
        yield buggy


@pytest.fixture
def buggy(shared: Buggy) -> Iterator[Buggy]:
    yield shared
    shared.meets()
    with shared.rota.client() as client:
        client.resume_manager()


@pytest.fixture
def client(buggy: Buggy) -> Iterator[rota_package.Client]:
    with buggy.rota.client() as made:
        yield made


def _gated(gate: Path, then: str = "true") -> str:
    return f"until [ -e {gate} ]; do sleep 0.05; done; {then}"


def test_a_bug_in_a_request_costs_a_new_generation_and_nothing_else(
    buggy: Buggy, client: rota_package.Client
) -> None:
    rota = buggy.rota
    pid, runner, generation = rota.manager_pid(), rota.runner_pids(), buggy.generation()
    gate = rota.work / "gate"
    (long,) = add_new(client, [_gated(gate)])
    wait_until(lambda: client.job(long).state == "running", "it runs")
    http = client.manager_status().http
    assert http is not None
    waiting = rota.popen("wait", str(long))
    held, bugs = [], ["JobsHeld after", "ChunkArrived after", "commit before"]
    for bug in bugs:
        if bug.startswith("JobsHeld"):
            held += add_new(client, ["true"], after=[long])
        buggy.meets(bug)
        if bug.startswith("JobsHeld"):
            client.hold(held[-1])
        else:
            add_new(client, ["true"], after=[long])
        assert buggy.left == []
        generation += 1
        assert client.manager_status().generation == generation, rota.logs()
    assert rota.manager_pid() == pid
    assert is_alive(pid)
    assert rota.runner_pids() == runner
    assert client.job(long).state == "running"
    wait_until(lambda: _answers(http), "the gateway is back at its address")
    gate.touch()
    assert waiting.wait(60) == 0
    wait_until(lambda: client.job(long).state == "complete", "it completes")
    assert [client.job(id).state for id in held] == ["held"]
    assert len(client.jobs().jobs) == 4
    assert sorted(buggy.places()) == ["ChunkArrived", "JobsHeld", "commit"]
    checks = rota.json("doctor", "--quick")["checks"]
    assert [each for each in checks if "a bug in JobsHeld" in each["message"]]
    wait_until(lambda: _zombies_of(pid) == [], "children of the images before are reaped")
    fds = [os.readlink(f"/proc/{pid}/fd/{name}") for name in os.listdir(f"/proc/{pid}/fd")]
    assert sum(target.endswith("/manager.lock") for target in fds) == 1
    assert sum(target.endswith("/rota.db") for target in fds) <= 6  # the writer and its readers of one image


def test_output_that_is_followed_goes_on_where_it_was(buggy: Buggy, client: rota_package.Client) -> None:
    rota = buggy.rota
    gate, read = rota.work / "followed", rota.work / "followed.out"
    (job,) = add_new(client, [f"echo before; {_gated(gate, 'echo after')}"])
    (held,) = add_new(client, ["true"], after=[job])
    wait_until(lambda: client.job(job).state == "running", "it runs")
    with read.open("wb") as file:
        following = rota.popen("logs", "-f", str(job), stdout=file)
        wait_until(lambda: read.read_text() == "before\n", "its first line is printed")
        for _twice in range(2):
            buggy.meets("JobsHeld after")
            client.hold(held)
            client.release(held)
            assert buggy.left == []
            buggy.rota.ok("manager", "resume")
        gate.touch()
        assert following.wait(60) == 0
    assert read.read_text() == "before\nafter\n"


def test_a_command_inside_a_job_is_not_said_to_be_undone(buggy: Buggy, client: rota_package.Client) -> None:
    (job,) = add_new(client, [_FOREVER])
    (held,) = add_new(client, ["true"], after=[job])
    wait_until(lambda: client.job(job).state == "running", "it runs")
    begun = buggy.rota.work / "begun"
    inside = buggy.rota.popen(
        "exec", str(job), "--", "sh", "-c", f"touch {begun}; {_FOREVER}", stderr=subprocess.PIPE
    )
    wait_until(begun.exists, "the command has begun")
    buggy.meets("JobsHeld after")
    client.hold(held)
    _out, said = inside.communicate(timeout=60)
    assert (inside.returncode, said) == (
        4,
        b"rota: the connection to the manager was lost; see 'rota manager status'\n",
    )
    client.kill(job, held)


def test_a_client_of_the_gateway_keeps_its_connection_and_gets_its_answer(
    buggy: Buggy, client: rota_package.Client
) -> None:
    rota = buggy.rota
    (job,) = add_new(client, ["true"], after=add_new(client, [_gated(rota.work / "never")]))
    url = client.manager_status().http
    assert url is not None
    wait_until(lambda: _answers(url), "the gateway answers")
    gateway, generation = _gateways_of(rota.manager_pid()), buggy.generation()
    http = HTTPConnection(url.removeprefix("http://"), timeout=60)
    http.connect()
    socket = http.sock
    buggy.meets("JobsHeld after")
    for action in "hold", "release":
        assert _act(buggy, http, action, job) == {"changed": 1}
        assert http.sock is socket  # it is never cut
    assert (buggy.left, buggy.generation()) == ([], generation + 1)
    assert _gateways_of(rota.manager_pid()) == gateway
    os.kill(gateway[0], signal.SIGKILL)
    http.close()
    wait_until(lambda: _gateways_of(rota.manager_pid()) not in ([], gateway), "it is started again")
    wait_until(lambda: _answers(url), "the gateway is back at its address")
    client.kill("all")


def _act(buggy: Buggy, http: HTTPConnection, action: str, job: int) -> dict[str, int]:
    token = (buggy.rota.home / "tokens" / "admin.token").read_text().strip()
    headers = {"authorization": f"Bearer {token}", "content-type": "application/json"}
    http.request("POST", "/api/v1/jobs/actions", json.dumps({"action": action, "select": [str(job)]}), headers)
    answer = json.loads(http.getresponse().read())
    return {"changed": answer["changed"]} if "changed" in answer else answer


def _gateways_of(pid: int) -> list[int]:
    children = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in children if b"rota.api" in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_what_meets_a_bug_again_is_not_decided_any_more(buggy: Buggy, client: rota_package.Client) -> None:
    jobs = add_new(client, [_FOREVER, _FOREVER])
    buggy.meets("JobsKilled after", "JobsKilled after")
    with pytest.raises(Bug, match="a bug in the manager keeps it from doing this"):
        client.kill(jobs[0])
    assert buggy.left == []
    before = buggy.generation()
    with pytest.raises(Bug):
        client.kill(jobs[0])
    client.kill(jobs[1])
    assert buggy.generation() == before
    buggy.rota.ok("manager", "resume")
    client.kill(jobs[0])
    wait_until(lambda: {client.job(id).state for id in jobs} == {"cancelled"}, "both are killed")


def test_an_end_that_meets_bugs_is_kept_and_shown(buggy: Buggy, client: rota_package.Client) -> None:
    rota = buggy.rota
    gate = rota.work / "end"
    (job,) = add_new(client, [_gated(gate, "echo printed; exit 3")], retries=0)
    wait_until(lambda: client.job(job).state == "running", "it runs")
    buggy.meets("end_attempt before", "end_attempt before")
    gate.touch()
    wait_until(lambda: rota.state(job) == "failed", "it is given up")
    assert buggy.left == []
    shown = rota.json("show", str(job))
    assert (shown["reason"]["code"], shown["exit_code"]) == ("lost", 3)
    assert "a report that the manager could not decide" in rota.ok("show", str(job))
    assert rota.ok("logs", str(job)) == "printed\n"
    assert rota.ok("run", "--", "echo", "more") == "more\n"


def test_a_start_that_meets_bugs_is_known_and_its_job_completes(buggy: Buggy, client: rota_package.Client) -> None:
    gate = buggy.rota.work / "start"
    buggy.meets("start_attempt after", "start_attempt after")
    (job,) = add_new(client, [_gated(gate)], retries=0)
    wait_until(lambda: buggy.left == [] and client.job(job).state == "running", "it is known to run")
    assert buggy.places() == ["RunnerReported"] * 2
    assert client.manager_status().safe_mode is None
    gate.touch()
    wait_until(lambda: client.job(job).state == "complete", "it completes")


def test_a_frozen_job_comes_back_as_soon_as_the_manager_is_resumed(
    buggy: Buggy, client: rota_package.Client
) -> None:
    rota, gate = buggy.rota, buggy.rota.work / "frozen"
    (job,) = add_new(client, [_gated(gate)], retries=0)
    wait_until(lambda: client.job(job).state == "running", "it runs")
    buggy.meets("end_attempt before", "end_attempt before", "EntrySetAside before")
    gate.touch()
    wait_until(lambda: _frozen(client) == [job], "it is left out")
    pid, generation = rota.manager_pid(), buggy.generation()
    rota.ok("manager", "resume")
    wait_until(lambda: client.job(job).state in ("failed", "complete"), "it is back")
    # Its runner may have been told to forget it by then, or tells its end again.
    assert client.job(job).state == "complete" or client.job(job).reason.code == "lost"
    assert _frozen(client) == []
    assert (rota.manager_pid(), buggy.generation()) == (pid, generation + 1)


def _frozen(client: rota_package.Client) -> list[int]:
    bugs = client.manager_status().bugs
    return [] if bugs is None else bugs.frozen


def test_bugs_outside_of_requests_mean_safe_mode(buggy: Buggy, client: rota_package.Client) -> None:
    rota = buggy.rota
    buggy.meets("grant_leases before", "grant_leases before")
    wait_until(lambda: buggy.left == [], "both are met")
    (job,) = add_new(client, ["true"])
    wait_until(lambda: [each.code for each in client.why(job).reasons][:1] == ["bug"], "the bug is the reason")
    assert "nothing starts because of a bug" in rota.ok("status")
    assert '"ok": false' in rota.rota("doctor", "--quick", "--json").stdout.replace('"ok":false', '"ok": false')
    rota.ok("manager", "resume")
    wait_until(lambda: client.job(job).state == "complete", "it runs after all")


def test_bugs_that_change_nothing_are_counted_and_the_manager_goes_on(
    buggy: Buggy, client: rota_package.Client
) -> None:
    (job,) = add_new(client, ["true"])
    generation = buggy.generation()
    buggy.meets("SendReply before")
    with pytest.raises(Bug, match="could not be sent"):
        client.hold(job)
    for bug, ask in ("act before", lambda: client.hold(job)), ("answer before", lambda: client.job(job)):
        buggy.meets(bug)
        with pytest.raises(Bug, match="nothing was done") as refused:
            ask()
        assert refused.value.code == "internal"
    buggy.meets("tick before")
    wait_until(lambda: len(buggy.places()) == 4, "what is done every second meets it")
    places = {"effect SendReply", "request Act", "request Show", "every second: features"}
    assert set(buggy.places()) == places
    assert buggy.generation() == generation
    assert "every second: features" in buggy.rota.ok("manager", "status")
    assert client.job(job).id == job


def test_a_manager_that_drains_goes_on_draining(buggy: Buggy, client: rota_package.Client) -> None:
    (runs,) = add_new(client, [_FOREVER])
    wait_until(lambda: client.job(runs).state == "running", "it runs")
    client.drain_manager()
    buggy.meets("JobsHeld before")
    (waits,) = add_new(client, ["true"])
    client.hold(waits)
    assert buggy.left == []
    assert client.manager_status().draining
    client.resume_manager()  # or it would stop
    client.kill(runs)


def test_a_recovery_that_fails_once_is_tried_again_and_one_that_fails_twice_says_why(tmp_path: Path) -> None:
    with deployment(tmp_path) as rota:
        buggy = Buggy(rota, tmp_path / "bugs.txt")
        buggy.meets("recover before")
        assert buggy.start().returncode == 0
        assert buggy.left == []
        rota.ok("manager", "stop")
        buggy.meets("recover before", "recover before")
        failed = buggy.start()
        assert failed.returncode != 0
        assert "injected before recover" in failed.stderr


def test_however_it_was_started_it_starts_anew_unless_another_version_is_installed(tmp_path: Path) -> None:
    with deployment(tmp_path / "a home ü") as rota:
        buggy, cwd = Buggy(rota, tmp_path / "bugs.txt"), tmp_path / "cwd"
        cwd.mkdir()
        python = os.path.relpath(sys.executable, cwd)
        home = os.path.relpath(rota.home, cwd)
        words = ["sh", "-c", 'exec "$@" <&- >&- 2>&-', "sh", python, "-m", "rota.manager", "--home", home]
        manager = subprocess.Popen(words, cwd=cwd, env=buggy.env)
        wait_until(lambda: (rota.home / "manager.json").exists(), "it listens")
        cwd.rmdir()
        with rota.client() as client:
            (job,) = add_new(client, [_FOREVER])
            buggy.meets("JobsHeld before")
            client.hold(job)
            assert client.manager_status().generation == 2
            buggy.meets("JobsReleased before", "version")
            with pytest.raises(RotaError):
                client.release(job)
        assert manager.wait(60) == 70
        assert not (rota.home / "manager.json").exists()


def _answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=5) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def _zombies_of(pid: int) -> list[int]:
    children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    return [int(child) for child in children if not is_alive(int(child))]
