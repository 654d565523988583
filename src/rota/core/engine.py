"""The engine: turns events, at a given time, into a batch of changes and effects.

It has no clock, socket, file, randomness or thread. An event that cannot be accepted leaves the world unchanged
and is answered with a refusal; it never stops the loop. Any other error is a bug: it may have left the world half
changed, so nothing of the open batch may be used any more (`core.bugs`).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from heapq import heappop
from typing import Any

from rota.core import clock_steps, events
from rota.core.attempts import noop_jobs, signals, suspension, walltimes
from rota.core.attempts.grants import grant_leases, on_server_script_ended
from rota.core.bugs.quarantine import on_entry_set_aside, screened
from rota.core.bugs.undecided import Undecided
from rota.core.effects import Refuse, RemoveSegments
from rota.core.jobs import actions, modification, removal
from rota.core.jobs.dependencies import enter_waiting, waiting_state
from rota.core.jobs.retry import MAX_DELAY_S
from rota.core.learning import estimate
from rota.core.machines import fencing, host_hours, host_usage, runners, sleep_and_wake, suspected_hosts
from rota.core.site import limits, manager_pause, plan_news, promised_starts, site_records
from rota.core.site.planning_terms import WorldTerms
from rota.core.states import State
from rota.core.submit import submission
from rota.core.turn import Turn
from rota.core.world import World
from rota.errors import Bug, RotaError

#: A runner without a manager ends its jobs after `orphan_after`. This much later they are certainly gone.
ORPHAN_MARGIN_S = 600.0

_Handler = Callable[[World, Turn, Any], None]


def _on_host_appeared(world: World, turn: Turn, event: events.HostAppeared) -> None:
    world.capacity[event.host] = event.capacity
    world.placement.host_known(event.host, event.capacity)
    world.largest = estimate.largest_of(list(world.capacity.values()))


def _on_runner_joined(world: World, turn: Turn, event: events.RunnerJoined) -> None:
    runners.on_runner_joined(world, turn, event)
    manager_pause.recall_from_joined(world, turn, event.runner)
    sleep_and_wake.follow_node(world, turn, event.host)


def _on_runner_parted(world: World, turn: Turn, event: events.RunnerParted) -> None:
    runner = world.runners.get(event.runner)
    runners.on_runner_parted(world, turn, event)
    if runner is not None:
        sleep_and_wake.follow_node(world, turn, runner.host)


def _on_output_outdated(_world: World, turn: Turn, event: events.OutputOutdated) -> None:
    # The record comes first: otherwise pruned output would look like lost output.
    turn.changes.pruned += [(segment,) for segment in event.segments]
    turn.effects.append(RemoveSegments(event.segments))


_HANDLERS: dict[type[events.Event], _Handler] = {
    events.RunnerReported: runners.on_runner_reported,
    events.ChunkArrived: submission.on_chunk_arrived,
    events.LibraryGrew: submission.on_library_grew,
    events.UploadDropped: submission.on_upload_dropped,
    events.JobsKilled: actions.on_jobs_killed,
    events.JobsHeld: actions.on_jobs_held,
    events.JobsReleased: actions.on_jobs_released,
    events.JobsRetried: actions.on_jobs_retried,
    events.JobsRemoved: removal.on_jobs_removed,
    events.JobsSuspended: suspension.on_jobs_suspended,
    events.JobsResumed: suspension.on_jobs_resumed,
    events.JobsSignalled: signals.on_jobs_signalled,
    events.WalltimeAsked: walltimes.on_walltime_asked,
    events.DeathConfirmed: actions.on_death_confirmed,
    events.HostAppeared: _on_host_appeared,
    events.RunnerJoined: _on_runner_joined,
    events.RunnerParted: _on_runner_parted,
    events.PowerCommandEnded: sleep_and_wake.on_power_command_ended,
    events.HostHealed: suspected_hosts.on_host_healed,
    events.HostFenced: fencing.on_host_fenced,
    events.ServerScriptEnded: on_server_script_ended,
    events.RunnerIdled: runners.on_runner_idled,
    events.RunnerSettled: runners.on_runner_settled,
    events.EntrySetAside: on_entry_set_aside,
    events.ManagerPaused: manager_pause.on_manager_paused,
    events.ManagerDrained: manager_pause.on_manager_drained,
    events.ManagerResumed: manager_pause.on_manager_resumed,
    events.LimitsDeclared: limits.on_limits_declared,
    events.SiteChanged: site_records.on_site_changed,
    events.JobsModified: modification.on_jobs_modified,
    events.LearningForgotten: estimate.on_learning_forgotten,
    events.OutputOutdated: _on_output_outdated,
    events.ClockMoved: clock_steps.on_clock_moved,
}


class Engine:
    """Decides what each event means. Owns no state but the world."""

    def __init__(
        self,
        world: World,
        *,
        lost_after_s: float = 60.0,
        orphan_after_s: float = 7 * 86400.0,
        dead_after_s: float = 3600.0,
    ) -> None:
        self.world = world
        world.placement.needs = partial(estimate.need_now, world)
        world.placement.terms = WorldTerms(world)
        world.on_site = world.placement.site_changed
        self._lost_after_s = lost_after_s
        self._given_up_after_s = orphan_after_s + ORPHAN_MARGIN_S
        self._dead_after_s = dead_after_s
        self._place = ""  #: what is being decided, apart from a single event

    def step(self, happened: list[events.Event], turn: Turn) -> list[RotaError]:
        """Handle these events in order, then start what can start.

        Returns the errors of refused events; each was also sent to its asker. Raises `Undecided` for a bug: then
        neither the world nor the open batch may be used any more.
        """
        refused: list[RotaError] = []
        ticked = False
        event: events.Event | None = None
        self._place = ""
        try:
            if self.world.bugs.screens:
                happened = screened(self.world, turn, happened)
            for event in happened:
                try:
                    if isinstance(event, events.TimerFired):
                        ticked = True
                        self._on_timer(turn)
                    else:
                        _HANDLERS[type(event)](self.world, turn, event)
                except RotaError as error:
                    if isinstance(error, Bug):
                        raise
                    refused.append(error)
                    by = getattr(event, "by", None)
                    if by is not None:
                        turn.effects.append(Refuse(by, error))
            event = None
            self._after_events(turn, ticked=ticked)
        except Exception as error:
            raise Undecided(self._place or type(event).__name__, event) from error
        return refused

    def _after_events(self, turn: Turn, *, ticked: bool) -> None:
        """Start what can start, and everything else that no single event asks for."""
        starts_nothing = manager_pause.starts_nothing(self.world)
        if self._reaches("granting") and not starts_nothing:
            grant_leases(self.world, turn)
        if ticked and self._reaches("energy"):
            sleep_and_wake.manage_energy(self.world, turn)  # only now: jobs that wait have been planned
        if self.world.moves_noted and self._reaches("promised starts"):
            promised_starts.note_pending_moves(self.world, turn)
        if self.world.bugs.safe_mode:
            return
        if self._reaches("plan news"):
            while self.world.placement.has_news and plan_news.act_on_plan(self.world, turn):
                grant_leases(self.world, turn)

    def _on_timer(self, turn: Turn) -> None:
        if self._reaches("delays"):
            self._end_delays(turn)
        if self._reaches("noop jobs") and self.world.noop_jobs:
            noop_jobs.end_due_noops(self.world, turn)
        if self._reaches("limits"):
            limits.follow_clock(self.world, turn)
        if self._reaches("walltimes") and self.world.pending_extensions:
            walltimes.grant_pending(self.world, turn)
        if self._reaches("silent runners"):
            runners.check_silence(
                self.world,
                turn,
                lost_after_s=self._lost_after_s,
                given_up_after_s=self._given_up_after_s,
                dead_after_s=self._dead_after_s,
            )
        if self._reaches("host hours"):
            host_hours.update_closed_hosts(self.world, turn)
        if self._reaches("host states"):
            host_usage.record_host_states(self.world, turn)
        self._place = ""

    def _reaches(self, place: str) -> bool:
        """This part of the turn begins; False: it is left out because of a bug."""
        self._place = place
        return place not in self.world.bugs.places

    def _end_delays(self, turn: Turn) -> None:
        due = self.world.delayed_until
        # A delay longer than the longest possible one means that the clock was set back: it is over too.
        while due and not turn.wall < due[0][0] <= turn.wall + MAX_DELAY_S:
            when, id = heappop(due)
            job = self.world.jobs.get(id)
            # The job may have been retried, held or killed in the meantime.
            if job is not None and job.state is State.DELAYED and (job.due_at == when or not job.due_at):
                job.due_at = None
                enter_waiting(self.world, turn, job, waiting_state(self.world, job))

    def next_due(self) -> float | None:
        """Return the wall time of the next planned start or end of a delay."""
        times = [self._next_delay(), noop_jobs.next_end(self.world)]
        if not manager_pause.starts_nothing(self.world):
            times.append(self.world.placement.next_event())
        return min((at for at in times if at is not None), default=None)

    def _next_delay(self) -> float | None:
        due = self.world.delayed_until
        while due:
            when, id = due[0]
            job = self.world.jobs.get(id)
            if job is not None and job.state in (State.DELAYED, State.HELD) and job.due_at == when:
                return when
            heappop(due)
        return None
