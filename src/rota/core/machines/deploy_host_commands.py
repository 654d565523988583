"""Commands that the agent of the deploy host runs to make machines ready.

The agent may be away, give a command back, or lose it as it dies: then it gets the command again, with a new
token.
"""

from __future__ import annotations

import msgspec

from rota.core.attempts.leases import Finished
from rota.core.events import RunnerJoined
from rota.core.jobs.job import Job
from rota.core.machines import provisioning
from rota.core.machines.provision_records import KeepProvisionOutput, Provisions, SendErrand
from rota.core.machines.provision_steps import ask, change, command_for, keep, new_token, say_why
from rota.core.machines.provisioned_machines import deployer, provisions_of
from rota.core.turn import Turn
from rota.core.world import World
from rota.plan.placement.given import Provision


def ask_anew(world: World, turn: Turn, job: Job, each: Provision, *, at_once: bool = True) -> None:
    """The deploy host does not have the command of a machine any more, or never had it: it gets it again. What is
    heard of the former one does not count."""
    again = msgspec.structs.replace(each, token=new_token(turn), ticket="")
    keep(world, turn, job, again)
    if at_once:
        ask(world, turn, job, again)


def take_ticket(world: World, turn: Turn, job: Job, each: Provision, ticket: str) -> None:
    """There is a ticket for the command of a machine: have the deploy host run it."""
    state = world.use(Provisions)
    state.asked.discard(each.token)
    runner = deployer(world, each)
    if each.via and not each.ticket and runner is not None:
        keep(world, turn, job, msgspec.structs.replace(each, ticket=ticket))
        state.sent(each.token, (job.id, job.attempt, each.host))
        order = command_for(world, job, each)
        turn.effects.append(SendErrand(runner.id, job, order, state.limits.installing_s))


def deployer_joined(world: World, turn: Turn, job: Job, each: Provision, event: RunnerJoined) -> None:
    """The agent of the deploy host has joined. It runs a command again that it does not know, unless that has
    succeeded."""
    lease = (job.id, job.attempt, each.token)
    held = next((one for one in event.held if (one.job, one.attempt, one.token) == lease), None)
    if held is not None:
        if held.started_at is not None:
            change(world, turn, job, each, provisioning.begin(each, turn.wall, ticket=each.ticket))
    elif not each.accepted:
        ask_anew(world, turn, job, each)


def ask_deployers(world: World, turn: Turn, job: Job) -> None:
    """Have commands run by a deploy host that was away, or gave them back."""
    say_why(world, job)
    for each in provisions_of(job):
        waits = each.via and not each.ticket and not each.accepted and not provisioning.is_over(each)
        if waits and each.token not in world.use(Provisions).asked:
            ask(world, turn, job, each)


def keep_output(world: World, turn: Turn, end: Finished) -> None:
    """Keep what the command of a deploy host has printed. Its machine may have been ready before it ended."""
    job, attempt, host = world.use(Provisions).errands.pop(end.token, (0, 0, ""))
    if (job, attempt) == (end.job, end.attempt):
        turn.effects.append(KeepProvisionOutput(job, attempt, host, end.outcome))
