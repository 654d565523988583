"""Due jobs: their planned start has come, and they have no lease yet."""

from __future__ import annotations

from rota.plan.schedule.plan_entry import Begin


class DueJobs:
    """Jobs that run in the plan, but wait for besteffort jobs to end or for room on a host."""

    def __init__(self) -> None:
        self.blocked: dict[int, tuple[Begin, set[int]]] = {}  #: job → the jobs that must end first
        self._stuck: list[Begin] = []  #: their host has no room, or is away

    def block(self, begin: Begin, victims: set[int]) -> None:
        """The job begins when these have ended."""
        self.blocked[begin.entry.id] = (begin, victims)

    def stick(self, begin: Begin) -> None:
        """The job is tried again in every turn."""
        self._stuck.append(begin)

    def take(self) -> list[Begin]:
        """Take out the jobs to try again."""
        found, self._stuck = self._stuck, []
        return found

    def ended(self, job: int) -> None:
        """A job ended: jobs that waited for no other may begin."""
        for waiting, (begin, victims) in list(self.blocked.items()):
            victims.discard(job)
            if not victims:
                del self.blocked[waiting]
                self._stuck.append(begin)

    def forget(self, job: int) -> None:
        """The job does not begin."""
        self._stuck = [begin for begin in self._stuck if begin.entry.id != job]
        self.blocked.pop(job, None)

    def begins(self) -> list[Begin]:
        """All that is due."""
        return [*(begin for begin, _victims in self.blocked.values()), *self._stuck]
