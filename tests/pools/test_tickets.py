"""Real runners that join with tickets, from hosts that share nothing with the manager but the network."""

from __future__ import annotations

import signal
import socket
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from msgspec.structs import replace

from rota.plan.need import Need
from rota.wire.authority import Authority
from tests.deployment import wait_until
from tests.pools.guests import GROUP, NEED, Front


@pytest.fixture
def front(shared_front: Front) -> Iterator[Front]:
    """One deployment for all tests: each has tickets of its own, and leaves no job behind."""
    yield shared_front
    shared_front.end_runners()
    left = shared_front.made.json("jobs")["jobs"]
    waiting = [str(job["id"]) for job in left if job["state"] not in ("complete", "failed", "cancelled", "lost")]
    if waiting:
        shared_front.made.ok("kill", *waiting)


def test_a_runner_serves_its_group_ships_output_home_and_leaves_nothing_behind(front: Front) -> None:
    ticket = front.grant()
    larger = front.add("echo other", options=(*GROUP[:2], "--mem", "128M", *GROUP[4:]))
    jobs = front.add("echo one; echo err >&2", "echo two", "env")
    runner = front.run(ticket, "--linger", "0.3")
    front.wait(*jobs)
    assert front.made.ok("logs", str(jobs[0])) == "one\n"
    assert front.made.ok("logs", "--err", str(jobs[0])) == "err\n"
    assert front.made.ok("logs", str(jobs[1])) == "two\n"
    with front.made.client() as client:
        assert len({client.job(job).attempts[0].runner for job in jobs}) == 1, "it took one after the other"
    assert ticket.secret not in front.made.ok("logs", str(jobs[2]))
    assert runner.wait(60) == 0, front.log(ticket).read_text()
    assert not front.directory(ticket).exists()
    assert ticket.name not in front.grants(), "the ticket is used up"
    assert ticket.name not in front.joined()
    assert front.made.states(*map(str, larger)) == {larger[0]: "ready"}, "that is not its group"


def test_the_ticket_is_neither_in_arguments_nor_in_the_environment(front: Front) -> None:
    ticket = front.grant()
    runner = front.run(ticket, "--linger", "60")
    wait_until(lambda: ticket.name in front.joined(), "it has joined")
    for file in ("cmdline", "environ"):
        assert ticket.secret.encode() not in Path(f"/proc/{runner.pid}/{file}").read_bytes()
    for path in front.directory(ticket).rglob("*"):
        assert not path.stat().st_mode & 0o077, f"others can use {path}"
        assert not path.is_file() or ticket.secret.encode() not in path.read_bytes()


def test_a_killed_runner_is_followed_by_one_with_the_same_key_which_settles_it(front: Front) -> None:
    ticket = front.grant()
    (job,) = front.add("sleep 600")
    first = front.run(ticket)
    wait_until(lambda: front.made.states(str(job)) == {job: "running"}, "it runs")
    key = front.key_of(ticket)
    first.kill()
    first.wait()
    second = front.run(ticket, "--linger", "60")
    front.wait(job)
    assert front.made.state(job) == "failed"
    assert front.key_of(ticket) == key
    (after,) = front.add("echo after")
    front.wait(after)
    assert front.made.ok("logs", str(after)) == "after\n"
    second.send_signal(signal.SIGTERM)
    assert second.wait(60) == 0
    assert not front.directory(ticket).exists()


def test_a_stolen_ticket_is_worth_nothing_once_it_was_used(front: Front) -> None:
    """The thief has a copy of the file, and even of the key's directory but for the key."""
    ticket = front.grant()
    (job,) = front.add("sleep 600")
    front.run(ticket, "--linger", "60")
    wait_until(lambda: front.made.states(str(job)) == {job: "running"}, "it runs")
    thief = front.run(ticket, place="elsewhere")
    assert thief.wait(60) == 0
    assert "this ticket is not accepted" in front.log(ticket).read_text()
    assert not front.directory(ticket, "elsewhere").exists()
    assert front.made.states(str(job)) == {job: "running"}, "the first one goes on"
    assert list(front.joined()) == [ticket.name]


