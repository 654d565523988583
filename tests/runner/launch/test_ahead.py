"""Leases that an agent hands to its launcher ahead: taken back, given to other seats, in order, each run once."""

from __future__ import annotations

import os
from pathlib import Path

from rota.launcher import journal
from rota.wire import messages as m
from tests.runner.launch.test_succession import kill, launchers
from tests.runner.manager import FakeManager, ref

_WAITS = "while [ ! -e {gate} ]; do sleep 0.01; done"


def _lasting(manager: FakeManager, texts: list[str], *, seats: int = 1) -> list[m.Grant]:
    """A runner that has these leases. A quiet job before them lets their seats hold leases ahead."""
    spec = manager.spec()
    grants = [manager.grant(n + 1, text, spec) for n, text in enumerate(texts)]
    manager.work(grants, spec, seats=seats)
    return grants


def _gate(manager: FakeManager, name: str = "gate") -> tuple[Path, str]:
    path = manager.home / name
    return path, _WAITS.format(gate=path)


def _runs(manager: FakeManager, job: int) -> bool:
    return any(each.job == job for each in manager.started)


def _witnesses(manager: FakeManager) -> list[str]:
    return sorted(path.name for path in manager.home.glob("ran-*"))


def _touch(manager: FakeManager, job: int) -> str:
    return f"mkdir {manager.home}/ran-{job}"  # fails the second time


def test_many_short_jobs_run_once_each_and_end_well(manager: FakeManager) -> None:
    manager.begin()
    done = manager.run(*(_touch(manager, n) for n in range(60)), seats=2)
    assert {(each.outcome.exit_code, each.outcome.reason) for each in done} == {(0, "")}
    assert len(_witnesses(manager)) == 60
    assert all(each.outcome.started_at <= each.outcome.ended_at for each in done)


def test_leases_that_are_recalled_or_killed_are_handed_back_and_never_started(manager: FakeManager) -> None:
    manager.begin()
    gate, waits = _gate(manager)
    grants = _lasting(manager, ["true", waits, *(_touch(manager, n) for n in (3, 4, 5))])
    manager.until(lambda: _runs(manager, 2))
    manager.send(m.Recall([ref(grants[2])]))
    manager.send(m.Kill([ref(grants[3])]))
    manager.until(lambda: {ref(grants[2]), ref(grants[3])} <= set(manager.returned))
    gate.touch()
    manager.wait_for([1, 2, 5])
    assert _witnesses(manager) == ["ran-5"]


def test_a_free_seat_takes_what_is_held_behind_a_long_job(manager: FakeManager) -> None:
    manager.begin()
    gate, waits = _gate(manager)
    # Both seats have run something quiet, so both hold leases; one of them then has a long job.
    _lasting(manager, ["true", "true", waits, *(_touch(manager, n) for n in range(4, 10))], seats=2)
    manager.wait_for([*range(4, 10)])
    assert not any(each.job == 3 for each in manager.ended)
    gate.touch()
    manager.wait_for([3])


def test_a_lease_of_lower_rank_is_started_before_those_that_are_held(manager: FakeManager) -> None:
    manager.begin()
    gate, waits = _gate(manager)
    order = manager.home / "order"
    _lasting(manager, ["true", waits, f"echo 3 >> {order}", f"echo 4 >> {order}"])
    manager.until(lambda: _runs(manager, 2))
    spec = manager.spec()
    manager.work([manager.grant(9, f"echo 9 >> {order}", spec, rank=0)], spec, seats=0)
    manager.read(0.2)
    gate.touch()
    manager.wait_for([3, 4, 9])
    assert order.read_text().split() == ["9", "3", "4"]


def test_after_the_death_of_the_agent_what_was_held_was_not_started(manager: FakeManager) -> None:
    manager.begin()
    gate, waits = _gate(manager)
    grants = _lasting(manager, ["true", waits, _touch(manager, 3), _touch(manager, 4)])
    manager.until(lambda: _runs(manager, 2))
    kill(manager, manager.processes[-1])
    gate.touch()
    manager.spawn()
    join = manager.accept()
    # The end of the quiet job counts as held too while the dead agent has not recorded or read that it was heard.
    assert {2} <= {each.job for each in join.held} <= {1, 2}
    manager.wait_for([1, 2])
    assert {(each.job, each.outcome.exit_code) for each in manager.ended} == {(1, 0), (2, 0)}
    assert not _witnesses(manager)
    told = [each for settle in manager.settles for each in settle.ended]
    assert not {each.job for each in told} & {3, 4}, "what was never started has no end"
    # It may be leased again.
    spec = manager.spec()
    again = [manager.grant(each.job, str(each.cmd), spec, attempt=2) for each in grants[2:]]
    manager.work(again, spec)
    manager.wait_for([3, 4])
    assert _witnesses(manager) == ["ran-3", "ran-4"]


def test_after_the_death_of_the_launcher_what_was_held_is_started_by_the_next(manager: FakeManager) -> None:
    manager.begin()
    gate, waits = _gate(manager)
    _lasting(manager, ["true", waits, _touch(manager, 3), _touch(manager, 4)])
    manager.until(lambda: _runs(manager, 2))
    (launcher,) = launchers(manager)
    os.kill(launcher, 9)
    manager.read(0.2)
    gate.touch()
    done = manager.wait_for([2, 3, 4])
    assert [each.outcome.exit_code for each in done] == [0, 0, 0]
    assert _witnesses(manager) == ["ran-3", "ran-4"]


def test_the_journal_of_the_launcher_has_no_intent_for_what_is_held(manager: FakeManager) -> None:
    manager.begin()
    gate, waits = _gate(manager)
    grants = _lasting(manager, ["true", waits, _touch(manager, 3)])
    manager.until(lambda: _runs(manager, 2))
    (place,) = manager.runners.glob("*/launcher-*")

    def known() -> set[int]:
        return {key[0] for key in journal.read(str(place)).tasks}

    assert 3 not in known()
    gate.touch()
    manager.wait_for([3])
    assert _witnesses(manager) == ["ran-3"]
    assert len(grants) == 3


def test_output_of_jobs_that_follow_quiet_ones_is_their_own(manager: FakeManager) -> None:
    manager.begin()
    texts = ["true" if n % 3 else f"echo {n}; exit {n % 2}" for n in range(40)]
    done = manager.run(*texts, seats=2)
    for n, each in enumerate(done):
        loud = not n % 3
        assert manager.output(each)[0] == (b"%d\n" % n if loud else b""), f"job {n}"
        assert each.outcome.exit_code == (n % 2 if loud else 0)
