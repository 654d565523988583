"""What somebody who has the token of one node can do with it: nothing to other hosts, their jobs, their output."""

from __future__ import annotations

import json
import socket
import ssl
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rota.core.attempts.leases import Finished, HeldLease
from rota.core.jobs.outcome import Outcome
from rota.core.output.output_blocks import checksums
from rota.core.output.output_report import OutputReport
from rota.plan.site.node_facts import NodeFacts
from rota.wire import codec
from rota.wire import messages as m
from rota.wire.node_pass import parse
from rota.wire.tls import SERVER_NAME
from tests.deployment import Deployment, deployment, wait_until

FACTS = NodeFacts(cores=2, mem=1 << 30, disk=1 << 30)


class Agent:
    """A connection that says whatever it likes."""

    def __init__(self, rota: Deployment, token_file: Path) -> None:
        self.token, authority = parse(token_file.read_text())
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=authority)
        host, _, port = json.loads((rota.home / "manager.json").read_bytes())["address"].rpartition(":")
        plain = socket.create_connection((host, int(port)), timeout=20)
        self._stream = context.wrap_socket(plain, server_hostname=SERVER_NAME)
        self._reader: codec.Reader[Any] = codec.Reader(m.ToRunner)
        self._heard: list[Any] = []

    def say(self, *messages: m.Message) -> None:
        for message in messages:
            self._stream.sendall(codec.frame(message))

    def hears(self) -> Any:
        """The next message; None when it was hung up on."""
        while not self._heard:
            data = self._stream.recv(1 << 16)
            if not data:
                return None
            self._heard += self._reader.feed(data)
        return self._heard.pop(0)

    def hello(self, host: str) -> Any:
        self.say(m.Hello(m.PROTOCOL, "runner", self.token, "test", host))
        return self.hears()

    def join(self, host: str, **more: Any) -> Any:
        """What is answered to a join in the name of this host."""
        given = {"runner": f"{host}-1-00000001", "node": FACTS, **more}
        self.say(m.Join(host=host, boot_id="b", pid=1, start_time=1, cores=2, mem=1, disk=1, **given))
        return self.hears()

    def close(self) -> None:
        self._stream.close()


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Deployment]:
    """A manager with a host of its own, and the pass of node n2."""
    with deployment(tmp_path_factory.mktemp("site"), cores="2") as made:
        made.start()
        for name, more in {"n2": ["--host", "n2"], "any": []}.items():
            made.ok("manager", "token", "add", name, "--role", "runner", "--out", str(made.work / name), *more)
        yield made


@pytest.fixture
def agent(site: Deployment) -> Iterator[Agent]:
    made = Agent(site, site.work / "n2")
    yield made
    made.close()


def own_host(site: Deployment) -> str:
    return wait_until(
        lambda: next((each["host"] for each in site.json("node", "list")["nodes"] if each["connected"]), None),
        "the manager's own runner has joined",
    )


@pytest.mark.parametrize("host", ["", "n1", "n2x"])
def test_a_token_for_one_host_is_refused_for_others_and_for_none(agent: Agent, host: str) -> None:
    answer = agent.hello(host)
    assert isinstance(answer, m.Failure)
    assert "for the agent of 'n2'" in answer.message


@pytest.mark.parametrize("node", [None, FACTS])
def test_nobody_from_elsewhere_is_the_managers_own_host(site: Deployment, node: NodeFacts | None) -> None:
    agent = Agent(site, site.work / "any")
    host = own_host(site)
    agent.hello(host)
    assert isinstance(agent.join(host, node=node), m.Failure)
    job = site.json("add", "--", "true")["added"][0]
    wait_until(lambda: site.state(job) == "complete", "it ran where it should")
    agent.close()


