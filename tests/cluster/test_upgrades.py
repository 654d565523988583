"""Agents and the manager are stopped or killed, and started again as an upgrade does it: no job notices."""

from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from tests.cluster.cluster import Cluster, cluster
from tests.deployment import ROTA
from tests.typist import typing_in

_UNTIL = "echo one; while ! test -e {name}; do sleep 0.05; done; echo two"


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """The manager's own host works too."""
    top = tmp_path_factory.mktemp("upgrades")
    with cluster(top, hosts=2, local="on", cores="1", interactive_grace="60s") as made:
        made.env |= {"SHELL": "/bin/sh", "PS1": "inside> "}
        made.up()
        yield made


def _begin_again(made: Cluster, how: signal.Signals) -> None:
    """All agents and the manager, with nobody there for a moment."""
    agents = [made.agents.pop(host.name) for host in made.hosts]
    for agent in agents:
        agent.signal(how)
        agent.wait(timeout=60)
    if how == signal.SIGKILL:
        made.kill_manager()
    else:
        made.ok("manager", "stop")
    made.start()
    for host in made.hosts:
        made.start_agent(host)


@pytest.mark.parametrize("how", [signal.SIGUSR1, signal.SIGKILL], ids=["upgraded", "killed"])
def test_jobs_of_all_kinds_go_on_when_manager_and_agents_are_started_again(
    made: Cluster, how: signal.Signals
) -> None:
    here, there = made.hosts
    go = f"go-{how}"
    until = _UNTIL.format(name=go)
    jobs = [
        made.running(until, pool="local", retries=0),
        made.running(until, request=made.on(here), retries=0),
        made.running(until, request=["nodes=2/core=1"], retries=0),
    ]
    still = made.running(until, request=made.on(there), retries=0)
    made.ok("suspend", str(still))
    made.until(still, "suspended")
    _begin_again(made, how)
    for job in jobs:
        made.until(job, "running")
    made.until(still, "suspended")
    made.ok("resume", str(still))
    made.until(still, "running")
    (made.work / go).touch()
    for job in [*jobs, still]:
        made.until(job, "complete")
        assert made.outcomes(job) == [("complete", None)]
        assert made.witness.seen(job) == ["start", "end"]
        with made.client() as client:
            assert client.output(job) == b"one\ntwo\n"


def test_a_terminal_goes_on_when_the_agent_of_its_node_is_killed_and_started_again(made: Cluster) -> None:
    host = made.hosts[0]
    argv = [*made.before, ROTA, "run", "-I", "-l", f"{made.on(host)[0]},walltime=10m"]
    with typing_in(argv, env=made.env, cwd=made.work) as typist:
        typist.sees("inside> ")
        typist.type("echo fi''rst\n")
        typist.sees("first")
        made.kill_agent(host)
        made.start_agent(host)
        typist.type("echo sec''ond; exit 5\n")
        typist.sees("second")
        assert typist.ends() == 5
        assert typist.restored
