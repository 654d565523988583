"""The runner outlives its manager: it reconnects, says what it holds, repeats what was not acknowledged."""

from __future__ import annotations

import os
import signal

import pytest

from rota.wire import messages as m
from tests.runner.manager import FakeManager, Gone, ref

WAIT = "while ! test -e go; do sleep 0.01; done"


def test_a_runner_presents_itself(manager: FakeManager) -> None:
    process = manager.begin()
    (join,) = manager.joins
    assert join.pid == process.pid
    assert join.runner in os.listdir(manager.runners)
    assert join.cores >= 1
    assert join.mem > 0
    assert (join.held, join.seats) == ([], [])


def test_it_says_what_it_holds_after_a_lost_connection(joined: FakeManager) -> None:
    spec = joined.spec()
    running, waiting = joined.grant(1, WAIT, spec), joined.grant(2, "echo second", spec)
    joined.work([running, waiting], spec)
    joined.until(lambda: joined.started)
    joined.hang_up()
    join = joined.accept()
    held = {(h.job, h.attempt, h.token): h for h in join.held}
    assert held.keys() == {(g.job, g.attempt, g.token) for g in (running, waiting)}
    assert held[1, 1, running.token].seat == 1
    assert held[1, 1, running.token].pid == joined.started[0].pid
    assert held[2, 1, waiting.token].seat == 0
    assert join.seats == [1]
    (joined.home / "go").touch()
    _, second = joined.wait_for([1, 2])
    assert joined.output(second)[0] == b"second\n"


def test_jobs_go_on_without_a_manager_and_are_reported_later(joined: FakeManager) -> None:
    spec = joined.spec()
    joined.work([joined.grant(1, WAIT, spec), joined.grant(2, "touch ran", spec)], spec)
    joined.until(lambda: joined.started)
    joined.go_away()
    (joined.home / "go").touch()
    joined.until(lambda: (joined.home / "ran").exists())
    joined.listen()
    join = joined.accept()
    assert {h.job for h in join.held} == {1, 2}, "what has ended is held until it is acknowledged"
    joined.wait_for([1, 2])
    joined.until(lambda: joined.closed == [1])


def test_unacknowledged_reports_are_repeated_until_acknowledged(joined: FakeManager) -> None:
    joined.auto_ack = False
    joined.run("true", "exit 2")
    joined.hang_up()
    assert {h.job for h in joined.accept().held} == {1, 2}
    joined.until(lambda: sorted(done.job for done in joined.ended) == [1, 1, 2, 2])
    first, again = joined.ended[:2], joined.ended[2:]
    assert sorted(first, key=lambda done: done.job) == sorted(again, key=lambda done: done.job)
    joined.send(m.Ack(max(report.seq for report in joined.reports)))
    joined.run("true")
    joined.hang_up()
    assert {h.job for h in joined.accept().held} == {3}


def test_leases_that_are_no_longer_valid_are_ended(joined: FakeManager) -> None:
    spec = joined.spec()
    running, waiting = joined.grant(1, "sleep 600", spec), joined.grant(2, "touch ran", spec)
    joined.work([running, waiting], spec)
    joined.until(lambda: joined.started)
    joined.hang_up()
    joined.accept(forget=[ref(running), ref(waiting)])
    (done,) = joined.wait_for([1])
    assert done.outcome.reason == "kill_requested"
    joined.until(lambda: joined.closed)
    assert not (joined.home / "ran").exists()


@pytest.mark.parametrize(
    "garbage", [b"\0\0\0\5hello", b"\xff\xff\xff\xff", b"\0\0\0\0", b"GET / HTTP/1.1\r\n\r\n"]
)
def test_garbage_from_the_manager_makes_it_reconnect(joined: FakeManager, garbage: bytes) -> None:
    spec = joined.spec()
    joined.work([joined.grant(1, WAIT, spec)], spec)
    joined.until(lambda: joined.started)
    joined.send_bytes(garbage)
    with pytest.raises(Gone):
        joined.until(lambda: False)
    joined.hang_up()
    assert [h.job for h in joined.accept().held] == [1]
    (joined.home / "go").touch()
    joined.wait_for([1])


def test_it_touches_when_nothing_happens(manager: FakeManager) -> None:
    manager.rules["touch_s"] = 0.05
    manager.begin()
    manager.until(lambda: len([r for r in manager.reports if r.seq == 0]) >= 3)


def test_it_leaves_when_told_and_idle(manager: FakeManager) -> None:
    process = manager.begin()
    manager.run("true")
    manager.send(m.Leave())
    with pytest.raises(Gone):
        manager.until(lambda: False)
    assert process.wait(30) == 0
    assert os.listdir(manager.runners) == [], "nothing is left to remember"


