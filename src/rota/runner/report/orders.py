"""What the manager (or a signal) tells this runner to do, and when it is time to leave.

Orders change what waits, what must end and whether to stay; starting and ending itself is done by the
agent and `Endings`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from rota.runner.log import say
from rota.runner.output.audience import Follower
from rota.runner.report.journal import Key
from rota.runner.task import Task
from rota.wire import orders as m
from rota.wire.channels import (
    ChannelCredit,
    ChannelData,
    ChannelEnd,
    ChannelResize,
    ChannelSignal,
    StartChannel,
)

if TYPE_CHECKING:
    from rota.runner.agent import Agent

#: Without a manager and without anything to do, a runner leaves after this.
IDLE_EXIT_S = 10.0
#: When leaving, how long to wait for the last acknowledgement.
LAST_ACK_S = 2.0
_LOOK_AGAIN_S = 0.1
_NEVER = float("inf")


class Orders:
    """Carries out what an agent is told."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.leaving = False
        self._terminated = 0  #: times that SIGTERM came
        self._leave_by = _NEVER

    @property
    def told_to_end(self) -> bool:
        """Will it end when its jobs have, whatever the manager says?"""
        return bool(self._terminated)

    def handle(self, message: m.ToRunner) -> None:
        match message:
            case m.Work():
                self._on_work(message)
            case m.Kill(leases, checkpoint):
                for ref in leases:
                    self._end_lease((ref.job, ref.attempt, ref.token), "killed on request", checkpoint)
            case m.Suspend(leases, on):
                for ref in leases:
                    self._agent.pausing.order((ref.job, ref.attempt, ref.token), on)
            case m.Signal(leases, signal, everything):
                for ref in leases:
                    key = (ref.job, ref.attempt, ref.token)
                    self._agent.warnings.signal(key, signal, everything=everything)
            case m.SetWalltime(ref, walltime_s):
                self._agent.warnings.set_walltime((ref.job, ref.attempt, ref.token), walltime_s)
            case m.ClosePart(leases):
                for ref in leases:
                    self._agent.parts.close((ref.job, ref.attempt, ref.token))
            case m.Recall(leases):
                for ref in leases:
                    self._hand_back((ref.job, ref.attempt, ref.token))
            case m.Tail(job, attempt, on, tail, hold, window):
                if on:
                    follower = Follower((job, attempt), tail=tail, hold=hold, window=window)
                    self._agent.followers.follow(follower)
                else:
                    self._agent.followers.stop(job, attempt, tail)
            case m.Took(job, attempt, tail, out, err, window):
                self._agent.followers.took((job, attempt), tail, taken=[out, err], window=window)
            case m.Leave(kill):
                self._leave("kill_requested" if kill else "", "the manager stops")
            case StartChannel() | ChannelData() | ChannelCredit():
                self._agent.channels.received(message)
            case ChannelResize() | ChannelSignal() | ChannelEnd():
                self._agent.channels.received(message)
            case _:
                say(f"unexpected message {type(message).__name__}")

    def obey(self, rules: m.Rules) -> None:
        """New rules, and leases that are no longer valid."""
        self._agent.rules = rules
        self._agent.followers.obey(rules.output_spool)
        self._agent.fences.script = rules.containment_script
        hooks = bool(rules.prologue or rules.epilogue)
        self._agent.contain_first = hooks or "cgroup" in (rules.containment, rules.enforce_memory)
        for ref in rules.forget:
            key = (ref.job, ref.attempt, ref.token)
            if not self._agent.seating.drop(key):
                self._end_lease(key, "its lease is no longer valid")

    def _on_work(self, work: m.Work) -> None:
        agent = self._agent
        agent.catalogue.learn(work)
        if self.leaving and not self._terminated:
            self.leaving = False
            self._leave_by = _NEVER
        for grant in work.grants:
            key = (grant.job, grant.attempt, grant.token)
            if key in agent.seating.waiting or key in agent.tasks or key in agent.outbox.unacked:
                continue  # told twice
            env = agent.catalogue.environment(grant)
            if self.leaving or env is None:
                agent.outbox.give_back(key)
                continue
            line = agent.seating.wait(Task(key, grant, env))
            if line.free:
                agent.beginnings.dirty[line] = None
        for part in work.parts:
            if not self.leaving:
                agent.parts.open(part)
        for seat in work.seats:
            opened = agent.seating.open(seat.seat, seat.size)
            if opened is not None:
                agent.beginnings.dirty[opened] = None

    def _end_lease(self, key: Key, why: str, checkpoint: str = "") -> None:
        task = self._agent.tasks.get(key)
        if task is not None and task.part:
            self._agent.parts.close(key)
        elif task is not None and checkpoint and task.can_save:
            self._agent.warnings.end_after_checkpoint(task, self._agent.now, checkpoint, why)
        elif task is not None:
            self._agent.endings.end(task, self._agent.now, reason="kill_requested", message=why)
        else:
            self._hand_back(key)

    def _hand_back(self, key: Key) -> None:
        if self._agent.seating.drop(key):
            self._agent.outbox.give_back(key)

    def _leave(self, reason: str, message: str) -> None:
        """Start nothing more, hand back what has not begun, leave when nothing runs; for a reason, end it."""
        agent = self._agent
        # The agent of a node waits for the next manager.
        self.leaving = agent.node is None or bool(self._terminated)
        for key in list(agent.seating.waiting):
            self._hand_back(key)
        for line in list(agent.seating.lines.values()):
            if line.free:
                agent.beginnings.dirty[line] = None
        if reason:
            for task in list(agent.tasks.values()):
                if task.part:
                    agent.parts.close(task.key)
                else:
                    agent.endings.end(task, agent.now, reason=reason, message=message)
        agent.due(agent.now)

    def terminate(self) -> None:
        """The first SIGTERM asks to leave when the jobs are done, the second ends them."""
        self._terminated += 1
        say("asked to terminate")
        # Nobody wanted the jobs to end: their retries decide.
        reason = "lost" if self._terminated > 1 else ""
        self._leave(reason, f"the agent of {self._agent.identity.host} was stopped")
        self._agent.contact.leaving()

    def tick(self, now: float) -> None:
        agent, contact = self._agent, self._agent.contact
        if self.leaving and not agent.tasks and not (contact.joined and agent.followers.busy):
            if self._leave_by == _NEVER:
                self._leave_by = now + LAST_ACK_S
            agent.done = (agent.outbox.clear and not agent.quiet) or now >= self._leave_by or not contact.joined
            agent.due(self._leave_by)
        if contact.joined:
            return
        away = now - contact.away_since
        stays = agent.node is not None
        if not stays and not agent.tasks and now >= agent.beginnings.retry_at and away >= IDLE_EXIT_S:
            say("no manager and nothing to do")
            agent.done = True
        elif away >= agent.rules.orphan_after_s:
            self._abandon()
        patience_s = agent.rules.orphan_after_s if agent.tasks else IDLE_EXIT_S
        agent.due(max(contact.away_since + patience_s, now + _LOOK_AGAIN_S))

    def _abandon(self) -> None:
        """Nobody has asked for these jobs for too long: end them, keep their records, leave."""
        agent = self._agent
        if agent.tasks and not self.leaving:
            say(f"no contact for {agent.rules.orphan_after_s:g} s: ending {len(agent.tasks)} jobs")
        self.leaving = self.leaving or agent.node is None
        for key in list(agent.seating.waiting):
            agent.seating.drop(key)
        for key in agent.parts.held():
            agent.parts.close(key)
        for task in list(agent.tasks.values()):
            if task.afterwards is None and not task.part:  # else it has ended; what it still does is bounded
                message = f"the manager was away for {agent.rules.orphan_after_s:g} s"
                agent.endings.end(task, agent.now, reason="lost", message=message)