@pytest.mark.parametrize(
    "more",
    [
        {"runner": "n1-1-00000001"},
        {"runner": ".settling-1"},
        {"runner": ""},
        {"runner": "n2-1-00000001" + "x" * 3_000},
        {"held": [HeldLease(1, 1, 1, 2**63, None, 5)]},
        {"node": NodeFacts(cores=2, mem=1, disk=1, properties={"a\nb": "c"})},
        {"node": NodeFacts(cores=2, mem=1, disk=1, hours="whenever")},
    ],
)
def test_a_join_that_no_agent_sends_is_refused(agent: Agent, more: dict[str, Any]) -> None:
    agent.hello("n2")
    assert isinstance(agent.join("n2", **more), m.Failure | None)


@pytest.mark.parametrize("name", ["../x", "bad name", "-V", "a\nb"])
def test_a_node_has_a_name_that_can_be_typed(site: Deployment, name: str) -> None:
    agent = Agent(site, site.work / "any")
    agent.hello(name)
    assert isinstance(agent.join(name, runner=f"{name}-1-00000001"), m.Failure | None)
    agent.close()
    assert name not in [each["host"] for each in site.json("node", "list")["nodes"]]


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(message="M" * 200_000),
        Outcome(segment="vm-1-00000001-000001", out_len=5),
        Outcome(ended_at=9.9e30),
        Outcome(ended_at=float("nan"), started_at=-1.0, cpu_s=float("inf"), exit_code=1 << 40, signal=-5),
        Outcome(peak_mem=-5, out_total=1 << 63, kept=OutputReport(sums=tuple(range(5_000)))),
    ],
)
def test_an_end_that_no_runner_reports_is_taken_within_bounds_and_nobody_is_hung_up_on(
    site: Deployment, agent: Agent, outcome: Outcome
) -> None:
    """Whoever was hung up on would come back with the same report, and the job would never end."""
    agent.hello("n2")
    assert isinstance(agent.join("n2"), m.Rules)
    job = site.json("add", "--where", "host='n2'", "--retries", "0", "--rerun", "--", "true")["added"][0]
    while not isinstance(work := agent.hears(), m.Work) or not work.grants:
        assert work is not None
    grant, seat = work.grants[0], work.seats[0].seat
    agent.say(m.Report(1, ended=[Finished(grant.job, grant.attempt, grant.token, seat, outcome)]))
    while not isinstance(answer := agent.hears(), m.Ack):
        assert answer is not None, "hung up on"
    (attempt,) = site.json("show", str(job))["attempts"]
    assert site.state(job) in ("complete", "failed")
    assert attempt["scheduled_at"] <= attempt["ended_at"]
    assert attempt["cpu_s"] >= 0
    printed = site.rota("logs", str(job)).stdout
    assert not printed or printed.startswith("[rota: "), "the output of another runner is none of its"


def test_an_agent_writes_into_no_output_but_that_of_its_own_host(site: Deployment, agent: Agent) -> None:
    job = site.json("add", "--", "echo", "honest")["added"][0]
    wait_until(lambda: site.state(job) == "complete", "it is complete")
    segments = [path.name for path in (site.home / "output").iterdir()]
    agent.hello("n2")
    assert isinstance(agent.join("n2"), m.Rules)
    for segment in segments:
        agent.say(m.Piece(segment, 0, b"forged!", job, 1, 1))
    read_all(agent)
    assert site.ok("logs", str(job)) == "honest\n"


def read_all(agent: Agent) -> None:
    """The manager has taken everything that this agent said before."""
    agent.say(m.Report(99))
    while not isinstance(answer := agent.hears(), m.Ack):
        assert answer is not None, "hung up on"


def leased(site: Deployment, agent: Agent, *command: str) -> tuple[int, m.Grant, int]:
    """A job that this agent has a lease for, its grant, and its seat."""
    job = site.json("add", "--where", "host='n2'", "--retries", "0", "--rerun", "--", *command)["added"][0]
    while not isinstance(work := agent.hears(), m.Work) or not work.grants:
        assert work is not None
    return job, work.grants[0], work.seats[0].seat


