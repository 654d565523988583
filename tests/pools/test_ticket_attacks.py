"""Peers that try to get more than their ticket grants: the manager gives nothing away, and the honest go on."""

from __future__ import annotations

import socket
import sqlite3
import threading
import time
from contextlib import closing
from typing import Any, NamedTuple

import pytest

from rota.core.attempts.leases import Finished, HeldLease, LeaseRef, Started
from rota.core.jobs.outcome import Outcome
from rota.plan.site.node_facts import NodeFacts
from rota.wire import messages as m
from rota.wire import ticket_file
from rota.wire.ticket_file import Ticket
from tests.deployment import wait_until
from tests.pools.guests import Front, Pretender, new_key


@pytest.fixture(scope="module")
def front(shared_front: Front) -> Front:
    """One deployment for all: each test has tickets of its own."""
    return shared_front


class Victim(NamedTuple):
    """A runner with a job, which goes on whatever others do."""

    ticket: Ticket
    job: int
    runner: str
    token: int  #: of its lease


@pytest.fixture(scope="module")
def victim(front: Front) -> Victim:
    ticket = front.grant()
    (job,) = front.add("echo private; sleep 600")
    front.run(ticket, "--linger", "600")
    wait_until(lambda: front.made.states(str(job)) == {job: "running"}, "it runs")
    with closing(sqlite3.connect(f"file:{front.made.home / 'rota.db'}?mode=ro", uri=True)) as database:
        ((runner, token),) = database.execute(
            "SELECT runner, token FROM attempts WHERE job = ?", (job,)
        ).fetchall()
    return Victim(ticket, job, runner, token)


def refused(answer: Any) -> str:
    """The code of a refusal."""
    assert isinstance(answer, m.Failure), answer
    return answer.code


def test_every_ticket_that_is_not_accepted_gets_the_same_answer(front: Front) -> None:
    used, withdrawn, expired = front.grant(), front.grant(), front.grant()
    front.change(used, key="0" * 64)
    front.change(withdrawn, valid=False)
    front.change(expired, expires_at=time.time() - 1)
    guessed = Ticket(name="test-guess", secret=ticket_file.new_secret(), manager="a:1", authority="")
    good = front.grant()
    answers = []
    for ticket in (used, withdrawn, expired, guessed):
        with front.peer() as peer:
            answers.append(peer.hello(ticket, new_key()))
            assert peer.next() is None, "the manager hangs up"
    for changes in ({"host": "test-other"}, {"host": ""}):
        with front.peer() as peer:
            answers.append(peer.hello(good, new_key(), **changes))
    for key in ("", "short", "x" * 300):
        with front.peer() as peer:
            answers.append(peer.hello(good, key))
    assert {refused(answer) for answer in answers} == {m.TICKET}
    assert len(set(answers)) == 1, "it does not say why"
    assert front.key_of(good) == ""


def test_a_ticket_lets_nobody_be_more_than_a_runner(front: Front) -> None:
    for role in ("user", "admin", "gateway"):
        with front.peer() as peer:
            assert refused(peer.hello(front.grant(), new_key(), role=role)) == "denied"


def test_of_two_keys_the_first_that_joins_keeps_the_ticket(front: Front) -> None:
    ticket = front.grant()
    with front.peer() as first, front.peer() as second, front.peer() as third:
        assert isinstance(first.hello(ticket, new_key()), m.Welcome)
        assert isinstance(second.hello(ticket, new_key()), m.Welcome), "nobody has used it yet"
        name = f"{ticket.name}-1-00000000"
        assert isinstance(first.join(ticket, runner=name), m.Rules)
        # The second was let in before. It can neither join, nor speak for the first, nor close its connection.
        second.send(m.Piece(f"{name}-000001", 0, b"forged", 1, 1, 1))
        second.send(m.Settle(name))
        assert second.next() == m.Ack(-1), "there is nothing to settle"
        assert refused(second.join(ticket, runner=name)) == m.TICKET
        assert refused(third.hello(ticket, new_key())) == m.TICKET
        first.send(m.Report(1))
        assert first.next() == m.Ack(1), "the first goes on"


