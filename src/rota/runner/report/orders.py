"""Orders of the manager, each handed to the component that carries it out."""

from __future__ import annotations

from rota.runner.contain.suspension import Suspension
from rota.runner.contain.task_containment import Containment
from rota.runner.current_rules import CurrentRules
from rota.runner.end.task_signals import TaskSignals
from rota.runner.end.termination import Terminator
from rota.runner.enter.channels import JobChannels
from rota.runner.launch.launchers import Launchers
from rota.runner.log import say
from rota.runner.loop import Loop
from rota.runner.output.audience import Follower
from rota.runner.output.followers import Followers
from rota.runner.report.journal import Key
from rota.runner.report.leaving import Leaving
from rota.runner.report.outbox import Outbox
from rota.runner.start.ahead import LeasesAhead
from rota.runner.start.environment import Catalogue
from rota.runner.start.parts import Parts
from rota.runner.start.seats import Seating
from rota.runner.task import Task
from rota.runner.task_table import TaskTable
from rota.wire import orders as m
from rota.wire.channels import (
    ChannelCredit,
    ChannelData,
    ChannelEnd,
    ChannelResize,
    ChannelSignal,
    StartChannel,
)


class Orders:
    """Carries out what the manager orders."""

    def __init__(
        self,
        *,
        loop: Loop,
        launchers: Launchers,
        tasks: TaskTable,
        rules: CurrentRules,
        outbox: Outbox,
        seating: Seating,
        catalogue: Catalogue,
        containment: Containment,
        terminator: Terminator,
        task_signals: TaskSignals,
        suspension: Suspension,
        parts: Parts,
        followers: Followers,
        channels: JobChannels,
        leaving: Leaving,
        ahead: LeasesAhead,
    ) -> None:
        self._loop = loop
        self._launchers = launchers
        self._tasks = tasks
        self._rules = rules
        self._outbox = outbox
        self._seating = seating
        self._catalogue = catalogue
        self._containment = containment
        self._terminator = terminator
        self._signals = task_signals
        self._suspension = suspension
        self._parts = parts
        self._followers = followers
        self._channels = channels
        self._leaving = leaving
        self._ahead = ahead

    def handle(self, message: m.ToRunner) -> None:
        match message:
            case m.Work():
                self._on_work(message)
            case m.Kill(leases, checkpoint):
                for ref in leases:
                    self._end_lease((ref.job, ref.attempt, ref.token), "killed on request", checkpoint)
            case m.Suspend(leases, on):
                for ref in leases:
                    self._suspend((ref.job, ref.attempt, ref.token), on)
            case m.Signal(leases, signal, everything):
                for ref in leases:
                    key = (ref.job, ref.attempt, ref.token)
                    self._signals.signal(key, signal, everything=everything)
            case m.SetWalltime(ref, walltime_s):
                self._signals.set_walltime((ref.job, ref.attempt, ref.token), walltime_s)
            case m.ClosePart(leases):
                for ref in leases:
                    self._parts.close((ref.job, ref.attempt, ref.token))
            case m.Recall(leases):
                for ref in leases:
                    self._hand_back((ref.job, ref.attempt, ref.token))
            case m.Tail(job, attempt, on, tail, hold, window):
                if on:
                    follower = Follower((job, attempt), tail=tail, hold=hold, window=window)
                    self._followers.follow(follower)
                else:
                    self._followers.stop(job, attempt, tail)
            case m.Took(job, attempt, tail, out, err, window):
                self._followers.took((job, attempt), tail, taken=[out, err], window=window)
            case m.Leave(kill):
                self._leaving.leave("kill_requested" if kill else "", "the manager stops")
            case StartChannel() | ChannelData() | ChannelCredit():
                self._channels.received(message)
            case ChannelResize() | ChannelSignal() | ChannelEnd():
                self._channels.received(message)
            case _:
                say(f"unexpected message {type(message).__name__}")

    def obey(self, rules: m.Rules) -> None:
        """New rules, and leases that are no longer valid."""
        self._ahead.take_all_back()
        self._rules.replace(rules)
        self._launchers.obey(rules)
        self._followers.obey(rules.output_spool)
        self._containment.fences.script = rules.containment_script
        for ref in rules.forget:
            key = (ref.job, ref.attempt, ref.token)
            if not self._seating.drop(key):
                self._end_lease(key, "its lease is no longer valid")

    def _on_work(self, work: m.Work) -> None:
        self._catalogue.learn(work)
        self._leaving.work_came()
        for grant in work.grants:
            key = (grant.job, grant.attempt, grant.token)
            if key in self._seating.waiting or key in self._tasks.by_key or key in self._outbox.unacked:
                continue  # sent twice
            env = self._catalogue.environment(grant)
            if self._leaving.leaving or env is None:
                self._outbox.give_back(key)
                continue
            self._seating.wait(Task(key, grant, env))
        for part in work.parts:
            if not self._leaving.leaving:
                self._parts.open(part)
        for seat in work.seats:
            self._seating.open(seat.seat, seat.size)
        if self._tasks.ahead:
            self._ahead.reconsider()

    def _end_lease(self, key: Key, why: str, checkpoint: str = "") -> None:
        if self._seating.drop(key):
            self._outbox.give_back(key)
            return
        task = self._tasks.by_key.get(key)
        if task is not None and task.part:
            self._parts.close(key)
        elif task is not None and checkpoint and task.can_checkpoint:
            self._signals.end_after_checkpoint(task, self._loop.now, checkpoint, why)
        elif task is not None:
            self._terminator.end(task, self._loop.now, reason="kill_requested", message=why)

    def _suspend(self, key: Key, on: bool) -> None:
        task = self._tasks.by_key.get(key)
        if on and task is not None and not task.part:
            self._seating.unbind(task.seat)  # its room is another's from now on
        self._suspension.order(key, on)

    def _hand_back(self, key: Key) -> None:
        if self._seating.drop(key):
            self._outbox.give_back(key)
