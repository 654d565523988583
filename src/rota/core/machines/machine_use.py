"""Indexes: which jobs hold each machine, how far they are, and which machines changed.

Code that changes a machine marks it. `core.machines.machine_history` looks at marked machines at the end of the
step, so a step without changes costs nothing: a job that comes to a busy machine, or leaves one that stays busy,
marks none.
"""

from __future__ import annotations

from collections.abc import Iterable

from rota.core.attempts.parts import all_leased
from rota.core.jobs.job import Job
from rota.core.machines.machine_states import Usage
from rota.core.rows import MachineRow
from rota.core.world import World


class MachineUse:
    """State of the feature `machine history`."""

    __slots__ = (
        "awaited", "awaited_until", "begun", "built", "changed", "held", "kept", "open", "passed", "pending",
        "phases", "stopped",
    )  # fmt: skip

    def __init__(self) -> None:
        self.open: dict[str, MachineRow] = {}  #: by host: its last row
        self.changed: set[str] = set()  #: hosts that may differ from their last row
        self.built = False  #: are `held` and `begun` complete? Not before the first step after a restart.
        self.held: dict[str, set[int]] = {}  #: host → jobs that hold resources there
        self.begun: dict[str, set[int]] = {}  #: those of them that have begun to execute
        self.phases: dict[int, Usage] = {}  #: job whose machines are provisioned for it → waiting or installing
        self.kept: dict[str, set[int]] = {}  #: host → jobs that keep it after their end
        self.pending: set[str] = set()  #: free hosts that await a decision of the placement
        self.passed = False  #: has the placement decided about all hosts since the start?
        self.stopped = False  #: the manager has stopped: nothing is observed any more
        #: After a restart: hosts whose runners may still come back, and until when (monotonic) to wait for them;
        #: None: the wait has not begun.
        self.awaited: set[str] = set()
        self.awaited_until: float | None = None


def mark(world: World, host: str) -> None:
    """Note that this machine may have changed."""
    world.use(MachineUse).changed.add(host)


def hosts_of(job: Job, host: str) -> Iterable[str]:
    """The hosts that a job with a lease holds resources of; `host` is the first."""
    given = job.lease.given if job.lease is not None else None
    nodes = given.nodes if given is not None else ()
    if not nodes or (len(nodes) == 1 and nodes[0][0] == host):  # as nearly always
        return (host,)
    return {host, *(node for node, _cores in nodes)}


def job_took(world: World, job: Job, host: str) -> None:
    """A job got its lease, on this host first."""
    use = world.use(MachineUse)
    for each in hosts_of(job, host):
        held = use.held.get(each)
        if held is None:
            held = use.held[each] = set()
        if not held or use.phases:
            use.changed.add(each)
        held.add(job.id)


def job_began(world: World, job: Job, host: str) -> None:
    """A job with a lease began to execute."""
    use = world.use(MachineUse)
    for each in hosts_of(job, host):
        begun = use.begun.get(each)
        if begun is None:
            begun = use.begun[each] = set()
        if not begun:
            use.changed.add(each)
        begun.add(job.id)


def job_left(world: World, job: Job, host: str) -> None:
    """A job gives up its machines. Call this while it still has its lease."""
    use = world.use(MachineUse)
    for each in hosts_of(job, host):
        last_held, last_begun = _was_last(use.held, each, job.id), _was_last(use.begun, each, job.id)
        if last_held or last_begun or use.phases:
            use.changed.add(each)
    if use.phases:
        use.phases.pop(job.id, None)


def _was_last(index: dict[str, set[int]], host: str, job: int) -> bool:
    """Take a job out of an index. Was it the last of this machine there?"""
    jobs = index.get(host)
    if not jobs or job not in jobs:
        return False
    jobs.remove(job)
    return not jobs


def set_phase(world: World, job: int, phase: Usage | None) -> None:
    """Set how far the provisioning of this job's machines is: `waiting`, `installing`, or None when it is over."""
    use = world.use(MachineUse)
    if phase is None:
        use.phases.pop(job, None)
    else:
        use.phases[job] = phase
    use.changed.update(host for host, jobs in use.held.items() if job in jobs)


def keep(world: World, host: str, job: int) -> None:
    """An ended job keeps this machine."""
    use = world.use(MachineUse)
    use.kept.setdefault(host, set()).add(job)
    use.changed.add(host)


def end_keeping(world: World, host: str, job: int) -> None:
    """The job returns the machine."""
    use = world.use(MachineUse)
    use.kept.get(host, set()).discard(job)
    use.changed.add(host)


def rebuild(world: World, use: MachineUse) -> None:
    """After a restart: index all leases, and look at every machine."""
    use.built = True
    use.held, use.begun = held_now(world)
    use.changed = {*world.capacity, *use.open}


def held_now(world: World) -> tuple[dict[str, set[int]], dict[str, set[int]]]:
    """The indexes `held` and `begun` as the leases say."""
    held: dict[str, set[int]] = {}
    begun: dict[str, set[int]] = {}
    for job, host in all_leased(world):
        started = job.lease is not None and job.lease.started_at is not None
        for each in hosts_of(job, host):
            held.setdefault(each, set()).add(job.id)
            if started:
                begun.setdefault(each, set()).add(job.id)
    return held, begun


def index_as_leased(world: World) -> list[str]:
    """The invariant: the indexes have exactly the leases."""
    use = world.use(MachineUse)
    if not use.built:
        return []
    wrong = []
    for name, index, right in zip(("held", "begun"), (use.held, use.begun), held_now(world), strict=True):
        known = {host: jobs for host, jobs in index.items() if jobs}
        if known != right:
            wrong.append(f"I9: jobs {name} on machines are {known}, and should be {right}")
    return wrong
