"""Explain why a job is not running: the reasons, the jobs behind them, and what would help."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct, structs

from rota.core.gangs.gang_state import find_gang, open_members
from rota.core.gangs.missing import waits_by_itself
from rota.core.jobs.dependencies import culprits, verdict
from rota.core.jobs.job import After, Condition, Job
from rota.core.jobs.retry import reservation_over
from rota.core.machines.hosts import site_now
from rota.core.pools.waiting import PoolWait, waits_for_pool
from rota.core.site.limits import array_limit
from rota.core.site.manager_pause import why_nothing_starts
from rota.core.states import State
from rota.core.world import World
from rota.plan.explain import why_waiting
from rota.plan.explain.cause_texts import ids_text
from rota.plan.language.hostlist import fold
from rota.plan.reasons import Cause, Waits
from rota.plan.schedule.plan_entry import WAITING
from rota.plan.schedule.unusable_hosts import away_hosts
from rota.plan.site.bitset import spans_of
from rota.pool_names import LOCAL, NODES, PLANNED, is_delegated
from rota.units import about_duration

#: Blockers named per reason.
MOST_BLOCKERS = 100
#: Selectors per suggested command.
_MOST_WORDS = 20
_HIGHEST = 255
_STATUS = "rota manager status"

#: Reasons of our own hosts that mean nothing where a job may run elsewhere, or (True) runs only there.
_SAID_ELSEWHERE = {False: ("unsatisfiable",), True: ("unsatisfiable", "resources", "no_resources", "condition")}

_WAITED_FOR = {
    Condition.OK: "waits for {}",
    Condition.ANY: "waits for {} to end",
    Condition.NOT_OK: "waits for {} to fail",
}


class Explanation(Struct, frozen=True, gc=False):
    """One reason: a stable code, a sentence, the jobs behind it, and a command that may help."""

    code: str
    message: str
    blockers: list[int] = []
    hint: str = ""
    causes: list[Cause] = []  #: what would have to be taken away for the job to begin, or to begin earlier


def why(world: World, job: Job, *, wall: float) -> list[Explanation]:
    """Return everything that keeps a job from running now."""
    match job.state:
        case State.DEPENDENT | State.BLOCKED:
            return list(_dependencies(world, job))
        case State.HELD:
            reasons = [
                Explanation(
                    "held", _reason_text(job, "held"), hint=f"rota release {job.id}", causes=[Cause("hold")]
                )
            ]
            return [*reasons, *_dependencies(world, job)]
        case State.DELAYED:
            reasons = [_delayed(job, wall)]
            return [*reasons, *_dependencies(world, job)]
        case State.READY:
            return _ready(world, job)
        case State.LOST:
            return [
                Explanation("lost", _reason_text(job, "its runner is silent"), hint=f"rota confirm-dead {job.id}")
            ]
        case State.FINISHING:
            code = job.reason.code if job.reason is not None else "kill_requested"
            return [Explanation(code, _reason_text(job, "it is being ended"))]
        case State.SCHEDULED | State.STARTING:
            if job.reason is not None:
                return [Explanation(job.reason.code, job.reason.message)]
            where = world.runners[job.lease.runner].host if job.lease else "a runner"
            return [Explanation("resources", f"it was sent to {where} and starts there next")]
        case State.SUSPENDED:
            return _suspended(world, job)
        case State.RUNNING:
            given = job.lease.given if job.lease is not None else None
            return [Explanation("reservation", given.fewer)] if given is not None and given.promised else []
        case State.COMPLETE:
            return []
    reason = job.reason
    futile = world.is_replaced(job.id) or reservation_over(world, job, wall)
    hint = "" if futile else f"rota retry {job.id}"
    return [Explanation(reason.code, reason.message, hint=hint)] if reason else []


def replaced(by: int) -> Explanation:
    """Explain a replaced job; 0: it has no successor."""
    if not by:
        return Explanation("replaced", "its input has no such line any more")
    return Explanation("replaced", f"job {by} has taken its place", hint=f"rota show {by}")


def _suspended(world: World, job: Job) -> list[Explanation]:
    """Explain a suspended job: it was told to stop, or waits for its cores."""
    code = job.reason.code if job.reason is not None else "suspended"
    if code != "resuming":
        return [Explanation("suspended", _reason_text(job, "suspended"), hint=f"rota resume {job.id}")]
    planner = world.placement.planner
    entry = planner.plan.entries.get(job.id) if planner is not None else None
    if planner is None or entry is None or entry.state != WAITING:
        return [Explanation(code, _reason_text(job, "it is about to go on"))]
    found = why_waiting.why(planner.plan, entry)
    blockers = [id for waits in found for id in waits.blockers][:MOST_BLOCKERS]
    return [Explanation(code, f"resuming: {found[0].message}", blockers)]


def _delayed(job: Job, wall: float) -> Explanation:
    left = (job.due_at or wall) - wall
    text = _reason_text(job, "tried again soon")
    if left > 0:
        text = text.replace("tried again at", f"tried again in {about_duration(left)}, at", 1)
    return Explanation("delayed", text, hint=f"rota show {job.id}", causes=[Cause("delay")])


def _reason_text(job: Job, otherwise: str) -> str:
    return job.reason.message if job.reason else otherwise


def _dependencies(world: World, job: Job) -> Iterator[Explanation]:
    for after in job.after:
        ok, never = verdict(world, after.parent, after.condition)
        if not ok:
            yield _dependency(world, after, never=never)
    if job.spec.gang:
        yield from _missing_members(world, job)


def _missing_members(world: World, job: Job) -> Iterator[Explanation]:
    """Explain that other members of the gang are not ready."""
    gang = find_gang(world, job.id)
    if gang is None:
        return
    others = [each for each in open_members(world, gang) if each.id != job.id]
    missing = [each for each in others if waits_by_itself(world, each)]
    if missing:
        names = ", ".join(
            f"{gang.roles[each.id]} (job {each.id}), which is {each.state.label}" for each in missing
        )
        ids = [each.id for each in missing]
        message = f"its gang '{gang.name}' is not complete: it waits for {names}"
        yield Explanation("gang", message, ids[:MOST_BLOCKERS], f"rota why {ids[0]}")


def _dependency(world: World, after: After, *, never: bool) -> Explanation:
    parent, code = after.parent, "dependency_never" if never else "dependency"
    if isinstance(parent, int):
        known = world.jobs.get(parent)
        state = known.state if known is not None else State(world.outcome(parent))
        message = f"{_WAITED_FOR[after.condition].format(f'job {parent}')}, which is {state.label}"
        hint = f"rota retry {parent}" if state in (State.FAILED, State.CANCELLED) else f"rota why {parent}"
        return Explanation(code, message, [parent], hint, [Cause("dependency", str(parent))])
    group = world.groups[parent]
    wants_ok = after.condition is Condition.OK
    blockers = [*islice(culprits(world, parent, after.condition), MOST_BLOCKERS)] if never else list(group.open)
    message = _WAITED_FOR[after.condition].format(f"group '{parent}'")
    if not group.known:
        return Explanation(code, f"{message}, which has no member yet", [], f"add jobs with --dep-group {parent}")
    parts = []
    if number := len(group.open):
        parts.append(f"{number:,} of its jobs {'has' if number == 1 else 'have'} not ended")
    if group.bad and wants_ok:
        verb = "was" if len(group.bad) == 1 else "were"
        parts.append(f"{len(group.bad):,} failed or {verb} cancelled ({_jobs_text(group.bad)})")
    if group.complete and after.condition is Condition.NOT_OK:
        parts.append(
            f"{group.complete:,} completed" + (f" ({_jobs_text([group.latest])})" if group.latest else "")
        )
    stuck = [id for id in blockers if never and id in group.open]
    if stuck:
        parts.append(f"{group.blocked:,} {'is' if group.blocked == 1 else 'are'} blocked ({_jobs_text(stuck)})")
    hint = f"rota retry {_named(world, group.bad)}" if never and wants_ok and group.bad else ""
    if stuck and not hint:
        hint = f"rota why {stuck[0]}"
    message = f"{message}: {', '.join(parts)}"
    return Explanation(code, message, blockers[:MOST_BLOCKERS], hint, [Cause("dependency", parent)])


def _jobs_text(ids: Iterable[int]) -> str:
    some = sorted(ids)
    return f"{'job' if len(some) == 1 else 'jobs'} {ids_text(some)}"


def _named(world: World, ended: Iterable[int]) -> str:
    """Selectors for these ended jobs: their ids, or their range and states if there are too many."""
    ids = sorted(ended)
    words = spans_of(ids).split(",")
    if len(words) > _MOST_WORDS:
        states = dict.fromkeys(State(world.outcome(id)).label for id in ids)
        words = [f"{ids[0]}-{ids[-1]},state={state}" for state in states]
    return " ".join(words)


def _ready(world: World, job: Job) -> list[Explanation]:
    stopped = why_nothing_starts(world)
    if stopped is not None:
        causes = [Cause(stopped.code)]
        return [Explanation(stopped.code, stopped.message, hint="rota manager resume", causes=causes)]
    found: list[Explanation] = list(_missing_members(world, job)) if job.spec.gang else []
    if found:
        return found
    if job.avoid:
        found.append(_avoids(job))
    planned = world.placement.planned(job.id)
    elsewhere = _elsewhere(world, job)
    no_hosts = _no_hosts(world)
    for reason in world.placement.why(job.need, job.rank_key, job.id):
        if elsewhere is not None and reason.code in _SAID_ELSEWHERE[is_delegated(job.spec.pool) or no_hosts]:
            continue
        waits = (
            _closed(world, job, reason)
            if reason.code == "no_resources" and planned is None and job.spec.at is None
            else reason
        )
        if waits.code == "window":
            found.append(Explanation("window", waits.message, hint=waits.hint, causes=list(waits.causes)))
        elif waits.code == "limit":
            found.append(_limited(world, waits))
        elif waits.ahead is not None:
            hint = _urgently(job) if job.spec.priority < _HIGHEST else f"rota why {waits.ahead}"
            causes = list(waits.causes) or [Cause("job", str(waits.ahead))]
            found.append(Explanation(waits.code, waits.message, [waits.ahead], hint, causes))
        elif planned is None and not waits.blockers and waits.code in ("resources", "no_resources"):
            holders = sorted(id for runner in world.runners.values() for id in runner.leases)
            hint = _urgently(job) if job.spec.priority < _HIGHEST and "before it" in waits.message else ""
            hint = waits.hint or hint or _hint(world, job, waits)
            causes = [Cause("job", str(id)) for id in holders]
            found.append(Explanation(waits.code, waits.message, holders[:MOST_BLOCKERS], hint, causes))
        else:
            blockers = list(waits.blockers[:MOST_BLOCKERS])
            hint = waits.hint or _hint(world, job, waits)
            found.append(Explanation(waits.code, waits.message, blockers, hint, list(waits.causes)))
    if elsewhere is not None and (elsewhere.holds or not found):
        waits = elsewhere.waits
        found.append(Explanation(waits.code, waits.message, hint=waits.hint))
    return [_of_array(job, each) for each in found]


def _avoids(job: Job) -> Explanation:
    """Machines that could not be provisioned for it, which it never gets again."""
    said = f"{fold(job.avoid)} could not be provisioned for it and will not be tried again"
    return Explanation("provision", said, hint=f"if that is mended: rota kill {job.id}, rota retry {job.id}")


def _elsewhere(world: World, job: Job) -> PoolWait | None:
    """What keeps it from running where another engine has the machines; None: it would not run there."""
    return waits_for_pool(world, job) if world.settings.pools or is_delegated(job.spec.pool) else None


def _of_array(job: Job, found: Explanation) -> Explanation:
    """Users never see the name of an array's own limit, so name the array instead."""
    if job.element is None or not (name := array_limit(job.spec.limits)):
        return found
    return structs.replace(
        found, message=found.message.replace(f"limit '{name}'", f"limit of array {job.element.array}")
    )


