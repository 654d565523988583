"""Clock steps and their like: what the manager cannot take is never said again in the same words."""

from __future__ import annotations

import signal
from itertools import pairwise

from rota.core.attempts.leases import Finished
from rota.core.jobs.outcome import Outcome
from rota.runner.report.outbox import Outbox
from rota.wire import codec
from rota.wire import messages as m
from tests.runner.manager import FakeManager


def report_of(frame: bytes) -> m.Report:
    reader: codec.Reader[m.FromRunner] = codec.Reader(m.FromRunner)
    (message,) = reader.feed(frame)
    assert isinstance(message, m.Report)
    return message


def test_a_refused_report_is_taken_apart_and_what_is_refused_alone_is_told_in_plainer_words() -> None:
    box = Outbox()
    for n in (1, 2, 3):
        box.end((n, 1, 7), Finished(n, 1, 7, n, Outcome(exit_code=n, started_at=1.0, ended_at=1e30, cpu_s=n)))
    said = [report_of(box.cut())]
    for _ in range(20):
        if said[-1].ended and 2 in [each.job for each in said[-1].ended] and said[-1].ended[0].outcome.ended_at:
            box.refused()  # of these three, the manager cannot take the second
        else:
            box.acknowledge(said[-1].seq)
        if not box.may_cut:
            break
        said.append(report_of(box.cut()))
    assert box.clear
    assert not box.unacked
    assert not box.careful
    ends = [[(each.job, each.outcome) for each in report.ended] for report in said]
    assert all(one != other for one, other in pairwise(ends)), "never the same twice"
    taken = {job: outcome for end in ends for job, outcome in end}
    assert taken[1].cpu_s == 1, "the others are told as they were"
    assert taken[3].cpu_s == 3
    assert (taken[2].exit_code, taken[2].ended_at) == (2, 0.0)


def test_a_runner_gets_rid_of_an_end_that_its_manager_refuses(manager: FakeManager) -> None:
    manager.auto_ack = False
    manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, "exit 3", spec)], spec)
    (first,) = manager.until(lambda: manager.ended)
    heard = [first.outcome]
    for _ in range(3):
        manager.send(m.Failure(0, "protocol", "a report with impossible numbers", ""))
        manager.hang_up()
        manager.ended.clear()
        manager.accept()
        (again,) = manager.until(lambda: manager.ended)
        heard.append(again.outcome)
    assert heard[1] == heard[0], "told anew, in a report of its own"
    assert heard[2] == Outcome(exit_code=3), "plainer"
    assert heard[3].reason == "lost"


def test_an_attempt_whose_runner_died_took_the_time_that_passed_not_that_of_the_clock(
    manager: FakeManager,
) -> None:
    process = manager.begin()
    spec = manager.spec()
    manager.work([manager.grant(1, "exec sleep 600", spec)], spec)
    (started,) = manager.until(lambda: manager.started)
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    manager.begin()
    (settle,) = manager.until(lambda: manager.settles)
    (end,) = settle.ended
    assert end.outcome.started_at == started.started_at
    assert 0 <= end.outcome.ended_at - started.started_at < 600
    assert not end.outcome.by_wall_clock
