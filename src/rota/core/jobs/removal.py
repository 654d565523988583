"""Remove jobs that have ended, and with `--waiting` those that wait.

From a selection, whatever can be removed is; the rest is kept and counted. If a job given by its id cannot be
removed, nothing is.
"""

from __future__ import annotations

from rota.core.answers import Acted
from rota.core.effects import SendReply
from rota.core.events import JobsRemoved
from rota.core.gangs.admission import refuse_part_of_gang
from rota.core.jobs.actions import cancel
from rota.core.jobs.dependencies import propagate, unsatisfied_dependents
from rota.core.jobs.job import Job, Reason
from rota.core.states import LEASED, TERMINAL
from rota.core.turn import Turn
from rota.core.world import NO_JOB, World, erase
from rota.errors import BadInput, Denied


def on_jobs_removed(world: World, turn: Turn, event: JobsRemoved) -> None:
    """Remove jobs, or raise and remove none."""
    selection = _Selection(world, event)
    for job in selection.removing.values():
        _remove(world, turn, job)
    turn.effects.append(SendReply(event.by, selection.answer()))


def would_remove(world: World, event: JobsRemoved) -> Acted:
    """Answer what the removal would do now. Raises the error that it would be refused with."""
    return _Selection(world, event).answer()


class _Selection:
    """Sorts the jobs of a request into those to remove and those to keep. Changes nothing."""

    def __init__(self, world: World, event: JobsRemoved) -> None:
        self._world = world
        self._event = event
        self.removing: dict[int, Job] = {}
        self._kept: set[int] = set()
        for id in event.jobs:
            job = self._job(id)
            if job is None or world.outcome(id) == NO_JOB:
                continue  # already removed
            if job.state in TERMINAL or (event.waiting and job.state not in LEASED):
                self.removing[id] = job
                if job.spec.gang and job.state not in TERMINAL:
                    self._keep_gang(job)
            else:
                self._keep(job, _running(job) if job.state in LEASED else _waiting(job))
        if event.cascade:
            self._add_dependents()
        else:
            self._keep_parents()
        for id, job in self.removing.items():
            if event.only and job.spec.user != event.only:
                raise Denied(f"job {id} belongs to {job.spec.user}", hint="it waits for one of yours, which stays")
            if job.state in LEASED:
                raise _running(job)

    def answer(self) -> Acted:
        """Return the jobs removed, those staying, and how many were kept."""
        staying = [id for id in self._event.jobs if id not in self.removing]
        return Acted(list(self.removing), staying, kept=len(self._kept))

    def _job(self, id: int) -> Job | None:
        return self._world.jobs.get(id) or self._event.loaded.get(id)

    def _keep(self, job: Job, why: BadInput) -> None:
        if job.id in self._event.named:
            raise why
        self.removing.pop(job.id, None)
        self._kept.add(job.id)

    def _keep_gang(self, job: Job) -> None:
        """Keep a waiting member of a gang, unless the others are removed with it."""
        try:
            refuse_part_of_gang(self._world, job, self._event.jobs, "removed")
        except BadInput as why:
            self._keep(job, why)

    def _add_dependents(self) -> None:
        """Add all dependents of the jobs to remove, direct or not."""
        pending = list(self.removing.values())
        while pending:
            for child in unsatisfied_dependents(self._world, pending.pop()):
                if child not in self.removing and (job := self._job(child)) is not None:
                    self.removing[child] = job
                    self._kept.discard(child)
                    pending.append(job)

    def _keep_parents(self) -> None:
        """Keep every job that a staying job waits for."""
        members: dict[str, list[int]] = {}
        for id, job in self.removing.items():
            for name in job.spec.dep_groups:
                members.setdefault(name, []).append(id)
        pending = list(self.removing)
        while pending:
            parent = self.removing.get(pending.pop())
            if parent is None:
                continue
            child = next(
                (each for each in unsatisfied_dependents(self._world, parent) if each not in self.removing), 0
            )
            if child:
                self._keep(parent, _waited_for(parent, child))
                for after in parent.after:  # it stays, so its own parents must stay too
                    pending += members.get(after.parent, ()) if isinstance(after.parent, str) else (after.parent,)


def _running(job: Job) -> BadInput:
    return BadInput(f"job {job.id} is {job.state.label}", hint=f"kill it first: rota kill {job.id}")


def _waiting(job: Job) -> BadInput:
    return BadInput(
        f"job {job.id} is {job.state.label}: it has not ended",
        hint=f"remove it all the same: rota remove --waiting {job.id}",
    )


def _waited_for(job: Job, child: int) -> BadInput:
    return BadInput(
        f"job {child} waits for job {job.id}", hint=f"remove it with all that wait: rota remove --cascade {job.id}"
    )


def _remove(world: World, turn: Turn, job: Job) -> None:
    if job.state not in TERMINAL:
        cancel(world, turn, job, Reason("kill_requested", "removed"))
    erase(world, turn, job)
    if job.spec.dep_groups:
        propagate(world, turn, [job])  # the group's verdicts may change without it