def _no_hosts(world: World) -> bool:
    """Has the deployment no host of its own, and is none to come?"""
    return not world.settings.local and not any(each.pool in PLANNED for each in world.capacity.values())


def _closed(world: World, job: Job, waits: Waits) -> Waits:
    """If hosts exist but none is usable, name them and say why. If there are none, say where they are missing."""
    if job.spec.pool == NODES and not world.placement.usable_in((NODES,)):
        return waits._replace(message=f"no host of pool '{NODES}' is connected", hint="rota node list")
    if job.spec.pool == LOCAL and not world.settings.local:
        return waits._replace(message=f"pool '{LOCAL}' is off", hint=f"rota modify {job.id} --pool none")
    if _no_hosts(world):
        said = f"no node is connected, and pool '{LOCAL}' is off"
        return waits._replace(message=said, hint="rota node list")
    site = site_now(world)
    closed = [host for host in site.away if site.silent.get(host, True)]
    return away_hosts(site, sorted(site.away)) if closed and not site.usable else waits


def _urgently(job: Job) -> str:
    return f"rota modify {job.id} --priority {_HIGHEST}"


def _hint(world: World, job: Job, waits: Waits) -> str:
    """Suggest a command that helps or shows more."""
    match waits.code:
        case "unsatisfiable":
            return f"rota modify {job.id} {'--request …' if job.spec.request else '--mem … --cpus …'}"
        case "no_resources":
            return "rota resource list" if any(world.site.get(kind) for kind in ("host", "resource")) else _STATUS
        case "quota":
            return "rota quota list"
        case "calendar":
            return "rota calendar list"
        case "reservation":
            free = job.spec.at is not None or job.spec.walltime_s
            return "" if free else f"rota modify {job.id} --walltime TIME"
        case "container" | "dependency":
            return f"rota show {waits.blockers[0]}" if waits.blockers else ""
        case "placeholder":
            held = world.jobs.get(waits.blockers[0]) if waits.blockers else None
            words = held.spec.types if held is not None else ()
            name = next((word.partition("=")[2] for word in words if word.startswith("placeholder=")), "")
            return f"rota modify {job.id} --type allowed={name}" if name else ""
        case "resources" | "beyond_plan":
            first = world.jobs.get(waits.blockers[0]) if waits.blockers else None
            if job.spec.priority < _HIGHEST and first is not None and first.lease is None:
                return _urgently(job)
    return ""


def _limited(world: World, waits: Waits) -> Explanation:
    if waits.ahead is not None:
        return Explanation("limit", waits.message, [waits.ahead], f"rota why {waits.ahead}")
    holders = sorted(
        id
        for runner in world.runners.values()
        for id in runner.leases
        if any(use.name == waits.limit for use in world.jobs[id].spec.limits)
    )
    causes = [Cause("limit", waits.limit)]
    return Explanation(
        "limit", waits.message, (holders or list(waits.blockers))[:MOST_BLOCKERS], waits.hint, causes
    )
