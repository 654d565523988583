"""A runner that was started for some jobs of one need says so when there are no more of them.

It leaves only when the manager agrees: a lease may be on its way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.wire import codec
from rota.wire.reports import Idle

if TYPE_CHECKING:
    from rota.runner.agent import Agent


class Linger:
    """Watches for idleness, in a runner with a ticket; any other stays until it is told to leave."""

    def __init__(self, agent: Agent, seconds: float | None) -> None:
        self._agent = agent
        self._seconds = seconds

    def tick(self, now: float) -> None:
        agent = self._agent
        if self._seconds is None or not agent.contact.joined:
            return
        if agent.tasks or agent.seating.waiting or agent.followers.busy:
            agent.due(now + self._seconds)
            return
        quiet_until = agent.worked_at + self._seconds
        if now >= quiet_until:
            agent.contact.send(codec.frame(Idle()))
            quiet_until = now + self._seconds
        agent.due(quiet_until)
