"""The end of a script on the manager's host, and the registration of these scripts as a feature."""

from __future__ import annotations

from rota.core.attempts.attempt import void_attempt
from rota.core.attempts.preparation import go_on
from rota.core.events import ServerScriptEnded
from rota.core.feature import Feature
from rota.core.hooks.hook_records import ScriptState
from rota.core.hooks.server_scripts import (
    EPILOGUE,
    PROLOGUE,
    after_failure,
    begin_epilogue,
    begin_prologue,
    epilogue_over,
    forget_prologue,
    forget_tries,
    restore_hooks,
)
from rota.core.jobs.job import Job
from rota.core.site.manager_pause import starts_nothing
from rota.core.turn import Turn
from rota.core.world import Preparation, World
from rota.plan.placement.given import Given


def on_server_script_ended(world: World, turn: Turn, event: ServerScriptEnded) -> None:
    """Go on with the job of a successful prologue, or void its lease. Ignored if the attempt is over already."""
    if event.hook == EPILOGUE:
        epilogue_over(world, turn, event.job, event.attempt, event.wrong)
        return
    job = world.jobs.get(event.job)
    lease = job.lease if job is not None else None
    if job is None or lease is None or job.attempt != event.attempt or lease.token != event.token:
        return
    running = world.use(ScriptState).running
    if job.id not in running or lease.withheld is None:
        return
    running.discard(job.id)
    if event.wrong:
        then = after_failure(world, turn, job, event.wrong)
        void_attempt(world, turn, job, f"the prologue on the manager's host failed: {event.wrong}", then=then)
        return
    forget_tries(world, turn, job.id)
    if starts_nothing(world):
        void_attempt(world, turn, job, "nothing may start now")
    else:
        go_on(world, turn, job)


def _has_prologue(world: World, _job: Job, _given: Given | None) -> bool:
    return world.use(ScriptState).prologue


FEATURE = Feature(
    name="server scripts",
    state=ScriptState,
    handlers={ServerScriptEnded: on_server_script_ended},
    preparation=Preparation(name=PROLOGUE, wanted=_has_prologue, begin=begin_prologue),
    restore=restore_hooks,
    lease_voided=forget_prologue,
    attempt_over=begin_epilogue,
)
