"""When this runner leaves: when it is asked to, when it has nothing to do, or when its manager stays away.

A runner with a ticket was started for some jobs of one need. When there are no more of them it tells the manager,
and leaves only when the manager agrees: a lease may be on its way.
"""

from __future__ import annotations

from rota.runner.current_rules import CurrentRules
from rota.runner.end.termination import Terminator
from rota.runner.launch.launchers import Launchers
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.node import Node
from rota.runner.output.followers import Followers
from rota.runner.report.connection import Connection
from rota.runner.report.outbox import Outbox
from rota.runner.start.parts import Parts
from rota.runner.start.seats import Seating
from rota.runner.start.starting import Starter
from rota.runner.task_table import TaskTable
from rota.wire import codec
from rota.wire.reports import Idle, Report

#: Without a manager and without anything to do, a runner leaves after this.
IDLE_EXIT_S = 10.0
#: The same in an allocation of another engine, which may have taken hours to get.
ALLOCATED_EXIT_S = 60.0
#: When leaving, how long to wait for the last acknowledgement.
LAST_ACK_S = 2.0
#: The same after SIGTERM, where no other runner can report what this one leaves.
LAST_WORD_S = 20.0
#: A SIGTERM that comes so long before the end of an allocation, or later, means that end.
ENDING_S = 60.0
_LOOK_AGAIN_S = 0.1
_NEVER = float("inf")


