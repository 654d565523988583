"""A runner as the wire protocol describes it, and a witness of everything that executes.

The witness stands for the processes themselves: it is the independent truth that the engine's own
records are compared with, and it complains at the moment a promise is broken.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field

from rota.core.attempts.leases import Finished, HeldLease, LeaseRef, PartOpened, Paused, Started
from rota.core.events import Event, RunnerJoined, RunnerReported, RunnerSettled
from rota.core.jobs.job import Spec
from rota.core.jobs.outcome import Outcome
from rota.plan.placement.given import Given
from rota.plan.site.bitset import parse_spans
from rota.plan.size import Capacity, Size

Lease = tuple[int, int, int]


class Witness:
    """What really executes, on which host, and what executed before."""

    def __init__(self, *, capacity: dict[str, Capacity], opening: Callable[[int], int]) -> None:
        self._capacity = capacity
        self._opening = opening  #: job → which opening it is in, as committed
        self._specs: dict[int, Spec] = {}
        self._given: dict[int, Given | None] = {}
        self.running: dict[int, tuple[int, str, Size]] = {}  #: job → attempt, host, size
        self.parts: dict[tuple[int, str], tuple[int, Given, Spec]] = {}  #: by job and host
        self.attempts: defaultdict[int, list[int]] = defaultdict(list)
        self.executed: set[tuple[int, int]] = set()
        self.succeeded: set[tuple[int, int]] = set()
        self._in_opening: defaultdict[tuple[int, int], int] = defaultdict(int)
        self._retries: defaultdict[tuple[int, int], int] = defaultdict(int)  #: the most in this opening
        self.still: set[tuple[int, str]] = set()  #: jobs that are stopped, and where

    def start(self, job: int, attempt: int, host: str, spec: Spec, size: Size, given: Given | None = None) -> None:
        assert job not in self.running, f"job {job} executes twice at once"
        assert all(attempt > earlier for earlier in self.attempts[job]), f"job {job}: attempt {attempt} again"
        opening = (job, self._opening(job))
        self._in_opening[opening] += 1
        # A job that waits for its next attempt keeps it when it is added again with fewer retries.
        self._retries[opening] = max(self._retries[opening], spec.retries)
        assert self._in_opening[opening] <= self._retries[opening] + 1, f"job {job} is started too often"
        self.attempts[job].append(attempt)
        self.executed.add((job, attempt))
        self.running[job] = (attempt, host, size)
        self._given[job] = given
        self._specs[job] = spec
        if given is not None:
            self._refuse_sharing(job, given, spec)
        self._refuse_excess(host)

    def open_part(self, job: int, attempt: int, host: str, spec: Spec, given: Given) -> None:
        """From now on processes of the job may be on this host as well."""
        known = self.parts.get((job, host))
        assert known is None or known[0] == attempt, f"job {job}: attempts {known} and {attempt} at once on {host}"
        self.parts[job, host] = (attempt, given, spec)
        self._refuse_sharing(job, given, spec)

    def shut_part(self, job: int, host: str) -> None:
        """None of them is."""
        self.parts.pop((job, host), None)

    def stop(self, job: int, host: str, on: bool) -> None:
        """All processes of a job on a host stand still, or go on: then it must have its cores."""
        if on:
            self.still.add((job, host))
            return
        was_still = self.stands_still(job)
        self.still.discard((job, host))
        if was_still and job in self.running:
            given = self._given[job]
            if given is not None:
                self._refuse_sharing(job, given, self._specs[job])
            self._refuse_excess(self.running[job][1])

    def stands_still(self, job: int) -> bool:
        hosts = {host for other, host in self.parts if other == job}
        if job in self.running:
            hosts.add(self.running[job][1])
        return bool(hosts) and all((job, host) in self.still for host in hosts)

    def end(self, job: int, attempt: int, *, ok: bool) -> None:
        assert self.running.pop(job)[0] == attempt
        self.still = {each for each in self.still if each[0] != job}
        if ok:
            self.succeeded.add((job, attempt))

    def _refuse_sharing(self, job: int, mine: Given, own: Spec) -> None:
        """No core is given to two jobs at once, unless their types say that they share. Who has a process left
        on one of its hosts has all of its cores."""
        holders = {other: (self._given[other], self._specs[other]) for other in self.running}
        holders |= {other: (given, its) for (other, _host), (_attempt, given, its) in self.parts.items()}
        for other, (theirs, its) in holders.items():
            if other == job or theirs is None or not (mine.resources and theirs.resources):
                continue
            if self.stands_still(other):
                continue  # it has given up its cores
            both = set(parse_spans(mine.resources)) & set(parse_spans(theirs.resources))
            parts = own.size.cpus + its.size.cpus <= 100  # of a core that is shared
            allowed = parts or _may_share(own) or _may_share(its)
            assert not both or allowed, f"jobs {job} and {other} both have {both}"

    def _refuse_excess(self, host: str) -> None:
        sizes = [size for _attempt, where, size in self.running.values() if where == host]
        has = self._capacity[host]
        cores: set[int] = set()
        cpus = 0
        for job, (_attempt, where, size) in self.running.items():
            given = self._given[job]
            if self.stands_still(job):
                continue
            # Those that take a part of a core share it with others whose parts fit beside it.
            if where == host and given is not None and given.cpu_list and not 0 < size.cpus < 100:
                cores.update(parse_spans(given.cpu_list))
            elif where == host:
                cpus += size.cpus
        assert cpus + 100 * len(cores) <= has.cpus, f"{host}: too many processors in use"
        assert sum(size.mem for size in sizes) <= has.mem, f"{host}: too much memory in use"
        assert sum(1 for size in sizes if not size.cpus) <= has.zero_cpu_jobs, f"{host}: too many 0-cpu jobs"


def _may_share(spec: Spec) -> bool:
    return any(word.partition("=")[0] in ("inner", "timesharing", "allowed", "placeholder") for word in spec.types)


@dataclass(order=True)
class Grant:
    """A lease as it came over the wire."""

    rank: tuple[int, int]
    lease: Lease = field(compare=False)
    spec: Spec = field(compare=False)
    size: Size = field(compare=False)
    given: Given | None = field(compare=False, default=None)


@dataclass
class Busy:
    """An attempt that executes in a seat."""

    grant: Grant
    seat: int
    started_at: float


@dataclass
class Report:
    """What is said to the manager, again and again until it is acknowledged."""

    seq: int
    started: list[Started] = field(default_factory=list)
    ended: list[Finished] = field(default_factory=list)
    returned: list[LeaseRef] = field(default_factory=list)
    closed: list[int] = field(default_factory=list)
    opened: list[PartOpened] = field(default_factory=list)
    shut: list[LeaseRef] = field(default_factory=list)
    paused: list[Paused] = field(default_factory=list)

    def __bool__(self) -> bool:
        some = self.started or self.ended or self.returned or self.closed or self.opened or self.shut
        return bool(some or self.paused)

    def event(self, runner: str) -> RunnerReported:
        return RunnerReported(
            runner=runner, seq=self.seq, started=self.started, ended=self.ended, returned=self.returned,
            closed=self.closed, opened=self.opened, shut=self.shut, paused=self.paused,
        )  # fmt: skip


class ModelRunner:
    """Holds seats and leases. `incoming` and `outgoing` are what is on the wire."""

    def __init__(self, id: str, host: str, witness: Witness) -> None:
        self.id = id
        self.host = host
        self.boot_id, self.pid = "boot", 1
        self.witness = witness
        self.connected = False
        self.ruled = False  #: the manager has answered the join of this very connection
        self.joins = 0  #: how many joins the manager has not answered yet
        self.dead = False
        self.settled = False
        self.seats: dict[int, Size] = {}
        self.waiting: list[Grant] = []
        self.busy: dict[int, Busy] = {}  #: by seat
        self.parts: set[Lease] = set()  #: of leases of other hosts
        self.paused: set[Lease] = set()
        self.unready = False  #: no part can be opened here
        self.journal: dict[Lease, Outcome | None] = {}  #: intents, with their outcome once there is one
        self.unacknowledged: list[Report] = []
        self.draft = Report(1)
        self.incoming: list[Callable[[], None]] = []
        self.outgoing: list[Event] = []

    # -- what the manager sends

    def rule(self, forget: list[Lease], now: float) -> None:
        """The manager answered a join. What it sent before that was meant for an older connection."""
        self.joins -= 1
        self.ruled = self.connected and self.joins == 0
        self.receive(lambda: self.forget(forget, now))

    def receive(self, message: Callable[[], None]) -> None:
        if self.ruled:
            self.incoming.append(message)

    def deliver(self, count: int = 1 << 30) -> None:
        """Take the oldest messages of the manager off the wire."""
        while self.incoming and count and not self.dead:
            self.incoming.pop(0)()
            count -= 1

    def take_work(self, seats: list[tuple[int, Size]], grants: list[Grant], now: float) -> None:
        self.seats.update(seats)
        self.waiting = sorted(self.waiting + grants)
        self._use_seats(now)

    def acknowledge(self, seq: int) -> None:
        self.unacknowledged = [report for report in self.unacknowledged if report.seq > seq]

    def kill(self, leases: list[Lease], now: float) -> None:
        for lease in leases:
            for grant in [each for each in self.waiting if each.lease == lease]:
                self.waiting.remove(grant)
                self.draft.returned.append(LeaseRef(*lease))
            for seat in [seat for seat, busy in self.busy.items() if busy.grant.lease == lease]:
                self.end(seat, Outcome(signal=15, reason="kill_requested", ended_at=now), now)

    def open_part(self, lease: Lease, spec: Spec, given: Given) -> None:
        if self.unready and lease not in self.parts:
            self.draft.opened.append(PartOpened(*lease, ok=False, message="the prologue failed"))
            return
        self.parts.add(lease)
        self.witness.open_part(lease[0], lease[1], self.host, spec, given)
        self.draft.opened.append(PartOpened(*lease))

    def close_parts(self, leases: list[Lease]) -> None:
        """What is not here is closed as well."""
        for lease in leases:
            self.draft.shut.append(LeaseRef(*lease))
            self._end_part(lease)

    def _end_part(self, lease: Lease) -> None:
        if lease in self.parts:
            self.parts.remove(lease)
            self.witness.shut_part(lease[0], self.host)

    def pause(self, leases: list[Lease], on: bool, now: float) -> None:
        """Stop attempts or parts, or let them go on; say so, also if nothing changes."""
        here = {busy.grant.lease for busy in self.busy.values()} | self.parts
        for lease in leases:
            if lease in here:
                self.witness.stop(lease[0], self.host, on)
                (self.paused.add if on else self.paused.discard)(lease)
                self.draft.paused.append(Paused(*lease, on, now))

    def recall(self, leases: list[Lease]) -> None:
        for grant in [each for each in self.waiting if each.lease in leases]:
            self.waiting.remove(grant)
            self.draft.returned.append(LeaseRef(*grant.lease))

    def forget(self, leases: list[Lease], now: float) -> None:
        for lease in leases:
            self.waiting = [grant for grant in self.waiting if grant.lease != lease]
        self.kill(leases, now)
        self.close_parts([lease for lease in leases if lease in self.parts])

    # -- what happens here

    def _use_seats(self, now: float) -> None:
        """Start the lowest rank whose size is that of a free seat; give back seats that stay empty."""
        for seat in [seat for seat in self.seats if seat not in self.busy]:
            fitting = [grant for grant in self.waiting if grant.size == self.seats[seat]]
            if fitting:
                self._start(fitting[0], seat, now)
            else:
                del self.seats[seat]
                self.draft.closed.append(seat)

    def _start(self, grant: Grant, seat: int, now: float) -> None:
        self.waiting.remove(grant)
        self.journal[grant.lease] = None
        self.witness.start(grant.lease[0], grant.lease[1], self.host, grant.spec, grant.size, grant.given)
        self.busy[seat] = Busy(grant, seat, now)
        self.draft.started.append(Started(*grant.lease, seat, now, pid=seat))

    def end(self, seat: int, outcome: Outcome, now: float) -> None:
        """The command in this seat ended."""
        busy = self.busy.pop(seat)
        lease = busy.grant.lease
        self.witness.end(lease[0], lease[1], ok=outcome.exit_code == 0 and not outcome.reason)
        self.journal[lease] = outcome
        # An attempt that started and ended between two reports is only in `ended`.
        self.draft.started = [each for each in self.draft.started if each.job != lease[0]]
        self.draft.ended.append(Finished(*lease, seat, outcome))
        if lease in self.paused:  # its cores may be another's by now
            self.paused.discard(lease)
            del self.seats[seat]
            self.draft.closed.append(seat)
        self._use_seats(now)

    def give_back(self, position: int) -> None:
        """Hand back a lease that has not started."""
        grant = self.waiting.pop(position)
        self.draft.returned.append(LeaseRef(*grant.lease))

    def report(self) -> None:
        """Say what happened since the last report."""
        if self.draft:
            self.unacknowledged.append(self.draft)
            if self.connected:
                self.outgoing.append(self.draft.event(self.id))
            self.draft = Report(self.draft.seq + 1)
        elif self.connected:
            self.outgoing.append(Report(0).event(self.id))

    def repeat(self) -> None:
        """Say again what has not been acknowledged."""
        if self.connected:
            self.outgoing += [report.event(self.id) for report in self.unacknowledged]

    # -- connections and death

    def disconnect(self) -> None:
        self.connected = self.ruled = False
        self.incoming.clear()
        self.outgoing.clear()

    def join(self) -> RunnerJoined:
        """Connect and say what is held; then everything unacknowledged is repeated."""
        self.connected = True
        self.joins += 1
        held = [HeldLease(*grant.lease, 0) for grant in self.waiting]
        held += [HeldLease(*busy.grant.lease, seat, busy.started_at, pid=seat) for seat, busy in self.busy.items()]
        reports = [*self.unacknowledged, self.draft]
        held += [
            HeldLease(each.job, each.attempt, each.token, each.seat, 1.0, over=True)
            for report in reports
            for each in report.ended
        ]
        self.repeat()
        return RunnerJoined(
            runner=self.id, host=self.host, boot_id=self.boot_id, pid=self.pid, start_time=1, held=held,
            seats=list(self.seats), parts=[LeaseRef(*lease) for lease in sorted(self.parts)],
        )  # fmt: skip

    def die(self) -> None:
        """Killed. What it had started goes on without it until the successor ends it."""
        self.disconnect()
        self.dead = True

    def settle(self, successor: str, now: float, *, whole: bool = True) -> RunnerSettled:
        """The successor ends the survivors and tells what the journal, or what is left of it, says."""
        for busy in self.busy.values():
            self.witness.end(busy.grant.lease[0], busy.grant.lease[1], ok=False)
        self.busy.clear()
        for lease in list(self.parts):
            self._end_part(lease)
        ended = [
            Finished(*lease, 0, outcome or Outcome(reason="lost", message="runner died", ended_at=now))
            for lease, outcome in self.journal.items()
        ]
        if not whole:
            ended = ended[1::2]
        # A journal loses its end when the machine is started anew, and then nothing is left of anything.
        return RunnerSettled(runner=self.id, by_runner=successor, ended=ended, whole=whole, rebooted=not whole)