def test_it_stays_for_its_jobs_when_told_to_leave_and_goes_afterwards(manager: FakeManager) -> None:
    process = manager.begin()
    spec = manager.spec()
    waiting = manager.grant(2, "touch ran", spec)
    manager.work([manager.grant(1, WAIT, spec), waiting], spec)
    manager.until(lambda: manager.started)
    manager.send(m.Leave())
    manager.until(lambda: manager.returned == [ref(waiting)])
    manager.hang_up()
    assert [h.job for h in manager.accept().held] == [1]
    (manager.home / "go").touch()
    manager.wait_for([1])
    with pytest.raises(Gone):
        manager.until(lambda: False)
    assert process.wait(30) == 0
    assert not (manager.home / "ran").exists()


def test_new_work_ends_the_leaving(manager: FakeManager) -> None:
    manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, WAIT, spec)], spec)
    manager.until(lambda: manager.started)
    manager.send(m.Leave())
    manager.work([manager.grant(2, "true", spec)], spec)
    manager.wait_for([2])
    (manager.home / "go").touch()
    manager.wait_for([1])
    (after,) = manager.run("true")
    assert after.outcome.exit_code == 0


def test_leaving_with_kill_ends_all_jobs_and_reports_them(manager: FakeManager) -> None:
    process = manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(n, "sleep 600", spec) for n in (1, 2, 3)], spec, seats=2)
    manager.until(lambda: len(manager.started) == 2)
    manager.send(m.Leave(kill=True))
    done = manager.wait_for([1, 2])
    assert {d.outcome.reason for d in done} == {"kill_requested"}
    with pytest.raises(Gone):
        manager.until(lambda: False)
    assert process.wait(30) == 0
    assert [r.job for r in manager.returned] == [3]


def test_sigterm_lets_jobs_end_first(manager: FakeManager) -> None:
    process = manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, WAIT, spec)], spec)
    manager.until(lambda: manager.started)
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    extra = manager.grant(2, "touch ran", spec)
    manager.until(lambda: "SIGTERM received" in manager.log())
    manager.work([extra], spec)
    manager.until(lambda: manager.returned == [ref(extra)])
    (manager.home / "go").touch()
    (done,) = manager.wait_for([1])
    assert done.outcome.exit_code == 0
    with pytest.raises(Gone):
        manager.until(lambda: False)
    assert process.wait(30) == 0


def test_the_second_sigterm_ends_them_and_their_retries_decide(manager: FakeManager) -> None:
    process = manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, WAIT, spec)], spec)
    manager.until(lambda: manager.started)
    process.send_signal(signal.SIGTERM)
    manager.until(lambda: manager.log().count("SIGTERM received") == 1)
    process.send_signal(signal.SIGTERM)
    (done,) = manager.wait_for([1])
    assert done.outcome.reason == "lost"
    assert done.outcome.message.endswith("was stopped")


def test_an_orphaned_runner_ends_its_jobs_and_keeps_their_records(manager: FakeManager) -> None:
    manager.rules["orphan_after_s"] = 0.3
    process = manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, "sleep 600", spec)], spec)
    manager.until(lambda: manager.started)
    manager.go_away()
    assert process.wait(60) == 0
    manager.listen()
    manager.begin()
    (settled,) = manager.settles
    (done,) = settled.ended
    assert (done.job, done.outcome.signal) == (1, signal.SIGTERM)
    assert (done.outcome.reason, done.outcome.message) == ("lost", "the manager was away for 0.3 s")


def test_live_output_comes_from_the_beginning_and_ends(joined: FakeManager) -> None:
    spec = joined.spec()
    grant = joined.grant(1, f"echo one; echo e >&2; {WAIT}; seq 1 50000", spec)
    joined.work([grant], spec)
    joined.until(lambda: joined.started)
    joined.send(m.Tail(1, 1))
    joined.until(lambda: {c.stream for c in joined.live} == {1, 2})
    (joined.home / "go").touch()
    joined.until(lambda: joined.live_ends)
    out = b"".join(c.data for c in joined.live if c.stream == 1)
    assert out == b"one\n" + "".join(f"{n}\n" for n in range(1, 50001)).encode()
    at = 0
    for chunk in (c for c in joined.live if c.stream == 1):
        assert chunk.offset == at
        at += len(chunk.data)
    (done,) = joined.wait_for([1])
    assert joined.output(done)[0] == out


def test_following_what_is_not_here_ends_at_once(joined: FakeManager) -> None:
    joined.send(m.Tail(9, 1))
    joined.until(lambda: joined.live_ends == [m.LiveEnd(9, 1)])
