"""Quotas as they are answered: with their limits as numbers, and those who hold most."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any, cast

from rota.core.world import World
from rota.manager.views.quotas import view
from rota.plan.dispatch.planning import Planning
from rota.plan.policy.quota_records import sets_of
from rota.plan.policy.quota_rules import QuotaSubject
from rota.plan.policy.quotas import Quotas


def record(rule: str, *limits: float | str, of: str = "") -> dict[str, Any]:
    return {"rule": rule, "limits": list(limits), **({"set": of} if of else {})}


def test_without_a_plan_nothing_is_held() -> None:
    world = World(Planning())
    assert world.placement.planner is None
    world.site["quota"] = {
        "*,*,*,*": record("*,*,*,*", 4),
        "*,*,*,/": record("*,*,*,/", -1),
        "night: *,*,*,/": record("*,*,*,/", 2, of="night"),
    }
    found = view(world, 0.0)
    assert list(found.records) == list(found.use) == list(world.site["quota"])
    together, nothing, night = found.use.values()
    assert (together.resources, together.jobs, together.applies) == (4, None, True)
    assert [(each.who, each.resources, each.jobs) for each in together.holders] == [({}, 0, 0)]
    assert (nothing.resources, nothing.holders) == (None, [])
    assert (night.applies, night.holders) == (False, [])


def test_of_many_holders_those_nearest_to_a_limit_are_told() -> None:
    records = {"*,/,*,/": record("*,/,*,/", "0.5*ALL", 3)}
    quotas = Quotas(sets_of(records)[""], total=200)
    job = 0
    for number in range(1, 31):
        who = QuotaSubject(user=f"user{number:02}", project="p")
        for _ in range(3 if number == 7 else 1):
            job += 1
            counted = quotas.counted(who)
            assert counted is not None
            quotas.take(counted, job, number, 0.0, 60.0)
    plan = SimpleNamespace(quotas=quotas, running=dict.fromkeys(range(1, job + 1)))
    planner = SimpleNamespace(plan=plan)
    world = SimpleNamespace(
        site={"quota": records}, site_version=5, placement=SimpleNamespace(planner=planner), spent={}
    )
    found = view(cast(World, world), 30.0)
    use = found.use["*,/,*,/"]
    assert (found.version, use.resources, use.jobs, use.more) == (5, 100, 3, 10)
    # Of its three jobs user07 has all, of the resources it has fewer than others.
    assert [each.who["user"] for each in use.holders] == ["user07", *(f"user{n:02}" for n in range(30, 11, -1))]
    assert use.holders[0].who == {"project": "p", "user": "user07"}
    assert (use.holders[0].resources, use.holders[0].jobs) == (21, 3)