def test_of_two_keys_that_join_at_the_same_moment_one_is_refused(front: Front) -> None:
    for _ in range(10):
        ticket = front.grant()
        peers = [front.peer(), front.peer()]
        for peer in peers:
            assert isinstance(peer.hello(ticket, new_key()), m.Welcome)
        for peer in peers:
            peer.send(peer.joining(ticket))
        kinds = sorted(type(peer.next()).__name__ for peer in peers)
        assert kinds == ["Failure", "Rules"]
        for peer in peers:
            peer.close()


def test_a_ticket_opens_few_connections_and_the_newest_is_not_kept_out(front: Front) -> None:
    ticket = front.grant()
    peers = [front.peer() for _ in range(6)]
    for peer in peers:
        assert isinstance(peer.hello(ticket, new_key()), m.Welcome)
    assert [peer.next() for peer in peers[:2]] == [None, None], "the oldest ones were hung up on"
    assert isinstance(peers[-1].join(ticket), m.Rules)
    for peer in peers:
        peer.close()


def test_the_same_key_may_join_again_because_the_answer_may_be_lost(front: Front) -> None:
    ticket, key = front.grant(), new_key()
    name = f"{ticket.name}-1-00000000"
    for _ in range(2):
        with front.peer() as peer:
            assert isinstance(peer.hello(ticket, key), m.Welcome)
            assert isinstance(peer.join(ticket, runner=name), m.Rules)
    front.change(ticket, valid=False, key=front.key_of(ticket))
    with front.peer() as peer:
        assert isinstance(peer.hello(ticket, key), m.Welcome)
        assert isinstance(peer.join(ticket, runner=name), m.Rules)
        assert peer.next() == m.Leave(), "but is not wanted any more"


def test_a_ticket_whose_runner_has_said_goodbye_is_used_up(front: Front) -> None:
    ticket, key = front.grant(), new_key()
    name = f"{ticket.name}-1-00000000"
    with front.peer() as peer:
        peer.hello(ticket, key)
        peer.join(ticket, runner=name)
        peer.send(m.Settle(name))
        wait_until(lambda: ticket.name not in front.grants(), "it is used up")
    with front.peer() as peer:
        assert refused(peer.hello(ticket, key)) == m.TICKET


@pytest.mark.parametrize(
    "lie",
    [
        {"host": "test-other"},
        {"runner": "test-other-1-00000000"},
        {"runner": "localhost-1-00000000"},
        {"runner": ".settling-1"},
        {"left_s": float("nan")},
        {"left_s": float("inf")},
    ],
    ids=lambda lie: "-".join(f"{key}={value}" for key, value in lie.items()),
)
def test_a_runner_joins_under_the_name_of_its_ticket_only(front: Front, lie: dict[str, Any]) -> None:
    ticket = front.grant()
    with front.peer() as peer:
        peer.hello(ticket, new_key())
        assert refused(peer.join(ticket, **lie)) in ("denied", "protocol")
    assert front.key_of(ticket) == ""


def test_a_runner_that_lies_about_its_size_gets_what_its_ticket_grants(front: Front, victim: Victim) -> None:
    ticket = front.grant()
    facts = NodeFacts(cores=1000, mem=1 << 50, disk=1 << 50, gpus=8, machine="m", properties={"fast": True})
    jobs = front.add("sleep 600", "sleep 601")
    with front.peer() as peer:
        peer.hello(ticket, new_key())
        rules = peer.join(ticket, cores=1000, mem=1 << 50, node=facts, seats=[1, 2, 3, 4], machine="a\x1b[2Jb")
        assert isinstance(rules, m.Rules)
        work = peer.next()
        assert isinstance(work, m.Work)
        assert len(work.grants) == 1, "it has room for one"
        assert len(work.specs) == 1, "and is told of no other job"
        (host,) = [each for each in front.made.json("node", "list")["nodes"] if each["host"] == ticket.name]
        assert (host["cores"], host["mem_bytes"], host["gpus"]) == (1, 64 << 20, 0)
        peer.send(m.Report(0, returned=[LeaseRef(g.job, g.attempt, g.token) for g in work.grants], leaving=True))
        front.made.ok("kill", *map(str, jobs))


