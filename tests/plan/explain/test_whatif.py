"""What if: the answer is that of a submission, and asking changes nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from rota.plan.ask import Ask
from rota.plan.explain.whatif import WhatIfAnswer, ask_snapshot
from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.language.types import Types
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy, Queue
from rota.plan.policy.quotas import Quotas
from rota.plan.schedule.plan_entry import WAITING, PlanEntry
from rota.plan.site.resources import Resource, Site
from tests.dose import histories
from tests.plan.fingerprint import everything
from tests.plan.planner.test_planner_machine import QUEUES, Plans

#: Plans are compared in all they consist of, which takes longer than planning.
FEWER = histories(20, steps=15)

CORES = Site([Resource(id, {"host": f"h{(id + 1) // 2}"}) for id in range(1, 5)])


def ask_when(planner: Planner, ask: Ask, now: float) -> WhatIfAnswer:
    """As the manager asks: of a snapshot."""
    return ask_snapshot(planner.snapshot(), ask, now)


def asks(cores: int, walltime: float = 10.0, **more: Any) -> Ask:
    return Ask(alternatives=(Alternative((ResourceGroup((Level("core", cores),)),), walltime),), **more)


class Watched:
    """A planner that looks at each submission."""

    def __init__(self, planner: Planner, look: Callable[[PlanEntry], None]) -> None:
        self._planner = planner
        self._look = look

    def __getattr__(self, name: str) -> Any:
        return getattr(self._planner, name)

    def submit(self, *args: Any, **more: Any) -> PlanEntry:
        entry = self._planner.submit(*args, **more)
        self._look(entry)
        return entry


class Asked(Plans):
    """Before each submission of a random history it is asked what it would decide."""

    compared = False

    def both_agree(self) -> None:
        """That plans are right is shown elsewhere."""

    promises_are_kept_or_spoken_of = the_plan_is_sound = both_agree

    def _submit(self, ask: Ask, *, real: float, after: tuple[int, ...] = ()) -> None:
        if after:  # only what has no dependencies can be asked about
            super()._submit(ask, real=real, after=after)
            return
        planner = self.planner
        before = everything(planner)
        starts = {
            e.id: e.start for e in planner.plan.entries.values() if e.state == WAITING and e.start is not None
        }
        answer = ask_when(planner, ask, self.now)
        assert everything(planner) == before, "asking changed the plan"

        def look(entry: PlanEntry) -> None:
            kept = entry.id in planner.plan.entries
            assert answer[:4] == (
                (entry.start, entry.end, entry.resources, entry.alternative) if kept else (None, None, 0, 0)
            )
            assert answer.moves == sorted(
                id
                for id, start in starts.items()
                if (later := planner.plan.entries[id].start) is None or later > start
            )

        self.planner = Watched(planner, look)
        try:
            super()._submit(ask, real=real)
        finally:
            self.planner = planner


class AskedEasily(Asked):
    policy = Policy(queues={name: Queue(priority=each.priority, backfill="easy") for name, each in QUEUES.items()})


class AskedFairly(Asked):
    policy = Policy(
        queues={name: Queue(priority=each.priority, order="fairshare") for name, each in QUEUES.items()}
    )


TestAsked = Asked.TestCase
TestAsked.settings = FEWER
TestAskedEasily = AskedEasily.TestCase
TestAskedEasily.settings = FEWER
TestAskedFairly = AskedFairly.TestCase
TestAskedFairly.settings = FEWER


def test_an_answer_names_start_end_resources_and_who_would_begin_later() -> None:
    planner = Planner(CORES, Policy())
    planner.submit(1, asks(4), 0)
    planner.begin(0)
    planner.submit(2, asks(2), 0)
    urgent = ask_when(planner, asks(4, 5.0, priority=9), 1.0)
    assert (urgent.start, urgent.end, urgent.resources, urgent.moves) == (10.0, 15.0, 0b1111, [2])
    assert [(each.code, each.blockers) for each in urgent.reasons] == [("resources", (1,))]
    last = ask_when(planner, asks(2), 1.0)
    assert (last.start, last.resources, last.moves) == (10.0, 0b1100, [])


def test_of_alternatives_the_one_that_ends_first_is_named() -> None:
    planner = Planner(CORES, Policy())
    planner.submit(1, asks(3), 0)
    planner.begin(0)
    ask = Ask(alternatives=(*asks(2, 5.0).alternatives, *asks(1, 12.0).alternatives))
    answer = ask_when(planner, ask, 0)
    assert (answer.alternative, answer.start, answer.end) == (1, 0.0, 12.0)
    assert answer.reasons == []


def test_what_never_fits_and_what_a_quota_forbids_say_so() -> None:
    planner = Planner(CORES, Policy(), quotas=Quotas({"*,*,*,/": [2, -1, -1]}, total=4))
    never = ask_when(planner, asks(9), 0)
    assert (never.start, [each.code for each in never.reasons]) == (None, ["unsatisfiable"])
    over = ask_when(planner, asks(3, user="ann"), 0)
    assert (over.start, [each.code for each in over.reasons]) == (None, ["quota"])
    assert "*,*,*,/" in over.reasons[0].message
    assert not planner.plan.entries


def test_a_reservation_that_would_be_rejected_says_why() -> None:
    planner = Planner(CORES, Policy())
    planner.submit(1, asks(4, at=20.0), 0)
    refused = ask_when(planner, asks(1, at=25.0), 0)
    assert (refused.start, [each.code for each in refused.reasons]) == (None, ["reservation"])
    assert ask_when(planner, asks(1, at=30.0), 0).start == 30.0
    assert list(planner.plan.entries) == [1]


def test_an_inner_job_can_be_asked_about() -> None:
    planner = Planner(CORES, Policy())
    planner.submit(1, asks(2, 50.0, types=Types(container=True)), 0)
    assert ask_when(planner, asks(2, types=Types(inner="1")), 0).start == 0.0
    assert [each.code for each in ask_when(planner, asks(3, types=Types(inner="1")), 0).reasons] == ["container"]
