"""The features of the engine in their fixed order.

At each extension point (`core.world.Points`) functions are called in this order. A new feature is one more line
here, and nothing in the shared paths.
"""

from __future__ import annotations

from typing import Final

from rota.core import clock_steps, events
from rota.core.attempts import noop_jobs, part_events, signals, suspension, walltimes
from rota.core.bugs import set_aside
from rota.core.feature import Feature, Features
from rota.core.gangs import lifecycle as gangs
from rota.core.hooks import expiry, script_events
from rota.core.jobs import actions, delays, modification, removal
from rota.core.learning import estimate
from rota.core.machines import (
    allocations,
    faulty_runs,
    fencing,
    holds,
    host_hours,
    hosts,
    machine_conditions,
    machine_history,
    provision_feature,
    runners,
    sleep_and_wake,
    suspected_hosts,
)
from rota.core.output import pruned_output
from rota.core.pipelines import lifecycle as pipelines
from rota.core.pools import demand, lifecycle
from rota.core.site import limits, manager_pause, promised_starts, reservations, site_records
from rota.core.submit import submission

_SUBMISSION: Final = Feature(
    name="submission",
    handlers={
        events.ChunkArrived: submission.on_chunk_arrived,
        events.LibraryGrew: submission.on_library_grew,
        events.UploadDropped: submission.on_upload_dropped,
    },
)
_JOBS: Final = Feature(
    name="jobs",
    handlers={
        events.JobsKilled: actions.on_jobs_killed,
        events.JobsHeld: actions.on_jobs_held,
        events.JobsReleased: actions.on_jobs_released,
        events.JobsRetried: actions.on_jobs_retried,
        events.JobsRemoved: removal.on_jobs_removed,
        events.JobsModified: modification.on_jobs_modified,
        events.JobsSignalled: signals.on_jobs_signalled,
        events.DeathConfirmed: actions.on_death_confirmed,
    },
    on_timer=delays.end_delays,
    next_due=delays.next_delay,
)
_LIMITS: Final = Feature(
    name="limits", handlers={events.LimitsDeclared: limits.on_limits_declared}, on_timer=limits.follow_clock
)
_RUNNERS: Final = Feature(
    name="runners",
    handlers={
        events.RunnerJoined: runners.on_runner_joined,
        events.RunnerReported: runners.on_runner_reported,
        events.RunnerParted: runners.on_runner_parted,
        events.RunnerIdled: runners.on_runner_idled,
        events.RunnerSettled: runners.on_runner_settled,
    },
    on_timer=runners.check_silence,
)
_SITE: Final = Feature(
    name="site",
    handlers={
        events.HostAppeared: hosts.on_host_appeared,
        events.HostHealed: suspected_hosts.on_host_healed,
        events.HostFenced: fencing.on_host_fenced,
        events.SiteChanged: site_records.on_site_changed,
    },
)
_MANAGER: Final = Feature(
    name="manager",
    handlers={
        events.ManagerPaused: manager_pause.on_manager_paused,
        events.ManagerDrained: manager_pause.on_manager_drained,
        events.ManagerResumed: manager_pause.on_manager_resumed,
        events.ClockMoved: clock_steps.on_clock_moved,
        events.LearningForgotten: estimate.on_learning_forgotten,
        events.OutputOutdated: pruned_output.on_output_outdated,
    },
    runner_joined=manager_pause.recall_from_joined,
)

_BUGS: Final = Feature(name="bugs", handlers={events.EntrySetAside: set_aside.on_entry_set_aside})

BUILT_IN: Final = Features(
    (
        _SUBMISSION,
        _JOBS,
        noop_jobs.FEATURE,
        _LIMITS,
        provision_feature.FEATURE,  # before all other preparations
        script_events.FEATURE,  # before parts: hosts are asked for theirs when the prologue is done
        part_events.FEATURE,
        gangs.FEATURE,  # after all other preparations: nothing of a gang is sent before all of it is prepared
        pipelines.FEATURE,
        suspension.FEATURE,
        walltimes.FEATURE,
        expiry.FEATURE,
        holds.FEATURE,
        _RUNNERS,
        _SITE,
        allocations.FEATURE,
        host_hours.FEATURE,
        faulty_runs.FEATURE,
        machine_conditions.FEATURE,
        machine_history.FEATURE,
        _MANAGER,
        _BUGS,
        reservations.FEATURE,
        promised_starts.FEATURE,
        demand.FEATURE,  # before pools, which ask for what is wanted
        lifecycle.FEATURE,
        sleep_and_wake.FEATURE,  # last: it puts nodes to sleep that nobody else has work for
    )
)
