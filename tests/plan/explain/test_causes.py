"""Causes: what is named, taken away in a copy of the site, lets the job begin earlier."""

from __future__ import annotations

from datetime import UTC
from typing import Any

from hypothesis import assume, event, given, note
from hypothesis import strategies as st

from rota.plan.ask import Ask
from rota.plan.explain.replanning import lifted
from rota.plan.explain.rivals import begins
from rota.plan.explain.why_waiting import why
from rota.plan.language.request import Alternative, Level, ResourceGroup
from rota.plan.language.types import Types
from rota.plan.need import LimitUse
from rota.plan.planner.planner import Planner
from rota.plan.policy.policy import Policy, Queue
from rota.plan.policy.quotas import Quotas
from rota.plan.reasons import Cause
from rota.plan.schedule.plan_entry import WAITING
from rota.plan.site.clock import Clock
from rota.plan.site.resources import HostFigures, Resource, Site
from tests.dose import dose

HOSTS = {"a": (1, 2), "b": (3, 4), "c": (5, 6)}
RULES: tuple[dict[str, list[float]], ...] = (
    {},
    {},
    {"*,*,*,/": [2, -1, -1]},
    {"*,*,*,/": [-1, 1, -1], "*,*,*,*": [4, -1, -1]},
)

sizes = st.sampled_from(
    (
        ResourceGroup((Level("core", 1),)),
        ResourceGroup((Level("core", 2),)),
        ResourceGroup((Level("core", 4),)),
        ResourceGroup((Level("host", 1), Level("core", 2))),
        ResourceGroup((Level("host", 2), Level("core", 1))),
        ResourceGroup((Level("core", 1),), "host = 'a'"),
    )
)


@st.composite
def asks(draw: st.DrawFn, *, reserve: bool = True) -> Ask:
    """A job, plain or with terms; some have no walltime, and are expected to run for 300 seconds."""
    walltime = draw(st.sampled_from((None, 100.0, 200.0, 400.0)))
    kind = draw(st.sampled_from(("plain", "plain", "plain", "timed", "besteffort", "reserved")))
    types, at = Types(), None
    if kind == "timed":
        name = draw(st.sampled_from(("postpone", "deadline", "expire")))
        types = Types(**{name: draw(st.sampled_from((150.0, 350.0, 700.0)))})
    elif kind == "besteffort":
        types = Types(besteffort=True)
    elif kind == "reserved" and reserve:
        at, walltime = draw(st.sampled_from((150.0, 300.0, 500.0))), walltime or 100.0
    return Ask(
        alternatives=(Alternative((draw(sizes),), walltime),),
        user=draw(st.sampled_from(("ann", "bob"))),
        queue="besteffort" if types.besteffort else "default",
        priority=draw(st.sampled_from((0, 0, 0, 5))),
        time_s=300.0,
        mem=draw(st.sampled_from((0, 0, 2))),
        limits=draw(st.sampled_from(((), (), (LimitUse("licence", 1),)))),
        types=types,
        at=at,
    )


sites = st.builds(
    lambda until, hours, away, mem: Site(
        [Resource(id, {"host": host}) for host, ids in HOSTS.items() for id in ids],
        hosts={host: HostFigures(mem=3) for host in HOSTS} if mem else None,
        until={id: moment for host, moment in until.items() for id in HOSTS[host]},
        hours=hours,
        clock=Clock(UTC),
        usable=[id for host, ids in HOSTS.items() if host not in away for id in ids],
        away=dict.fromkeys(away, "drained"),
    ),
    until=st.sampled_from(({}, {}, {"a": 50.0}, {"b": 250.0}, {"a": 250.0, "b": 250.0, "c": 450.0})),
    hours=st.sampled_from(({}, {}, {"b": "00:05-24:00"})),
    away=st.sampled_from(((), (), ("c",), ("a", "c"))),
    mem=st.booleans(),
)


