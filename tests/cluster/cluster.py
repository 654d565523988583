"""A deployment on several hosts: a manager on the head, and agents that connect to it over the network."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rota.errors import RotaError
from rota.wire.sums import NodeView
from rota.wire.views import JobView
from tests.cluster import mark as marks
from tests.cluster.hosts import Host, Process, begin, end
from tests.cluster.network import HEAD, Network
from tests.cluster.witness import Witness
from tests.deployment import ROTA, Deployment, add_new, is_alive, wait_until

CORES = 2
PORT = 7600
#: Countdowns that a test can wait for, and that a busy machine does not break.
SHORT = {"touch_s": "0.3s", "lost_after": "3s", "grace": "1s", "local": "off"}
ENDED = {"complete", "failed", "cancelled"}
_HEAD = "echo head > /proc/sys/kernel/hostname; echo up; exec sleep 86400"


class Cluster(Deployment):
    """The commands of a user are typed on the head."""

    def __init__(self, top: Path, *, hosts: int, **settings: str) -> None:
        super().__init__(top, host=HEAD, port=str(PORT), **(SHORT | settings))
        self._mark = marks.new_mark()
        self.env |= {marks.VARIABLE: self._mark}
        self._head, head = begin(["--net", "--uts"], ["sh", "-c", _HEAD], mark=self._mark, log=top / "head.log")
        self._head_pid = head
        self.before = ["nsenter", "--target", str(head), "--net", "--uts"]
        self.namespaces = [f"/proc/{head}/ns/net", f"/proc/{head}/ns/uts"]
        self.witness = Witness(top / "witness", cores=CORES)
        network = Network(head)
        self.hosts = [
            Host(top / "hosts" / f"n{number}", mark=self._mark, number=number, network=network)
            for number in range(1, hosts + 1)
        ]
        self.retries: dict[int, int] = {}  #: of every job that was added
        self._token = top / "token"
        self.agents: dict[str, Process] = {}

    def close(self) -> None:
        super().close()
        for host in self.hosts:
            host.crash()
        end(self._head, self._head_pid)
        marks.remove({self._mark})

    # -------------------------------------------------------------- the manager

    def kill_manager(self) -> None:
        pid = self.manager_pid()
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), "the manager is gone")

    # -------------------------------------------------------------- agents

    def up(self) -> None:
        """Manager, hosts and agents, all of them known to each other."""
        self.start()
        self.ok("manager", "token", "add", "nodes", "--role", "runner", "--out", str(self._token))
        for host in self.hosts:
            self.boot(host)
        for host in self.hosts:
            self.until_node(host, "alive")

    def start_agent(self, host: Host) -> None:
        options = f"--manager {HEAD}:{PORT} --cores {CORES}".split()
        options += ["--token", str(self._token), "--dir", str(host.directory / "agent")]
        env = {key: value for key, value in self.env.items() if not key.startswith("ROTA_")}
        with (host.directory / "agent.log").open("ab") as log:
            argv = [ROTA, "node", "run", *options]
            self.agents[host.name] = host.popen(*argv, env=env, stdout=log, stderr=subprocess.STDOUT)

    def kill_agent(self, host: Host) -> None:
        self.agents.pop(host.name).kill_and_wait()

    def launchers_on(self, host: Host) -> list[int]:
        """The launchers there, with their pids on this machine."""
        found = []
        for pid in host.pids():
            with contextlib.suppress(OSError):
                if b"rota.launcher" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0"):
                    found.append(pid)
        return found

    def kill_launchers(self, host: Host) -> None:
        for pid in self.launchers_on(host):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    def kill_agent_and_launchers(self, host: Host) -> None:
        """As `kill -9 -1` does: what runs there is known to no process any more."""
        agent = self.agents[host.name]
        agent.signal(signal.SIGSTOP)  # it must not start another
        self.kill_launchers(host)
        self.kill_agent(host)

    @contextlib.contextmanager
    def stopped_agent(self, host: Host) -> Iterator[None]:
        """The agent stands still meanwhile, its jobs do not."""
        agent = self.agents[host.name]
        agent.signal(signal.SIGSTOP)
        try:
            yield
        finally:
            agent.signal(signal.SIGCONT)

    def crash(self, host: Host) -> None:
        """Everything on it dies."""
        host.crash()
        if agent := self.agents.pop(host.name, None):
            agent.wait(timeout=60)

    def boot(self, host: Host) -> None:
        """Its agent is started as a system would do it."""
        host.boot()
        self.start_agent(host)

    def reboot(self, host: Host) -> None:
        self.crash(host)
        self.boot(host)

    def commands_on(self, host: Host) -> list[str]:
        """What runs there."""
        found = []
        for pid in host.pids():
            with contextlib.suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_bytes().rstrip(b"\0").split(b"\0")
                found.append(b" ".join(words).decode(errors="replace"))
        return found

    # -------------------------------------------------------------- what is known

    def wait(self, condition: Callable[[], Any], what: str, *, seconds: float = 60) -> None:
        """Wait for something that must happen; else say what everybody has to say."""
        try:
            wait_until(condition, what, seconds=seconds)
        except AssertionError as error:
            raise AssertionError(f"{error}{self._unfinished()}{self.logs()}") from None

    def _unfinished(self) -> str:
        try:
            with self.client() as client:
                jobs = [job for job in client.jobs(limit=100_000).jobs if job.state not in ENDED]
                nodes = [(node.host, node.state, node.jobs) for node in client.nodes()]
        except RotaError as error:
            return f"\n{error}"
        return "".join(f"\njob {job.id} is {job.state} on {job.host}: {job.reason}" for job in jobs) + f"\n{nodes}"

    def node(self, host: Host) -> NodeView | None:
        """As the manager sees it."""
        with self.client() as client:
            return next((node for node in client.nodes() if node.host == host.name), None)

    def until_node(self, host: Host, state: str) -> None:
        def reached() -> bool:
            node = self.node(host)
            return node is not None and node.state == state

        self.wait(reached, f"{host.name} is {state}")

    def until(self, job: int, *states: str) -> None:
        self.wait(lambda: self.state(job) in states, f"job {job} is {' or '.join(states)}")

    def add(self, body: str, **fields: Any) -> int:
        """A witnessed job; its id."""
        (job,) = self.add_all([body], **fields)
        return job

    def add_all(self, bodies: list[str], **fields: Any) -> list[int]:
        """Many witnessed jobs at once; their ids."""
        fields = {"retries": 3, "backoff": "0s", **fields}
        jobs = self.put([self.witness.command(body) for body in bodies], **fields)
        self.retries |= dict.fromkeys(jobs, fields["retries"])
        return jobs

    def put(self, commands: list[str], **fields: Any) -> list[int]:
        """Jobs that nobody looks at."""
        fields = {"cwd": str(self.work), "env": self.env, **fields}
        with self.client() as client:
            return add_new(client, commands, **fields)

    def all_ended(self) -> bool:
        with self.client() as client:
            return set(client.status().counts) <= ENDED

    def clear(self) -> None:
        """End what is left of a test, and make whole what it broke."""
        for host in self.hosts:
            if not host.is_up:
                self.boot(host)
            elif host.name not in self.agents:
                self.start_agent(host)
        left = [job for job, state in self.states().items() if state not in ENDED]
        if left:
            self.kill(*left)
            self.wait(self.all_ended, "what is left has ended")

    def judge(self) -> None:
        """What Rota says of all jobs that were added here agrees with what they saw."""
        self.witness.judge(self.states(), retries=self.retries)

    def running(self, body: str, **fields: Any) -> int:
        """A witnessed job, once it executes and the manager knows."""
        job = self.add(body, **fields)
        self.wait(lambda: self.state(job) == "running" and self.witness.of(job), f"job {job} runs")
        return job

    def shown(self, job: int) -> JobView:
        with self.client() as client:
            return client.job(job)

    def story(self, job: int) -> list[str]:
        """What happened to it, by the names of events."""
        return [line.event for line in self.shown(job).story]

    def outcomes(self, job: int) -> list[tuple[str, str | None]]:
        attempts = self.shown(job).attempts
        assert isinstance(attempts, list)
        return [(each.state, each.reason.code if each.reason is not None else None) for each in attempts]

    def kill(self, *jobs: int) -> None:
        with self.client() as client:
            client.kill(*jobs)

    def on(self, host: Host, *, cores: int = 1) -> list[str]:
        """The request of a job that runs there."""
        return [f"{{host='{host.name}'}}/core={cores}"]

    def host_of(self, job: int) -> Host:
        """Where it last began."""
        name = self.witness.hosts(job)[-1]
        return next(host for host in self.hosts if host.name == name)

    def logs(self) -> str:
        text = super().logs()
        for host in self.hosts:
            for path in (host.directory / "agent.log", *host.directory.glob("agent/*.log")):
                with contextlib.suppress(OSError):
                    text += f"\n--- {host.name} {path.name}\n{path.read_text()[-2000:]}"
        return text


@contextlib.contextmanager
def cluster(top: Path, *, hosts: int = 4, **settings: str) -> Iterator[Cluster]:
    """A cluster that is gone at the end, whatever happened."""
    if os.geteuid() != 0:
        pytest.skip("only root may make hosts of namespaces")
    assert shutil.which("ip"), "these tests need ip: sudo apt-get install iproute2"
    marks.sweep()
    made = Cluster(top, hosts=hosts, **settings)
    try:
        yield made
    finally:
        made.close()
