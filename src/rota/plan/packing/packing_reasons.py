"""Why a waiting job has not been chosen, in words: its limits, and the room that is missing."""

from __future__ import annotations

from collections.abc import Iterable

from rota.plan.language.hostlist import fold
from rota.plan.need import LimitUse
from rota.plan.packing.job_classes import JobClass
from rota.plan.placement.queue import RankKey, rank_at
from rota.plan.policy.limits import Limits
from rota.plan.reasons import Waits
from rota.plan.size import CORE, Size

#: In job classes up to this length the jobs before one are counted.
_COUNTED = 100_000
_UNITS = (("P", 50), ("T", 40), ("G", 30), ("M", 20), ("K", 10))


def limit_reasons(
    limits: Limits, uses: tuple[LimitUse, ...], hosts: Iterable[str], *, of_gang: bool = False
) -> list[Waits]:
    """Every limit that keeps a job from starting now on all of these hosts. `of_gang`: the uses are those of all
    members."""
    missing = [set(limits.missing(uses, host)) for host in hosts]
    everywhere = set.intersection(*missing) if missing else set()
    found = []
    for use in uses:
        who = "it takes"
        if of_gang:
            who = "a member of its gang takes" if limits.per_host(use.name) else "the members of its gang take"
        reason = _stopped(limits, use, who)
        if reason is None and use.name in everywhere:
            reason = _in_use(limits, use, who)
        if reason is not None:
            found.append(reason)
    return found


def _stopped(limits: Limits, use: LimitUse, who: str) -> Waits | None:
    """The limit is outside its hours or too small: no end of a job can change that."""
    name, limit = use.name, limits.get(use.name)
    if limit is None:
        return None
    if limit.window is not None and not limit.window.open_at(limits.minute):
        return Waits("window", f"limit '{name}' lets jobs start only {limit.window}", name)
    most = max(units for _host, units in limit.hosts) if limit.hosts else limit.capacity
    if most is not None and use.units > most:
        problem = "is stopped (0 units)" if not most else f"has {most} units, {who} {use.units}"
        return Waits("limit", f"limit '{name}' {problem}", name, hint=f"rota limit {name}:{use.units}")
    return None


def _in_use(limits: Limits, use: LimitUse, who: str) -> Waits:
    name, limit = use.name, limits.get(use.name)
    if limit is not None and limit.hosts:
        shown = ", ".join(f"{host} {limits.use(name, host)[0]} of {units}" for host, units in limit.hosts)
        return Waits("limit", f"limit '{name}': {shown} in use, {who} {use.units}", name)
    used, alone = limits.use(name)
    if alone:
        return Waits("limit", f"one job has limit '{name}' alone", name)
    if use.exclusive:
        return Waits("limit", f"it wants limit '{name}' alone, and {used} in use", name)
    if limits.is_shut(name) and not use.exclusive:
        return Waits("limit", f"limit '{name}' is kept free for a job that wants it alone", name)
    capacity = limit.capacity if limit is not None else None
    more = f"rota limit {name}:{capacity + use.units}" if capacity is not None else ""
    return Waits("limit", f"limit '{name}': {used} of {capacity} in use, {who} {use.units}", name, hint=more)


def shortage(size: Size, frees: list[list[int]]) -> str:
    """What no host has enough of now, e.g. ``needs 2 cpus, 1 free``; empty if hosts lack different things."""
    parts = []
    for place, (name, asked) in enumerate((("cpus", size.cpus), ("mem", size.mem), ("disk", size.disk))):
        most = max((free[place] for free in frees), default=0)
        if asked > most:
            if name == "cpus":
                parts.append(f"{asked / CORE:g} cpus, {max(0, most) / CORE:g} free")
            else:
                parts.append(f"{amount(asked)} {name}, {amount(max(0, most))} free")
    return f"needs {'; '.join(parts)}" if parts else ""


def no_room(size: Size, frees: list[list[int]], before: int | None) -> str:
    """The sentence for a job that waits for room behind `before` others; None: many."""
    short = shortage(size, frees)
    sentence = f"waiting for room: {short}" if short else "waiting for room"
    if before is None:
        return f"{sentence}; many jobs are before it"
    if not before:
        return f"{sentence}; it is the next in rank"
    return f"{sentence}; {'1 job is' if before == 1 else f'{before:,} jobs are'} before it"


def kept_whole(hosts: list[str]) -> str:
    """The sentence for a job that takes no core and has no host because of provisioning."""
    return f"waiting for room: {fold(hosts)} {'is' if len(hosts) == 1 else 'are'} kept free to be provisioned"


def jobs_before(job_classes: Iterable[JobClass], rank: RankKey, job: int) -> int | None:
    """How many jobs of better rank wait in these classes; None: too many to count."""
    before = 0
    own = rank_at(rank, job)
    for job_class in job_classes:
        if job_class.head() is None:
            continue
        if job_class.key != rank and (job_class.key.session or job_class.key < rank or rank.session):
            before += len(job_class) if job_class.rank() < own else 0
        elif job_class.key == rank:
            if len(job_class) <= _COUNTED:
                before += sum(1 for each in job_class.jobs() if each < job)
            elif job_class.heap[0] < job:
                return None
    return before


def amount(size: float) -> str:
    """Bytes as short text, such as ``1.5G``."""
    for unit, power in _UNITS:
        if size >= 1 << power:
            return f"{size / (1 << power):.3g}{unit}"
    return f"{size:.0f}B"


def never_fits(size: Size, most: Size) -> str:
    """The sentence for a size that exceeds the largest host."""
    shown = (
        ("cpus", size.cpus, most.cpus, f"{size.cpus / CORE:g}", f"{most.cpus / CORE:g}"),
        ("mem", size.mem, most.mem, amount(size.mem), amount(most.mem)),
        ("disk", size.disk, most.disk, amount(size.disk), amount(most.disk)),
        ("gpus", size.gpus, most.gpus, str(size.gpus), str(most.gpus)),
    )
    for name, asked, largest, asked_text, largest_text in shown:
        if asked > largest:
            return f"never fits: asked {asked_text} {name}, largest host has {largest_text}"
    return "never fits: no single host has all of what was asked"