class Leaving:
    """Decides whether this runner stays."""

    def __init__(
        self,
        *,
        loop: Loop,
        launchers: Launchers,
        tasks: TaskTable,
        rules: CurrentRules,
        outbox: Outbox,
        seating: Seating,
        connection: Connection,
        terminator: Terminator,
        parts: Parts,
        followers: Followers,
        starter: Starter,
        host: str,
        node: Node | None,
        linger_s: float | None,
    ) -> None:
        """`node`: that of an agent, which waits for the next manager, or of a runner in an allocation, where no
        later runner could report what this one leaves unsaid. `linger_s`: how long a runner with a ticket waits
        for work; None: for ever."""
        self._loop = loop
        self._launchers = launchers
        self._tasks = tasks
        self._rules = rules
        self._outbox = outbox
        self._seating = seating
        self._connection = connection
        self._terminator = terminator
        self._parts = parts
        self._followers = followers
        self._starter = starter
        self._host = host
        self._node = node
        self._stays = node is not None and node.stays
        self._last = node is not None and not node.stays
        self._linger_s = linger_s
        self.leaving = False  #: nothing more is started
        self.handed_over = False  #: its jobs are left to the next agent
        self._hands_over = False  #: the same is wanted
        self._terminated = 0  #: times that SIGTERM came
        self._leave_by = _NEVER

    @property
    def told_to_end(self) -> bool:
        """Will it end when its jobs have, even if the manager has more work?"""
        return bool(self._terminated)

    def work_came(self) -> None:
        """The manager sends work again: stay, unless it was SIGTERM that asked to leave."""
        if self.leaving and not self._terminated:
            self.leaving = False
            self._leave_by = _NEVER

    def leave(self, reason: str, message: str) -> None:
        """Start nothing more, hand back waiting leases, leave when no job runs. With a `reason`, end the jobs."""
        self.leaving = not self._stays or bool(self._terminated)
        for key in list(self._seating.waiting):
            if self._seating.drop(key):
                self._outbox.give_back(key)
        self._seating.reconsider()
        if reason:
            for task in list(self._tasks.by_key.values()):
                if task.part:
                    self._parts.close(task.key)
                else:
                    self._terminator.end(task, self._loop.now, reason=reason, message=message)
        self._loop.due(self._loop.now)

    def terminate(self) -> None:
        """The first SIGTERM asks to leave when the jobs are done, the second ends them. At the end of an
        allocation the first one does: SIGKILL would follow."""
        self._terminated += 1
        say("SIGTERM received")
        # The jobs were not killed on request: their retries decide.
        reason = "lost" if self._terminated > 1 else ""
        message = f"the agent of {self._host} was stopped"
        left_s = None if self._node is None else self._node.left_s
        if left_s is not None and left_s < ENDING_S:
            reason, message = "time", "the time of its allocation is over"
        self.leave(reason, message)
        if self._connection.joined:
            self._connection.send(codec.frame(Report(0, leaving=True)))

    def hand_over(self) -> None:
        """SIGUSR1: leave at once, and let the jobs go on with their launchers for the next agent."""
        if not self._launchers.new.lasting:
            say("SIGUSR1 received: the jobs of this runner cannot go on without it")
            return
        say("SIGUSR1 received")
        self._hands_over = True
        self.leaving = True
        for key in list(self._seating.waiting):
            if self._seating.drop(key):
                self._outbox.give_back(key)
        self._loop.due(self._loop.now)

    def tick(self, now: float) -> None:
        if self._hands_over:
            # What a dead launcher has left to this process would end with it.
            if all(task.launcher.lasting for task in self._tasks.by_key.values()):
                self.handed_over = self._loop.done = True
            else:
                self._loop.due(now + _LOOK_AGAIN_S)
            return
        self._consider(now)
        if self._linger_s is not None and self._connection.joined:
            self._say_if_idle(now, self._linger_s)

    def _consider(self, now: float) -> None:
        connection, tasks = self._connection, self._tasks
        if self.leaving and not tasks.by_key and not (connection.joined and self._followers.busy):
            if self._last and not self._terminated:
                self._loop.done = self._reported  # however long that takes
                self._loop.due(now + LAST_ACK_S)
            else:
                if self._leave_by == _NEVER:
                    self._leave_by = now + (LAST_WORD_S if self._last else LAST_ACK_S)
                alone = not connection.joined and not self._last
                self._loop.done = self._reported or now >= self._leave_by or alone
                self._loop.due(min(self._leave_by, now + LAST_ACK_S))
        if connection.joined:
            return
        away = now - connection.disconnected_since
        orphan_after_s = self._rules.current.orphan_after_s
        owes = self._last and not self._reported
        idle = not tasks.by_key and now >= self._starter.retry_at
        idle_exit_s = ALLOCATED_EXIT_S if self._last else IDLE_EXIT_S
        if not self._stays and idle and not owes and away >= idle_exit_s:
            say("no manager and nothing to do")
            self._loop.done = True
            # A runner with a ticket that never reached its manager was started in vain.
            self._loop.failed = self._linger_s is not None and not connection.ever_joined
        elif away >= orphan_after_s:
            self._abandon(orphan_after_s)
        patience_s = orphan_after_s if tasks.by_key or owes else idle_exit_s
        self._loop.due(max(connection.disconnected_since + patience_s, now + _LOOK_AGAIN_S))

    @property
    def _reported(self) -> bool:
        """Does the manager know everything?"""
        return self._outbox.clear and not self._tasks.quiet

    def _abandon(self, away_s: float) -> None:
        """No manager has asked for these jobs for too long: end them, keep their records, leave."""
        tasks = self._tasks.by_key
        if self._last and not tasks:
            say(f"no contact for {away_s:g} s: giving up")
            self._loop.done = True
        if tasks and not self.leaving:
            say(f"no contact for {away_s:g} s: ending {len(tasks)} jobs")
        self.leaving = self.leaving or not self._stays
        for key in list(self._seating.waiting):
            self._seating.drop(key)
        for key in self._parts.held():
            self._parts.close(key)
        for task in list(tasks.values()):
            if task.behaviours is None and not task.part:  # else it has ended; what it still does is bounded
                message = f"the manager was away for {away_s:g} s"
                self._terminator.end(task, self._loop.now, reason="lost", message=message)

    def _say_if_idle(self, now: float, linger_s: float) -> None:
        if self._tasks.by_key or self._seating.waiting or self._followers.busy:
            self._loop.due(now + linger_s)
            return
        quiet_until = self._seating.worked_at + linger_s
        if now >= quiet_until:
            self._connection.send(codec.frame(Idle()))
            quiet_until = now + linger_s
        self._loop.due(quiet_until)
