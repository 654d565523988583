"""What the end of a script on the manager's host means for its job (`core.hooks.server_scripts`)."""

from __future__ import annotations

from rota.core.attempts.attempt import void_attempt
from rota.core.events import ServerScriptEnded
from rota.core.hooks.server_scripts import EPILOGUE, after_failure, epilogue_over, forget_tries, send_withheld
from rota.core.site.manager_pause import starts_nothing
from rota.core.turn import Turn
from rota.core.world import World


def on_server_script_ended(world: World, turn: Turn, event: ServerScriptEnded) -> None:
    """A job whose prologue went well is sent; an attempt that is over meanwhile is left alone."""
    if event.hook == EPILOGUE:
        epilogue_over(world, turn, event.job, event.attempt, event.wrong)
        return
    job = world.jobs.get(event.job)
    lease = job.lease if job is not None else None
    if job is None or lease is None or job.attempt != event.attempt or lease.token != event.token:
        return
    if job.id not in world.server_hooks.running or lease.withheld is None:
        return
    world.server_hooks.running.discard(job.id)
    if event.wrong:
        then = after_failure(world, turn, job, event.wrong)
        void_attempt(world, turn, job, f"the prologue on the manager's host failed: {event.wrong}", then=then)
        return
    forget_tries(world, turn, job.id)
    if starts_nothing(world):
        void_attempt(world, turn, job, "nothing may start now")
    else:
        send_withheld(world, turn, job)
