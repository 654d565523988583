"""Leases wait for a seat of their size, the lowest rank starts first, idle seats are given back."""

from __future__ import annotations

from rota.plan.size import Size
from rota.wire import messages as m
from tests.runner.manager import FakeManager, ref


def test_the_lowest_rank_starts_first(joined: FakeManager) -> None:
    spec = joined.spec()
    ranks = [5, 3, 9, 1, 7]
    grants = [joined.grant(n, f"echo {rank} >> order", spec, rank=rank) for n, rank in enumerate(ranks, 1)]
    joined.work(grants, spec, seats=1)
    joined.wait_for([1, 2, 3, 4, 5])
    assert (joined.home / "order").read_text().split() == ["1", "3", "5", "7", "9"]


def test_a_seat_without_work_is_given_back_after_its_last_job(joined: FakeManager) -> None:
    joined.run("true", "true", "true", seats=2)
    joined.until(lambda: len(joined.closed) == 2)
    assert sorted(joined.closed) == [1, 2]
    joined.run("true", seats=1)
    joined.until(lambda: 3 in joined.closed)


def test_a_seat_for_which_nothing_came_is_given_back_at_once(joined: FakeManager) -> None:
    joined.work([], seats=3)
    joined.until(lambda: sorted(joined.closed) == [1, 2, 3])


def test_seats_take_only_leases_of_their_size(joined: FakeManager) -> None:
    small, big = joined.spec(), joined.spec(size=Size(cpus=400))
    joined.work([joined.grant(1, "true", small), joined.grant(2, "true", big)], small, big, seats=1)
    joined.wait_for([1])
    joined.until(lambda: joined.closed == [1])
    assert [done.job for done in joined.ended] == [1]
    joined.work([], seats=joined.seats(1, Size(cpus=400)))
    joined.wait_for([2])


def test_recalled_leases_are_handed_back_and_never_run(joined: FakeManager) -> None:
    spec = joined.spec()
    first = joined.grant(1, "while ! test -e go; do sleep 0.01; done", spec)
    second = joined.grant(2, "touch ran", spec)
    joined.work([first, second], spec, seats=1)
    joined.until(lambda: joined.started)
    joined.send(m.Recall([ref(first), ref(second)]))
    joined.until(lambda: joined.returned == [ref(second)])
    (joined.home / "go").touch()
    (done,) = joined.wait_for([1])
    assert done.outcome.exit_code == 0
    assert not (joined.home / "ran").exists()


def test_a_lease_told_twice_runs_once(joined: FakeManager) -> None:
    spec = joined.spec()
    grant = joined.grant(1, "echo x >> runs", spec)
    joined.auto_ack = False
    joined.work([grant, grant], spec, seats=2)
    joined.wait_for([1])
    joined.work([grant], spec, seats=1)
    joined.until(lambda: 3 in joined.closed)
    assert (joined.home / "runs").read_text() == "x\n"


def test_a_lease_of_an_unknown_specification_is_handed_back(joined: FakeManager) -> None:
    grant = m.Grant(1, 1, 1, 77, "true", 1)
    joined.work([grant], seats=1)
    joined.until(lambda: joined.returned == [ref(grant)])


def test_starts_are_told_and_short_jobs_only_once(joined: FakeManager) -> None:
    spec = joined.spec()
    joined.work([joined.grant(1, "while ! test -e go; do sleep 0.01; done", spec)], spec)
    (started,) = joined.until(lambda: joined.started)
    assert (started.job, started.seat) == (1, 1)
    assert started.pid > 1
    (joined.home / "go").touch()
    joined.wait_for([1])
    for report in joined.reports:
        assert not {s.job for s in report.started} & {f.job for f in report.ended}
