"""What the placement is told before it decides: the site and its rules as they are now, and the leases."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from rota.core.accounts.fair_share_usage import usage_of
from rota.core.attempts import suspension_phases
from rota.core.attempts.parts import all_leased
from rota.core.gangs.gang_state import find_gang
from rota.core.jobs.job import Job
from rota.core.machines.hold_records import rooms_kept
from rota.core.machines.hosts import site_now
from rota.core.machines.machine_access import caps_of
from rota.core.site.policy import policy_of, quotas_of
from rota.core.world import World
from rota.plan.ask import Ask, ask_of
from rota.plan.placement.facts import Lacks, Rules
from rota.plan.placement.leases import Held
from rota.plan.policy.policy_records import decides_plans
from rota.plan.policy.quotas import Quotas
from rota.plan.site.clock import Clock
from rota.plan.site.resources import Site
from rota.plan.size import Size

#: Kinds of site records that need a planner.
_RULES = ("quota", "resource")
#: Fields of host records that need a planner; packing handles the others.
_HOST_RULES = ("limits", "available_until", "hours")


def inform(world: World, wall: float, *, anew: bool = False) -> None:
    """Tell the placement what it must know for its next decision. It asks nothing while it decides."""
    placement = world.placement
    while lacks := placement.lacks(wall, anew=anew):
        if lacks is Lacks.VERDICT:  # all that most steps lack; operators of flags are slow
            placement.tell_verdict(rules_need_plan(world))
            continue
        if lacks & Lacks.VERDICT:
            placement.tell_verdict(rules_need_plan(world))
        if lacks & Lacks.RULES:
            placement.tell_rules(rules_now(world, wall))
        if lacks & Lacks.LEASES:
            placement.tell_leases(leases_out(world))


def rules_need_plan(world: World) -> bool:
    """Has the site rules that only a plan can keep?"""
    # Asked in every step, so without generators.
    site = world.site
    for needs in world.points.needs_plan:
        if needs(world):
            return True
    for kind in _RULES:
        if site.get(kind):
            return True
    for name, record in site["queue"].items():
        if decides_plans(name, record):
            return True
    for record in site["machine_group"].values():
        if record.get("cap") is not None:
            return True
    # For thousands of hosts. Changed records are new objects, so identity tells.
    hosts, nodes, rules = world.host_rules
    if hosts is not site["host"] or nodes is not site["node"]:
        rules = any(record.get(field) for record in site["host"].values() for field in _HOST_RULES)
        rules = rules or any(record.get("hours") for record in site["node"].values())
        world.host_rules = (site["host"], site["node"], rules)
    return rules


def rules_now(world: World, wall: float) -> Rules:
    """The site as it is now, and what it lets jobs do."""
    site, policy = site_now(world), policy_of(world.site)
    return Rules(
        site,
        policy,
        usage_of(world, policy, wall),
        quotas_now(world, site),
        world.settings.patience_s,
        world.settings.special_hosts,
        world.settings.vacate_times,
        gang_patience_s=world.settings.gang_patience_s,
        caps=caps_of(world.site),
    )


def quotas_now(world: World, site: Site) -> Quotas | None:
    """Who may hold how much, and what was used of it; None: there are no quotas."""
    zone = world.zone
    clock = Clock(zone if isinstance(zone, ZoneInfo) else ZoneInfo("UTC"))
    quotas = quotas_of(world.site, site.count, clock)
    if quotas is not None:
        quotas.remember(world.spent)
    return quotas


def leases_out(world: World) -> list[Held]:
    """All leases that are out and take a core of ours."""
    found = []
    made = {runner.host for runner in world.runners.values() if runner.made_for is not None}
    asks: dict[tuple[int, Size], Ask] = {}
    for job, host in all_leased(world):
        lease = job.lease
        assert lease is not None
        if host in made or (not job.size.cpus and not job.spec.on_terms):
            continue
        since = lease.started_at if lease.started_at is not None else lease.leased_at
        resources = lease.given.resources if lease.given is not None else ""
        end, gone = suspension_phases.expected_end(job), suspension_phases.away(job)
        if end is not None and job.spec.reserve == "always":
            end += job.spec.reserve_for_s or 0.0
        ask = _ask_of_lease(world, job, asks)
        gang = find_gang(world, job.id) if job.spec.gang else None
        number = gang.members[0] if gang is not None else 0
        held = Held(job.id, host, since, ask, job.submitted_at, resources, job.spec.on_terms, end, gone, number)
        found.append(held)
    return found + rooms_kept(world)


def ask_of_lease(world: World, job: Job) -> Ask:
    """What this leased job asked for."""
    return _ask_of_lease(world, job, {})


def _ask_of_lease(world: World, job: Job, asks: dict[tuple[int, Size], Ask]) -> Ask:
    """What this leased job asked for. `asks`: those of equal jobs."""
    lease = job.lease
    held = lease is not None and lease.given is not None and lease.given.elsewhere
    size = job.spec.size if held else job.size  # what it holds, not what it takes where it executes
    ask = asks.get((job.spec_id, size))
    if ask is None:
        leave_s = world.settings.vacate_times.leave_s(job.spec)
        ask = asks[job.spec_id, size] = ask_of(job.spec, size, leave_s=leave_s)
    return ask