@pytest.mark.slow
def test_a_second_runner_beside_the_first_in_the_same_directory_does_not_start(front: Front) -> None:
    ticket = front.grant()
    front.run(ticket, "--linger", "60")
    wait_until(lambda: ticket.name in front.joined(), "it has joined")
    assert front.run(ticket).wait(60) == 1
    assert "already" in front.log(ticket).read_text()


def test_a_runner_whose_demand_was_withdrawn_leaves_at_once_and_not_as_a_failure(front: Front) -> None:
    ticket = front.grant()
    front.change(ticket, valid=False)
    (job,) = front.add("true")
    assert front.run(ticket, "--linger", "60").wait(60) == 0
    assert not front.directory(ticket).exists()
    assert front.made.states(str(job)) == {job: "ready"}


@pytest.mark.slow
def test_a_withdrawn_runner_finishes_its_job_comes_back_and_gets_nothing_more(front: Front) -> None:
    ticket = front.grant()
    first, second = front.add("echo begun; sleep 600", "true")
    runner = front.run(ticket, "--linger", "60")
    wait_until(lambda: "running" in front.made.states(str(first)).values(), "it runs")
    front.change(ticket, valid=False, key=front.key_of(ticket))
    front.kill()
    front.start()
    wait_until(lambda: ticket.name in front.joined(), "it is back")
    assert front.made.states(str(first)) == {first: "running"}
    front.made.ok("kill", str(first))
    front.wait(first)
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(60) == 0
    assert front.made.states(str(second)) == {second: "ready"}


def test_a_runner_without_time_for_a_job_takes_none_and_leaves(front: Front) -> None:
    (job,) = front.add("true")
    short, enough = front.grant(), front.grant()
    assert front.run(short, "--linger", "600", "--until", "50").wait(60) == 0, "a job is expected to take 60 s"
    assert front.made.states(str(job)) == {job: "ready"}
    front.run(enough, "--linger", "0.3", "--until", "3600")
    front.wait(job)
    assert front.made.state(job) == "complete"


def test_a_job_that_outlives_its_allocation_ends_for_lack_of_time(front: Front) -> None:
    """The engine sends SIGTERM, and would send SIGKILL."""
    ticket = front.grant(need=Need(replace(NEED.size, time_s=1.0)))
    (job,) = front.add("sleep 600", options=(*GROUP, "--time", "1s"))
    runner = front.run(ticket, "--until", "50")
    wait_until(lambda: front.made.states(str(job)) == {job: "running"}, "it runs")
    runner.send_signal(signal.SIGTERM)
    front.wait(job)
    assert front.made.json("show", str(job))["reason"]["code"] == "time"
    assert runner.wait(60) == 0


@pytest.mark.parametrize("when", [pytest.param("before", marks=pytest.mark.slow), "after"])
def test_a_manager_that_dies_while_a_ticket_is_bound_accepts_the_same_runner_again(
    front: Front, when: str
) -> None:
    """Before the binding is on disk, and after it, when it was not answered."""
    ticket = front.grant()
    (front.made.home / f"die-{when}").touch()
    (job,) = front.add("echo hello")
    runner = front.run(ticket, "--linger", "0.5")
    front.manager.wait(60)
    assert bool(front.stored(ticket).key) is (when == "after")
    front.start()
    front.wait(job)
    assert front.made.ok("logs", str(job)) == "hello\n"
    states = [each["state"] for each in front.made.json("show", str(job))["attempts"]]
    assert [state for state in states if state != "void"] == ["complete"], "a void one was never sent"
    assert runner.wait(60) == 0


