"""The policies by the letter, in the most naive way: what the planner is compared with, job by job.

Everything that holds processors is an entry of a list, an interval of time [start, until) and a set of processors
(or, counted, a number of them). Nothing is remembered between questions; every question looks at the whole list.
"""

from __future__ import annotations

from dataclasses import dataclass, field

POLICIES = ("fcfs", "easy", "easy-sjbf", "conservative")


@dataclass
class RefJob:
    """One job of a trace; the simulation fills in the rest."""

    submit: float
    procs: int
    run: float
    estimate: float
    start: float | None = None  #: planned, then real
    held: set[int] = field(default_factory=set)  #: its processors, when they are numbered
    state: str = "future"  #: future, waiting, running, ended

    def until(self) -> float:
        """A running or planned job holds its processors for its whole estimate."""
        assert self.start is not None
        return self.start + self.estimate


class Reference:
    """One replay of some jobs, given in the order of the file."""

    def __init__(self, jobs: list[RefJob], *, procs: int, policy: str, counted: bool = False) -> None:
        assert policy in POLICIES
        assert all(0 < job.procs <= procs and 0 < job.run <= job.estimate for job in jobs)
        self.jobs = jobs
        self.procs = procs
        self.policy = policy
        self.counted = counted
        self.queue: list[RefJob] = []  #: waiting, in the order of submission
        self.started: list[RefJob] = []  #: running, in the order in which they started

    # ------------------------------------------------------------------ events

    def replay(self) -> list[RefJob]:
        future = sorted(self.jobs, key=lambda job: job.submit)  # stable: ties in file order
        while future or self.queue or self.started:
            now = min(self._moments(future))
            while future and future[0].submit == now:
                job = future.pop(0)
                job.state = "waiting"
                self.queue.append(job)
                self._after_submission(job, now)
            # Two ends at one instant are two events; whoever started first ends first.
            while ending := [job for job in self.started if self._ends(job) == now]:
                job = ending[0]
                job.state = "ended"
                self.started.remove(job)
                self._after_end(now)
            for job in [job for job in self.queue if job.start is not None and job.start <= now]:
                self._begin(job, now)
        return self.jobs

    def _moments(self, future: list[RefJob]) -> list[float]:
        planned = [job.start for job in self.queue if job.start is not None]
        return [*(job.submit for job in future), *(self._ends(job) for job in self.started), *planned]

    def _ends(self, job: RefJob) -> float:
        assert job.start is not None
        return job.start + job.run

    def _begin(self, job: RefJob, now: float) -> None:
        assert job.start == now, "a start was missed"
        job.state = "running"
        self.queue.remove(job)
        self.started.append(job)

    def _after_submission(self, job: RefJob, now: float) -> None:
        if self.policy == "conservative":
            self._plan(job, now)
        else:
            self._pass(now)

    def _after_end(self, now: float) -> None:
        if self.policy != "conservative":
            self._pass(now)
            return
        for job in list(self.queue):
            assert job.start is not None
            if job.start > now:  # planned for now or earlier: not taken out
                job.start = None
                self._plan(job, now)

    # ------------------------------------------------------------------ fcfs and easy

    def _pass(self, now: float) -> None:
        while self.queue and self._fits(self.queue[0], now):
            self._start(self.queue[0], now)
        if not self.queue or self.policy == "fcfs":
            return
        head, *rest = self.queue
        self._plan(head, now)  # its reservation
        if self.policy == "easy-sjbf":
            rest.sort(key=lambda job: job.estimate)
        for job in rest:
            if self._fits(job, now):
                self._start(job, now)
        head.start, head.held = None, set()

    def _start(self, job: RefJob, now: float) -> None:
        self._place(job, now)
        self._begin(job, now)

    # ------------------------------------------------------------------ what is free

    def _holders(self, begin: float, end: float) -> list[RefJob]:
        """Jobs that hold something at some time in [begin, end)."""
        holding = [job for job in (*self.started, *self.queue) if job.start is not None]
        return [job for job in holding if job.start < end and begin < job.until()]

    def _free(self, begin: float, end: float) -> set[int]:
        """The processors that are free during the whole of [begin, end)."""
        free = set(range(1, self.procs + 1))
        for job in self._holders(begin, end):
            free -= job.held
        return free

    def _fits(self, job: RefJob, begin: float) -> bool:
        end = begin + job.estimate
        if not self.counted:
            return len(self._free(begin, end)) >= job.procs
        # How many are held changes only where somebody starts to hold some.
        moments = [begin, *(one.start for one in self._holders(begin, end) if one.start >= begin)]
        return all(
            sum(one.procs for one in self._holders(begin, end) if one.start <= moment < one.until()) + job.procs
            <= self.procs
            for moment in moments
        )

    def _place(self, job: RefJob, begin: float) -> None:
        if not self.counted:
            job.held = set(sorted(self._free(begin, begin + job.estimate))[: job.procs])
        job.start = begin

    def _plan(self, job: RefJob, now: float) -> None:
        """The earliest start that fits: now, or when somebody stops holding something."""
        assert job.start is None
        others = [one.until() for one in (*self.started, *self.queue) if one.start is not None]
        for moment in sorted({now, *(until for until in others if until > now)}):
            if self._fits(job, moment):
                self._place(job, moment)
                return
        raise AssertionError("when everybody has ended, every job fits")
