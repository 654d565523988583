"""Jobs whose time has come and that have no lease yet: somebody must end first, or a host has no room."""

from __future__ import annotations

from rota.plan.planner.entry import Begin


class DueJobs:
    """They are in the plan, and run there."""

    def __init__(self) -> None:
        self.blocked: dict[int, tuple[Begin, set[int]]] = {}  #: job → whom it waits for to end
        self._stuck: list[Begin] = []  #: those that a host does not let begin

    def block(self, begin: Begin, victims: set[int]) -> None:
        """It begins when these have ended."""
        self.blocked[begin.entry.id] = (begin, victims)

    def stick(self, begin: Begin) -> None:
        """It is tried again each time that something is decided."""
        self._stuck.append(begin)

    def take(self) -> list[Begin]:
        """Those that may be tried again; they leave."""
        found, self._stuck = self._stuck, []
        return found

    def ended(self, job: int) -> None:
        """Who waited for nothing but its end may begin."""
        for waiting, (begin, victims) in list(self.blocked.items()):
            victims.discard(job)
            if not victims:
                del self.blocked[waiting]
                self._stuck.append(begin)

    def forget(self, job: int) -> None:
        """It does not begin."""
        self._stuck = [begin for begin in self._stuck if begin.entry.id != job]
        self.blocked.pop(job, None)

    def jobs(self) -> set[int]:
        return {*self.blocked, *(begin.entry.id for begin in self._stuck)}
