"""A lab for tests: three machines that are hosts of their own, jobs that take one whole, and gangs."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rota.wire.gang_views import GangView
from tests.cluster import mark as marks
from tests.cluster.cluster import ENDED, Cluster
from tests.cluster.hosts import Host
from tests.deployment import add_new

HOLDING = {"scheduled", "starting", "running", "finishing", "suspended", "lost"}


def on(*hosts: str) -> dict[str, Any]:
    """The fields of a job that takes one of these machines whole."""
    names = ", ".join(f"'{host}'" for host in hosts)
    return {"request": [f"{{host in ({names})}}/host=1,walltime=10m"]}


class Lab(Cluster):
    """Jobs here are witnessed, take whole machines, and run until their gate is opened."""

    def __init__(self, top: Path, **settings: str) -> None:
        super().__init__(top, hosts=3, **settings)
        self._gates = 0

    def gate(self) -> Path:
        """A file that is not there yet."""
        self._gates += 1
        return self.work / f"gate-{self._gates}"

    def job(self, *hosts: str, gate: Path | None = None, **fields: Any) -> int:
        """A job for one of these machines; without a gate it ends at once."""
        return self.add(_until(gate), **on(*hosts), **fields)

    def gang(self, name: str, *machines: str, gate: Path | None = None, **fields: Any) -> list[int]:
        """A gang with a member for each of these machines (`n1`, or `n1,n2` for one of them)."""
        members = [
            {"cmd": self.witness.command(_until(gate)), "name": f"m{place}", **on(*hosts.split(","))}
            for place, hosts in enumerate(machines)
        ]
        given = {"gang": name, "retries": 0, "backoff": "0s", "cwd": str(self.work), "env": self.env, **fields}
        with self.client() as client:
            ids = add_new(client, members, **given)
        self.retries |= dict.fromkeys(ids, given["retries"])
        return ids

    def gang_now(self, name: str) -> GangView:
        with self.client() as client:
            return client.gang(name)

    def is_whole(self, name: str) -> bool:
        """Whether all members that have not ended hold machines; asserts that otherwise none does."""
        states = [member.state for member in self.gang_now(name).members if member.state not in ENDED]
        holding = [state in HOLDING for state in states]
        assert all(holding) or not any(holding), f"gang {name} holds a part of its machines: {states}"
        return bool(holding) and all(holding)

    def until_ended(self, name: str) -> list[str]:
        """Wait until all members have ended, and look meanwhile that none holds anything alone; their states."""

        def ended() -> bool:
            members = self.gang_now(name).members
            states = [each.state for each in members]
            waiting = [state for state in states if state not in ENDED | HOLDING]
            holding = [
                state for state in states if state in HOLDING - {"finishing", "lost"}
            ]  # those are being ended
            assert not (waiting and holding), f"gang {name} holds a part of its machines: {states}"
            return all(each.state in ENDED for each in members)

        self.wait(ended, f"gang {name} has ended")
        return [member.state for member in self.gang_now(name).members]

    def hosts_of(self, name: str) -> list[str]:
        return [host for member in self.gang_now(name).members for host in member.hosts]

    def set(self, *hosts: str, **fields: Any) -> None:
        with self.client() as client:
            client.set_machines(*hosts, **fields)

    def until_free(self) -> None:
        """Wait until no machine is taken by anything."""
        with self.client() as client:
            self.wait(lambda: all(node.usage == "idle" for node in client.nodes()), "all machines are idle")

    @contextlib.contextmanager
    def still_manager(self) -> Iterator[None]:
        """The manager stands still meanwhile: what happens is handled together, afterwards."""
        pid = self.manager_pid()
        os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(pid, signal.SIGCONT)

    def restart_killed(self) -> None:
        self.kill_manager()
        self.start()

    def named(self, name: str) -> Host:
        return next(host for host in self.hosts if host.name == name)

    def clear(self) -> None:
        super().clear()
        for host in self.hosts:
            self.until_node(host, "alive")
        names = [host.name for host in self.hosts]
        self.set(*names, condition="automated", provision_cmd="")
        self.until_free()


def _until(gate: Path | None) -> str:
    return "true" if gate is None else f"until test -e {gate}; do sleep 0.05; done"


@contextlib.contextmanager
def lab_of(top: Path, **settings: str) -> Iterator[Lab]:
    """A lab whose machines are up; it is gone at the end."""
    if os.geteuid() != 0:
        pytest.skip("only root may make hosts of namespaces")
    assert shutil.which("ip"), "these tests need ip: sudo apt-get install iproute2"
    marks.sweep()
    made = Lab(top, **settings)
    try:
        made.up()
        yield made
        made.judge()
    finally:
        made.close()