def test_a_job_goes_on_while_the_manager_is_dead_and_its_output_comes_home(front: Front) -> None:
    ticket = front.grant()
    go = front.made.work / "go-on"
    (job,) = front.add(f"echo one; while ! test -e {go}; do sleep 0.05; done; echo two")
    runner = front.run(ticket, "--linger", "0.3")
    wait_until(lambda: front.made.states(str(job)) == {job: "running"}, "it runs")
    front.kill()
    go.touch()
    front.start()
    front.wait(job)
    assert front.made.ok("logs", str(job)) == "one\ntwo\n"
    assert len(front.made.json("show", str(job))["attempts"]) == 1
    assert runner.wait(60) == 0


@pytest.mark.slow
def test_a_job_that_ends_while_the_manager_is_stopped_is_reported_to_the_next(front: Front) -> None:
    """No other runner could: the journal of this one is where no other looks."""
    ticket = front.grant()
    go = front.made.work / "go-while-stopped"
    (job,) = front.add(f"while ! test -e {go}; do sleep 0.05; done; echo two")
    runner = front.run(ticket, "--linger", "0.3")
    wait_until(lambda: front.made.states(str(job)) == {job: "running"}, "it runs")
    front.made.ok("manager", "stop")
    front.manager.wait(60)
    go.touch()
    output = front.directory(ticket) / "output"
    wait_until(lambda: any(b"two" in file.read_bytes() for file in output.glob("*")), "the job has ended")
    front.start()
    front.wait(job)
    assert front.made.ok("logs", str(job)) == "two\n"
    assert len(front.made.json("show", str(job))["attempts"]) == 1
    assert runner.wait(60) == 0


def test_a_ticket_that_others_can_read_is_not_used(front: Front) -> None:
    ticket = front.grant()
    runner = front.run(ticket, mode=0o640)
    assert runner.wait(60) == 1
    assert "may be read or changed by others" in front.log(ticket).read_text()
    assert not front.key_of(ticket)


class Impostor:
    """Listens like a manager, with a certificate of another authority, and keeps what it is sent."""

    def __init__(self) -> None:
        authority = Authority.new(now=datetime.now(UTC))
        issued = authority.issue(["rota", "127.0.0.1"], now=datetime.now(UTC))
        self.authority = authority.certificate_pem.decode()
        self._pem = issued.key + issued.certificate
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listener.getsockname()[1]}"
        self.failures = 0
        self.heard = b""

    def serve(self, directory: Path, *, number: int) -> threading.Thread:
        file = directory / "impostor.pem"
        file.write_bytes(self._pem)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(file)

        def listen() -> None:
            for _ in range(number):
                plain, _ = self._listener.accept()
                try:
                    with context.wrap_socket(plain, server_side=True) as stream:
                        self.heard += stream.recv(4096)
                except OSError:
                    self.failures += 1
            self._listener.close()

        thread = threading.Thread(target=listen, daemon=True)
        thread.start()
        return thread


def test_a_runner_says_nothing_to_a_manager_of_another_authority(front: Front, tmp_path: Path) -> None:
    impostor = Impostor()
    listening = impostor.serve(tmp_path, number=2)
    ticket = front.grant()
    runner = front.run(ticket, "--manager", impostor.address)
    listening.join(60)
    assert (impostor.failures, impostor.heard) == (2, b"")
    runner.send_signal(signal.SIGTERM)
    assert runner.wait(60) is not None
    assert not front.key_of(ticket), "the ticket is as good as before"
    assert front.run(ticket, "--linger", "0.1").wait(60) == 0


def test_a_ticket_with_the_wrong_authority_reaches_no_manager(front: Front) -> None:
    ticket = replace(front.grant(), authority=Impostor().authority)
    runner = front.run(ticket)
    wait_until(lambda: "certificate verify failed" in _read(front.log(ticket)), "it noticed")
    runner.send_signal(signal.SIGTERM)
    runner.wait(60)
    assert not front.key_of(ticket)


def _read(path: Path) -> str:
    return path.read_text() if path.exists() else ""
