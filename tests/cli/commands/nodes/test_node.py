"""`rota node`: hosts and the limits that each of them has."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.deployment import ROTA, Deployment, is_alive, wait_until

#: Instead of ssh: what it is told to run there it runs here.
_HERE = """\
[ "$1" = -- ] && [ $# = 3 ] || exit 99
exec sh -c "$3"
"""


def nodes(made: Deployment) -> Any:
    return json.loads(made.ok("node", "list", "--json"))["nodes"]


def test_a_host_s_own_limit_keeps_jobs_apart_there(shared: Deployment) -> None:
    host = socket.gethostname()
    wait_until(lambda: nodes(shared), "the runner is connected")
    assert shared.ok("node", "set", host, "--limit", "bigmem:1") == f"{host}: bigmem:1\n"
    first, second = (
        shared.json("add", "--limit", "bigmem", "--cpus", "0.1", "--", "sleep", "100")["added"][0]
        for _ in range(2)
    )
    wait_until(lambda: shared.states(str(first)) == {first: "running"}, "the first one runs")
    (node,) = nodes(shared)
    assert node["limits"] == {"bigmem": {"capacity": 1, "used": 1}}
    assert shared.ok("node", "list").splitlines()[1].split()[:2] == [host, "alive"]
    assert [each["code"] for each in shared.json("why", str(second))["reasons"]] == ["limit"]
    shared.ok("node", "set", host, "--limit", "bigmem:2")
    wait_until(lambda: shared.states(str(second)) == {second: "running"}, "the second one runs")
    shared.ok("kill", str(first), str(second))


def test_a_reason_is_shown_until_the_host_is_set_again(shared: Deployment) -> None:
    host = socket.gethostname()
    wait_until(lambda: nodes(shared), "the runner is connected")
    shared.ok("node", "set", host, "--drain", "--reason", "new disks on Monday")
    assert shared.ok("node", "list").splitlines()[1].endswith("new disks on Monday")
    assert "because     new disks on Monday" in shared.ok("node", "show", host)
    assert "note  nodes: 0 of 1 may be used now, with 0 cores" in shared.rota("doctor").stdout
    shared.ok("node", "set", host, "--no-drain")
    assert [each["why"] for each in nodes(shared)] == [""]
    done = shared.rota("node", "set", host, "--drain", "--reason", "x" * 201)
    assert done.returncode == 2
    assert [each["drain"] for each in nodes(shared)] == [False]


def test_a_change_that_endangers_a_reservation_says_so(shared: Deployment) -> None:
    host = socket.gethostname()
    wait_until(lambda: nodes(shared), "the runner is connected")
    (booked,) = shared.json("add", "-r", "now+1h", "-l", "core=1,walltime=1m", "--", "true")["added"]
    said = shared.rota("node", "set", host, "--drain").stderr
    assert f"the reservation of job {booked} is in danger: {host} is drained" in said
    assert "danger" not in shared.rota("node", "set", host, "--no-drain").stderr
    shared.ok("kill", str(booked))


def test_a_host_that_may_not_be_used_now_is_shown_as_closed(shared: Deployment) -> None:
    host = socket.gethostname()
    wait_until(lambda: nodes(shared), "the runner is connected")
    said = shared.ok("node", "set", host, "--available-until", "2020-01-01T08:00")
    assert said == f"changed 1 node; {host} may not be used any more, since that time is over\n"
    wait_until(lambda: [each["usable"] for each in nodes(shared)] == [False], "it may not be used")
    assert shared.ok("node", "list").splitlines()[1].split()[:3] == [host, "alive,", "closed"]
    assert "state       alive, closed" in shared.ok("node", "show", host)
    assert "note  nodes: 0 of 1 may be used now, with 0 cores" in shared.rota("doctor").stdout
    assert shared.ok("node", "set", host, "--available-until", "never") == "changed 1 node\n"
    wait_until(lambda: [each["usable"] for each in nodes(shared)] == [True], "it may be used again")


def test_a_host_that_is_not_there_cannot_be_set(shared: Deployment) -> None:
    for change in (["--limit", "x:1"], ["--drain"]):
        done = shared.rota("node", "set", "nowhere", *change)
        assert done.returncode == 3
        assert done.stderr == "rota: there is no host 'nowhere'; list them with 'rota node list'\n"


def test_a_host_s_limit_needs_a_number(shared: Deployment) -> None:
    done = shared.rota("node", "set", socket.gethostname(), "--limit", "x@22:00-06:00")
    assert done.returncode == 2
    assert "needs a number of units" in done.stderr


# ------------------------------------------------------------------ agents that are started


class Agents:
    """Agents on this very host, with names of their own, as `rota node add` starts them."""

    def __init__(self, made: Deployment, top: Path) -> None:
        self.made = made
        self.top = top
        self.manager = wait_until(lambda: made.json("manager", "status")["address"], "it listens")
        (top / "here").write_text(_HERE)

    def add(self, *words: str, ssh: str = "") -> subprocess.CompletedProcess[str]:
        options = ["--manager", self.manager, "--rota", ROTA, "--dir", str(self.top / "agents")]
        return self.made.rota("node", "add", "--ssh", ssh or f"sh {self.top}/here", *options, *words)

    def tokens(self, host: str) -> list[str]:
        with self.made.client() as client:
            return [each.name for each in client.tokens() if each.host == host]

    def connected(self, host: str) -> bool:
        return any(each["host"] == host and each["connected"] for each in nodes(self.made))

    def stop(self, host: str) -> None:
        (pid,) = (each["pid"] for each in nodes(self.made) if each["host"] == host)
        os.kill(pid, signal.SIGTERM)
        wait_until(lambda: not is_alive(pid) and not self.connected(host), "the agent has left")


@pytest.fixture
def agents(shared: Deployment, tmp_path: Path) -> Agents:
    return Agents(shared, tmp_path)


def test_a_host_gets_a_new_token_and_loses_the_old_one_only_when_its_new_agent_is_there(agents: Agents) -> None:
    done = agents.add("desk")
    assert (done.returncode, done.stdout) == (0, "desk: joined\n"), done.stderr
    first = agents.tokens("desk")
    assert len(first) == 1
    pass_file = agents.top / "agents" / "desk" / "pass"
    kept = pass_file.read_bytes()

    refused = agents.add("desk")
    assert refused.returncode == 1
    assert "desk: its agent is connected already" in refused.stderr
    assert "--again" in refused.stderr
    # Neither where the host cannot be entered, nor where the agent that is there keeps another from starting.
    for ssh in ("false", ""):
        failed = agents.add("desk", "--again", ssh=ssh)
        assert failed.returncode == 1
        assert agents.tokens("desk") == first
        assert pass_file.read_bytes() == kept
        assert agents.connected("desk")
    assert "an agent runs here already" in failed.stderr

    agents.stop("desk")
    started = agents.add("desk", "--no-wait")
    assert (started.returncode, started.stdout) == (0, "desk: started\n")
    second = agents.tokens("desk")
    assert len(second) == 1
    assert second != first
    assert pass_file.read_bytes() != kept
    wait_until(lambda: agents.connected("desk"), "the second agent has joined")
    agents.stop("desk")
    agents.made.ok("node", "remove", "desk")
    assert agents.tokens("desk") == []


def test_jobs_know_their_node_and_lists_name_it_where_there_are_several(agents: Agents) -> None:
    made, own = agents.made, socket.gethostname()
    agents.add("desk")
    there = made.json("add", "-l", "{host='desk'}/core=1,walltime=1m", "--", 'echo "on $ROTA_NODE"')["added"][0]
    here = made.json("add", "-l", f"{{host='{own}'}}/core=1,walltime=1m", "--", 'echo "on $ROTA_NODE"')["added"][0]
    made.ok("wait", str(there), str(here))
    assert made.ok("logs", str(there)) == "on desk\n"
    assert made.ok("logs", str(here)) == f"on {own}\n"
    head, *lines = (line.split() for line in made.ok("jobs", str(there), str(here)).splitlines())
    assert [line[head.index("HOST")] for line in lines] == ["desk", own]
    assert "HOST" not in made.ok("jobs", str(here)).split(), "all of it is on this machine"
    agents.stop("desk")
    made.ok("node", "remove", "desk")


def test_when_one_of_two_agents_on_a_machine_dies_both_parts_of_a_job_go_on(agents: Agents) -> None:
    made = agents.made
    agents.add("desk", "lamp")
    words = ["-l", "nodes=2/core=1,walltime=10m", "-p", "host='desk' or host='lamp'", "--", "sleep", "500"]
    job = made.json("add", *words)["added"][0]
    wait_until(lambda: made.state(job) == "running", "it runs")
    first, other = made.json("show", str(job))["hosts"]
    (pid,) = (each["pid"] for each in nodes(made) if each["host"] == other)
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not agents.connected(other), "its agent is gone")
    agents.add(other)
    wait_until(lambda: made.rota("exec", str(job), "--node", other, "--", "true").returncode == 0, "it is back")
    assert made.ok("exec", str(job), "--node", first, "--", "sh", "-c", "echo $ROTA_NODE").strip() == first
    assert made.state(job) == "running"
    assert f"everything of it on {other} has ended" not in made.ok("show", str(job))
    made.ok("kill", str(job))
    made.rota("wait", str(job))
    for host in (first, other):
        agents.stop(host)
        made.ok("node", "remove", host)


def test_a_property_that_an_agent_announces_is_one_of_its_resources(agents: Agents) -> None:
    made = agents.made
    agents.add("desk", "--option", "--cores 2 --property fast=yes")

    def resources() -> list[int]:
        found = made.json("property", "list")["properties"]
        return [each["resources"] for each in found if each["property"] == "fast"]

    assert resources() == [2]
    made.ok("property", "remove", "fast")
    assert resources() == []
    agents.stop("desk")
    made.ok("node", "remove", "desk")


def test_the_path_of_the_program_is_not_read_by_the_shell_of_a_host(agents: Agents) -> None:
    odd = "x'\"$(touch " + str(agents.top / "harm") + ")`id`"
    done = agents.add("desk", "--rota", odd)
    assert done.returncode == 1
    assert f"desk: there is no {odd} on this host" in done.stderr
    assert not (agents.top / "harm").exists()
    assert agents.tokens("desk") == []


def test_what_ssh_says_may_be_no_utf_8(agents: Agents) -> None:
    (agents.top / "odd").write_text("printf 'caf\\351\\n' >&2; exit 255\n")
    done = agents.add("desk", ssh=f"sh {agents.top}/odd")
    assert (done.returncode, done.stderr) == (1, "rota: desk: caf\ufffd\n")


def test_an_agent_that_is_never_let_in_ends_and_says_why(agents: Agents) -> None:
    made, out = agents.made, agents.top / "old.pass"
    made.ok("manager", "token", "add", "old", "--role", "runner", "--out", str(out))
    made.ok("manager", "token", "remove", "old")
    words = ["--manager", agents.manager, "--token", str(out), "--dir", str(agents.top / "old"), "--name", "old"]
    done = made.rota("node", "run", *words)
    assert done.returncode == 1
    last = done.stderr.splitlines()[-2]
    assert last.endswith(
        "the manager refuses this node: this token is not accepted; get one with 'rota manager token add'"
    )


def test_of_many_agents_that_begin_together_in_one_directory_one_stays(agents: Agents) -> None:
    made, out = agents.made, agents.top / "one.pass"
    made.ok("manager", "token", "add", "one", "--role", "runner", "--host", "one", "--out", str(out))
    words = ["--manager", agents.manager, "--token", str(out), "--dir", str(agents.top / "one"), "--name", "one"]
    begun = [made.popen("node", "run", *words, stderr=subprocess.PIPE) for _ in range(4)]
    try:
        wait_until(lambda: agents.connected("one"), "one has joined")
        wait_until(lambda: sum(each.poll() is None for each in begun) == 1, "the others have ended")
        for each in begun:
            if each.poll() is not None:
                assert b"runs here already" in each.communicate()[1]
        (last,) = (each for each in begun if each.poll() is None)
        made.ok("node", "remove", "one")
        assert last.wait(timeout=60) == 0
        assert b"node 'one' was removed by" in last.communicate()[1]
    finally:
        for each in begun:
            each.kill()
            each.wait()


def test_a_node_whose_agent_would_come_back_is_not_removed(agents: Agents) -> None:
    made, out = agents.made, agents.top / "any.pass"
    made.ok("manager", "token", "add", "any", "--role", "runner", "--out", str(out))
    options = ["--manager", agents.manager, "--token", str(out), "--dir", str(agents.top / "any")]
    with made.popen("node", "run", "--name", "loose", *options, stderr=subprocess.DEVNULL):
        wait_until(lambda: agents.connected("loose"), "it has joined")
        refused = made.rota("node", "remove", "loose")
        assert refused.returncode == 2
        assert "the agent of loose is connected with a token that is good for any node" in refused.stderr
        assert agents.connected("loose")
        agents.stop("loose")
    made.ok("node", "remove", "loose")
    assert all(each["host"] != "loose" for each in nodes(made))
    made.ok("manager", "token", "remove", "any")


def test_a_unit_has_one_line_for_each_directive(agents: Agents) -> None:
    out = agents.top / "unit.pass"
    agents.made.ok("manager", "token", "add", "unit", "--role", "runner", "--out", str(out))
    words = ["node", "run", "--manager", agents.manager, "--token", str(out), "--print-unit", "--name", "n1"]
    unit = agents.made.ok(*words, "--dir", "/srv/a b").splitlines()
    assert {"Delegate=yes", "DelegateSubgroup=agent", "KillMode=process", "KillSignal=SIGUSR1"} <= set(unit)
    refused = agents.made.rota(*words, "--dir", "/srv/a\nExecStartPre=/bin/harm")
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "cannot stand in a unit" in refused.stderr
    agents.made.ok("manager", "token", "remove", "unit")


@pytest.mark.parametrize(
    ("words", "instead"), [(["run", "-I"], "rota run -- CMD"), (["connect", "1"], "rota exec ID -- CMD")]
)
def test_a_shell_needs_a_terminal(shared: Deployment, words: list[str], instead: str) -> None:
    before = shared.states()
    done = shared.rota(*words)
    assert done.returncode == 2
    assert "this is not a terminal" in done.stderr
    assert instead in done.stderr
    assert shared.states().keys() == before.keys()