def test_an_agent_without_a_lease_writes_no_output(site: Deployment, agent: Agent) -> None:
    job = site.json("add", "--", "sleep", "30")["added"][0]
    wait_until(lambda: site.state(job) == "running", "it runs elsewhere")
    agent.hello("n2")
    assert isinstance(agent.join("n2"), m.Rules)
    for number in range(1, 50):
        for key in ((0, 0, 0), (job, 1, 1), (job, 1, number), (10_000, 1, 1)):
            agent.say(m.Piece(f"n2-1-00000001-{number:06d}", 0, bytes(4096), *key))
    read_all(agent)
    assert [path.name for path in (site.home / "output").glob("n2-*")] == []
    site.ok("kill", str(job))


def test_an_agent_with_a_lease_has_one_range_for_its_output_and_it_is_told_what_is_not_there(
    site: Deployment, agent: Agent
) -> None:
    agent.hello("n2")
    assert isinstance(agent.join("n2"), m.Rules)
    outputs = site.home / "output"
    for place, sent in enumerate((b"all of it\n", b"all of", b"")):
        job, grant, seat = leased(site, agent, "echo", "all", "of", "it", str(place))
        key = (grant.job, grant.attempt, grant.token)
        at, segment = 1000 * place, "n2-1-00000001-000001"
        if sent:
            agent.say(m.Piece(segment, at, sent, *key))
        for number in range(2, 20):
            agent.say(m.Piece(f"n2-1-00000001-{number:06d}", 0, bytes(4096), *key))
        agent.say(m.Piece(segment, 60 << 20, bytes(4096), *key))
        outcome = Outcome(
            exit_code=0, ended_at=time.time(), segment=segment, offset=at, out_len=10, out_total=10,
            kept=OutputReport(checksums(b"all of it\n", b"")),
        )  # fmt: skip
        agent.say(m.Report(place + 1, ended=[Finished(*key, seat, outcome)], closed=[seat]))
        wait_until(lambda job=job: site.state(job) == "complete", "it is complete")  # type: ignore[misc]
        (attempt,) = site.json("show", str(job))["attempts"]
        done = site.rota("logs", str(job))
        if sent.endswith(b"\n"):
            assert (done.returncode, done.stdout, attempt["output_missing"]) == (0, "all of it\n", None)
        else:
            assert (done.returncode, attempt["out_bytes"]) == (1, 10)
            assert attempt["output_missing"]["code"] == "not_sent"
            assert done.stdout.startswith("[rota: 10 bytes are missing here: ")
    written = {path.name: path.stat().st_size for path in outputs.glob("n2-*")}
    # The last one had sent nothing into its own: its first other piece is its range.
    assert sorted(written) == ["n2-1-00000001-000001", "n2-1-00000001-000002"]
    assert max(written.values()) < 1 << 20


def test_a_reason_code_that_is_none_neither_reaches_a_terminal_nor_loses_the_end(
    site: Deployment, agent: Agent
) -> None:
    agent.hello("n2")
    assert isinstance(agent.join("n2"), m.Rules)
    job = site.json("add", "--where", "host='n2'", "--retries", "0", "--", "true")["added"][0]
    while not isinstance(work := agent.hears(), m.Work) or not work.grants:
        assert work is not None
    grant, seat = work.grants[0], work.seats[0].seat
    outcome = Outcome(exit_code=1, reason="\x1b]0;owned\x07\x1b[5m" + "x" * 500, ended_at=time.time())
    agent.say(m.Report(1, ended=[Finished(grant.job, grant.attempt, grant.token, seat, outcome)]))
    wait_until(lambda: site.state(job) == "failed", "it has failed")
    assert site.json("show", str(job))["reason"]["code"] == "unknown"
    for command in ("show", "why"):
        assert "\x1b" not in site.ok(command, str(job))