def test_a_runner_cannot_report_on_leases_of_others(front: Front, victim: Victim) -> None:
    """Not even with the token of the lease, which it cannot know."""
    job, token = victim.job, victim.token
    ticket = front.grant()
    with front.peer() as peer:
        peer.hello(ticket, new_key())
        now = time.time()
        rules = peer.join(ticket, held=[HeldLease(job, 1, token, 1, now, 1)])
        assert rules.forget == [LeaseRef(job, 1, token)]
        outcome = Outcome(exit_code=0, started_at=now, ended_at=now)
        started, ended = Started(job, 1, token, 1, now, 1), Finished(job, 1, token, 1, outcome)
        peer.send(m.Report(1, started=[started], ended=[ended], returned=[LeaseRef(job, 1, token)]))
        assert peer.next() == m.Ack(1)
        peer.send(m.Piece(f"{victim.runner}-000001", 0, b"forged", job, 1, token))
        peer.send(m.Live([m.Chunk(job, 1, 1, 0, b"forged")]))
        peer.send(m.LiveEnd(job, 1))
        peer.send(m.Settle(victim.runner))
        assert refused(peer.next()) == "denied"
    assert front.made.states(str(job)) == {job: "running"}
    assert victim.ticket.name in front.joined()
    assert not list((front.made.home / "output").glob(f"{victim.runner}-*"))


def test_a_runner_cannot_read_or_enter_jobs_of_others(front: Front, victim: Victim) -> None:
    job = victim.job
    asks: list[m.Message] = [
        m.Show(1, job),
        m.ReadOutput(1, job, 1, 0, 0, 100),
        m.ListJobs(1, []),
        m.Control(1, "status"),
    ]
    for ask in asks:
        ticket = front.grant()
        with front.peer() as peer:
            peer.hello(ticket, new_key())
            assert isinstance(peer.join(ticket), m.Rules)
            peer.send(ask)
            assert refused(peer.next()) == "denied"
    with front.peer() as peer:
        ticket = front.grant()
        peer.hello(ticket, new_key())
        assert isinstance(peer.join(ticket), m.Rules)
        peer.send(m.Relayed(m.OpenChannel(-1, job, cmd=["cat", "/etc/passwd"])))
        answer = peer.next()
        assert isinstance(answer, m.ChannelEnd)
        assert "no job" in answer.message


def test_a_runner_must_join_before_it_reports(front: Front) -> None:
    for message in (m.Report(1), m.Idle(), m.Live([]), m.Full(1, 1, held=True)):
        with front.peer() as peer:
            peer.hello(front.grant(), new_key())
            peer.send(message)
            assert refused(peer.next()) == "denied"


def test_what_was_recorded_between_runner_and_manager_cannot_be_played_again(front: Front) -> None:
    """A man in the middle sees ciphertext only, which another connection does not accept."""
    ticket, key = front.grant(), new_key()
    recorded: list[bytes] = []
    middle = socket.create_server(("127.0.0.1", 0))

    def pass_on() -> None:
        near, _ = middle.accept()
        with near, socket.create_connection(ticket_file.address(front.address)) as far:
            back = threading.Thread(target=_copy, args=(far, near, []), daemon=True)
            back.start()
            _copy(near, far, recorded)

    listening = threading.Thread(target=pass_on, daemon=True)
    listening.start()
    with middle, Pretender(front, address=f"127.0.0.1:{middle.getsockname()[1]}") as peer:
        assert isinstance(peer.hello(ticket, key), m.Welcome)
        assert isinstance(peer.join(ticket), m.Rules)
    listening.join(60)
    seen = b"".join(recorded)
    assert seen
    assert not any(secret.encode() in seen for secret in (ticket.secret, key, ticket.name))
    before = front.made.json("manager", "status")["runners"]
    with socket.create_connection(ticket_file.address(front.address), timeout=20) as replay:
        replay.sendall(seen)
        replay.shutdown(socket.SHUT_WR)
        answer = b""
        while data := _receive(replay):
            answer += data
    assert ticket.name.encode() not in answer
    after = front.made.json("manager", "status")["runners"]
    assert {each["host"] for each in after} <= {each["host"] for each in before}


def _receive(stream: socket.socket) -> bytes:
    try:
        return stream.recv(65536)
    except ConnectionError:
        return b""


def _copy(source: socket.socket, sink: socket.socket, seen: list[bytes]) -> None:
    try:
        while data := source.recv(65536):
            seen.append(data)
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)
    except OSError:
        return
