"""Scripts of the site on the manager's host: a prologue before a job is sent to its node, an epilogue after its
attempt.

`manager.host` runs them and reports their end as events. A job whose prologue fails is tried again after a delay,
and fails after `MOST_TRIES` failures. Other jobs never wait for a script.
"""

from __future__ import annotations

from typing import Final

import msgspec

from rota.core.attempts.lease_refs import ref_of
from rota.core.effects import RunServerScript, StopServerScript
from rota.core.hooks.hook_records import Epilogue, ScriptState, StoredHooks
from rota.core.jobs.job import AttemptEnd, Job, Lease, Reason
from rota.core.jobs.report_groups import first_of
from rota.core.restart import Restart
from rota.core.states import State
from rota.core.turn import Turn
from rota.core.world import World, move

PROLOGUE: Final = "prologue"
EPILOGUE: Final = "epilogue"
#: Key of `Changes.meta` for `StoredHooks`.
HOOKS: Final = "hooks"
#: Failures of its prologue after which a job fails.
MOST_TRIES: Final = 3


def begin_prologue(world: World, turn: Turn, job: Job) -> None:
    """Start the prologue. The lease is withheld until it succeeds."""
    lease = job.lease
    assert lease is not None
    move(world, job, State.STARTING)
    job.reason = Reason("server_prologue", "the prologue on the manager's host runs")
    world.use(ScriptState).running.add(job.id)
    host = world.runners[lease.runner].host
    turn.effects.append(RunServerScript(PROLOGUE, *ref_of(job, lease), about_job(job, lease, host)))


def forget_prologue(world: World, turn: Turn, job: Job) -> None:
    """Stop the prologue of a lease that ended before it was sent."""
    running = world.use(ScriptState).running
    if job.id in running:
        running.discard(job.id)
        turn.effects.append(StopServerScript(job.id, job.attempt))


def after_failure(world: World, turn: Turn, job: Job, wrong: str) -> AttemptEnd:
    """Decide what becomes of a job whose prologue failed."""
    hooks = world.use(ScriptState)
    tries = hooks.tries[job.id] = hooks.tries.get(job.id, 0) + 1
    turn.note(job.id, job.attempt, "server_prologue", wrong)
    if tries < MOST_TRIES:
        store_hooks(world, turn)
        return AttemptEnd(State.DELAYED, Reason("server_prologue", wrong), tries=tries)
    forget_tries(world, turn, job.id)
    return AttemptEnd(State.FAILED, Reason("server_prologue", f"{wrong} ({tries} times)"))


def forget_tries(world: World, turn: Turn, job: int) -> None:
    """The prologue succeeded or the job failed: count its failures from zero again."""
    if world.use(ScriptState).tries.pop(job, None) is not None:
        store_hooks(world, turn)


# ------------------------------------------------------------------ epilogue


def begin_epilogue(world: World, turn: Turn, job: Job, ended: AttemptEnd, host: str) -> None:
    """Start the epilogue, if the site has one, of an attempt of which nothing is left on any host."""
    hooks, outcome, lease = world.use(ScriptState), ended.outcome, job.lease
    if not hooks.epilogue or lease is None or (outcome is None and not hooks.prologue):
        return
    about = about_job(job, lease, host)
    # The script is told how the attempt ended, not whether the job is tried again.
    word = "voided" if outcome is None else "failed" if ended.state is State.DELAYED else ended.state.label
    about["ROTA_OUTCOME"] = word
    about["ROTA_REASON"] = ended.reason.code if ended.reason is not None else ""
    for name, value in (
        ("ROTA_EXIT_CODE", outcome.exit_code if outcome is not None else None),
        ("ROTA_SIGNAL", outcome.signal if outcome is not None else None),
    ):
        about[name] = "" if value is None else str(value)
    hooks.epilogues[job.id, job.attempt] = Epilogue(job.id, job.attempt, about)
    store_hooks(world, turn)
    turn.effects.append(RunServerScript(EPILOGUE, job.id, job.attempt, lease.token, about))


def epilogue_over(world: World, turn: Turn, job: int, attempt: int, wrong: str) -> None:
    """The epilogue has run. A failure is only a line in the job's story."""
    if world.use(ScriptState).epilogues.pop((job, attempt), None) is None:
        return
    store_hooks(world, turn)
    if wrong:
        turn.note(job, attempt, "server_epilogue", wrong)


# ------------------------------------------------------------------ across a restart


def store_hooks(world: World, turn: Turn) -> None:
    """Store what a restart must not lose about scripts."""
    hooks = world.use(ScriptState)
    hooks.tries = {job: tries for job, tries in hooks.tries.items() if job in world.jobs}
    kept = StoredHooks(hooks.tries, list(hooks.epilogues.values()))
    turn.changes.meta[HOOKS] = msgspec.json.encode(kept).decode()


def restore_hooks(world: World, restart: Restart) -> None:
    """Restore what `store_hooks` stored. Prologues start again with their jobs; the caller must start the
    epilogues."""
    text = restart.snapshot.meta.get(HOOKS)
    kept = msgspec.json.decode(text, type=StoredHooks) if text else None
    if kept is not None and (kept.tries or kept.epilogues):
        hooks = world.use(ScriptState)
        hooks.tries = {job: tries for job, tries in kept.tries.items() if job in world.jobs}
        hooks.epilogues = {(each.job, each.attempt): each for each in kept.epilogues}


def about_job(job: Job, lease: Lease, host: str) -> dict[str, str]:
    """The variables that describe a job to a script of the site."""
    spec, given = job.spec, lease.given
    nodes = given.nodes if given is not None and given.nodes else ((host, 0),)
    promised = given.promised if given is not None else None
    return {
        "ROTA_USER": spec.user,
        "ROTA_JOB_NAME": spec.name,
        "ROTA_GROUP": first_of(spec.group),
        "ROTA_PROJECT": spec.project,
        "ROTA_QUEUE": spec.queue,
        "ROTA_TYPES": " ".join(spec.types),
        "ROTA_NODE": host,
        "ROTA_NODES": " ".join(node for node, _cores in nodes),
        "ROTA_RESOURCES": given.resources if given is not None else "",
        "ROTA_PROMISED_NODES": " ".join(promised.nodes if promised is not None else (node for node, _ in nodes)),
    }