def planned(site: Site, rules: dict[str, list[float]], jobs: list[Ask], backfill: str) -> Planner:
    """Some jobs come, and those begin whose time has come; a little later others have come as well."""
    queues = {"default": Queue(backfill=backfill), "besteffort": Queue(priority=0)}
    quotas = Quotas(rules, total=site.count) if rules else None
    planner = Planner(site, Policy(queues=queues), quotas=quotas, limits={"licence": 1})
    for id, ask in enumerate(jobs, 1):
        planner.submit(id, ask, 0.0)
        if id % 3 == 0:
            planner.begin(0.0)
    planner.begin(0.0)
    planner.tick(60.0)
    planner.begin(60.0)
    return planner


@given(
    site=sites,
    rules=st.sampled_from(RULES),
    jobs=st.lists(asks(), min_size=1, max_size=9),
    backfill=st.sampled_from(("conservative", "conservative", "conservative", "easy", "none")),
)
@dose(150)
def test_without_the_causes_that_are_named_the_job_begins_earlier(
    site: Site, rules: dict[str, list[float]], jobs: list[Ask], backfill: str
) -> None:
    note(f"until {site.until}, hours {site.hours}, usable {site.usable}, {site.figures}, {rules}, {backfill}")
    planner = planned(site, rules, jobs, backfill)
    note("\n".join(f"{e} {e.rank} {e.resources:b}" for e in planner.plan.entries.values()))
    waiting = [e for e in planner.plan.entries.values() if e.state == WAITING and not e.fixed]
    assume(waiting)
    for entry in waiting:
        if entry.start is not None and entry.start <= planner.plan.now:
            continue
        reasons = why(planner.plan, entry)
        assert reasons
        assert all(each.message for each in reasons)
        note(f"job {entry.id} {entry.start} {entry.ask}: {reasons}")
        if not reasons[0].causes:
            assert reasons[0].code in ("unsatisfiable", "no_resources"), reasons
            continue
        together = any(each.message.startswith("also: ") for each in reasons)
        for some in [reasons] if together else [[each] for each in reasons]:
            causes = {cause for each in some for cause in each.causes}
            for cause in causes:
                event(cause.kind)
            assert begins(lifted(planner.plan, entry.id, causes), entry.id) < begins(planner.plan, entry.id), (
                causes
            )


# ------------------------------------------------------------------ one cause after the other


CORES = Site([Resource(id, {"host": f"h{(id + 1) // 2}"}) for id in range(1, 5)])
HOUR = 3600.0


def job(cores: int, walltime: float | None = HOUR, **more: Any) -> Ask:
    return Ask(alternatives=(Alternative((ResourceGroup((Level("core", cores),)),), walltime),), **more)


def site(**more: Any) -> Site:
    return Site([Resource(id, {"host": f"h{(id + 1) // 2}"}) for id in range(1, 5)], **more)


def test_a_free_core_before_a_reservation_wants_a_walltime_not_the_end_of_another_job() -> None:
    planner = Planner(CORES, Policy())
    planner.submit(1, job(2), 0)
    planner.begin(0)
    planner.submit(2, job(4, at=2 * HOUR), 0)
    (reason,) = why(planner.plan, planner.submit(3, job(1, None), 0))
    assert reason.message.startswith("it has no walltime, and reservation 2 begins in 2h00m: with a walltime of ")
    assert (reason.code, reason.blockers, reason.hint) == ("reservation", (2,), "rota modify 3 --walltime 1h55m")
    assert reason.causes == (Cause("walltime", "7200.000000"),)


def test_a_reservation_that_is_too_near_for_the_expected_time_says_how_short_a_walltime_must_be() -> None:
    planner = Planner(CORES, Policy())
    planner.submit(1, job(1), 0)
    planner.begin(0)
    planner.submit(2, job(3, at=HOUR / 2), 0)
    waits = planner.submit(3, job(1, None), 0)
    first, second = why(planner.plan, waits)
    assert (waits.start, first.hint) == (HOUR, "rota modify 3 --walltime 29m")
    assert (second.code, second.blockers) == ("resources", (1,))


def test_no_reservation_is_named_where_a_host_is_available_until_then() -> None:
    planner = Planner(site(until=dict.fromkeys(range(1, 5), 2 * HOUR)), Policy())
    (soft,) = why(planner.plan, planner.submit(1, job(1, None), 0))
    assert (soft.code, soft.hint) == ("available_until", "rota modify 1 --walltime 1h55m")
    assert "h1 may not be used any more in 2h00m (--available-until)" in soft.message
    (long,) = why(planner.plan, planner.submit(2, job(1, 3 * HOUR), 0))
    assert (long.code, long.causes) == ("available_until", (Cause("available_until", "h1"),))
    assert long.message == "it would take 3h00m, and h1 may not be used any more in 2h00m (--available-until)"


def test_a_host_past_its_time_is_named_beside_the_job_that_holds_the_other() -> None:
    planner = Planner(site(until={1: 10.0, 2: 10.0}), Policy(), now=20.0)
    planner.submit(1, job(2), 20.0)
    planner.begin(20.0)
    holds, over = why(planner.plan, planner.submit(2, job(1), 20.0))
    assert holds.blockers == (1,)
    assert over.message == "h1 may not be used any more: its --available-until is over"
    assert over.hint == "rota node set h1 --available-until never"


def test_postponing_is_no_cause_where_resources_come_later_anyhow() -> None:
    planner = Planner(CORES, Policy())
    planner.submit(1, job(4), 0)
    planner.begin(0)
    (reason,) = why(planner.plan, planner.submit(2, job(1, types=Types(postpone=60.0)), 0))
    assert (reason.code, reason.blockers) == ("resources", (1,))
    (reason,) = why(planner.plan, planner.submit(3, job(1, types=Types(postpone=5 * HOUR)), 0))
    assert (reason.code, reason.causes) == ("delayed", (Cause("postpone"),))


def test_two_quotas_that_bind_together_are_both_named() -> None:
    quotas = Quotas({"*,*,*,/": [1, -1, -1], "*,*,*,*": [-1, 1, -1]}, total=4)
    planner = Planner(CORES, Policy(), quotas=quotas)
    planner.submit(1, job(1, user="ann"), 0)
    planner.begin(0)
    first, second = why(planner.plan, planner.submit(2, job(1, user="ann"), 0))
    assert {first.causes[0].name, second.causes[0].name} == {"*,*,*,/", "*,*,*,*"}
    assert second.message.startswith("also: quota ")


def test_who_would_take_the_place_first_is_named_too() -> None:
    planner = Planner(CORES, Policy())
    planner.submit(1, job(4), 0)
    planner.begin(0)
    planner.submit(2, job(4), 0)
    waits = planner.submit(3, job(4), 0)
    (reason,) = why(planner.plan, waits)
    assert set(reason.blockers) == {1, 2}
    assert begins(lifted(planner.plan, 3, reason.causes), 3) == 0


def test_a_reservation_on_a_host_that_is_drained_or_closed_then_is_in_danger() -> None:
    planner = Planner(CORES, Policy())
    reserved = planner.submit(1, job(4, at=HOUR), 0)
    assert "danger" not in why(planner.plan, reserved)[0].message
    drained = site(usable=[1, 2], away={"h2": "drained"}, reasons={"h2": "new disk"})
    planner.change_site(drained, 10.0)
    (reason,) = why(planner.plan, reserved)
    assert reason.message.endswith("; in danger: h2 is drained (new disk)")
    assert reason.hint == "rota node set h2 --no-drain"
    planner.change_site(site(until={1: 1.5 * HOUR, 2: 1.5 * HOUR}), 20.0)
    (reason,) = why(planner.plan, reserved)
    assert reason.message.endswith("; in danger: h1 may not be used any more then (--available-until)")


def test_a_reservation_that_is_refused_names_the_hosts_that_are_closed_then() -> None:
    planner = Planner(site(until=dict.fromkeys(range(1, 5), HOUR)), Policy())
    refused = planner.submit(1, job(1, at=2 * HOUR), 0)
    assert refused.reason is not None
    assert refused.reason.message.endswith("h1, h2 may not be used any more then (--available-until)")
