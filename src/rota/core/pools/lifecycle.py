"""The life of a runner of a delegated pool: wanted, written down, asked for, bound to a key, withdrawn."""

from __future__ import annotations

from typing import Final

from rota.core.events import RunnerJoined
from rota.core.feature import Feature
from rota.core.jobs.job import AttemptEnd, Job
from rota.core.machines.allocations import close_allocation
from rota.core.pools.decisions import backed_off, excess, missing, surplus
from rota.core.pools.effects import MakeBlanks, SubmitRunners, SurveyPool, WithdrawRunners
from rota.core.pools.events import (
    BlanksMade,
    PoolSurveyed,
    RunnersSubmitted,
    SubmissionFailed,
    SurveyFailed,
    WithdrawalEnded,
)
from rota.core.pools.records import Intent, RunnerState
from rota.core.pools.state import Pools, PoolState, from_row, has_runner, store
from rota.core.pools.surveys import note_fruitless, on_pool_surveyed, on_survey_failed, withdraw
from rota.core.restart import Restart
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import Runner, World
from rota.plan.need import Need

#: How often everything is decided anew.
RESTATE_S: Final = 60.0


def on_blanks_made(world: World, turn: Turn, event: BlanksMade) -> None:
    """Write down as many runners as are still missing. They are asked for after the commit."""
    pools = world.use(Pools)
    pool = pools.pools.get(event.pool)
    if pool is None:
        return
    pool.making.pop(event.need, None)
    number = missing(pool, mono=turn.mono).get(event.need, 0)
    if not number:
        return
    seconds = pool.wanted[event.need].seconds
    blanks = event.blanks[:number]
    for blank in blanks:
        intent = Intent(
            blank.name,
            pool=event.pool,
            need=event.need,
            seconds=seconds,
            ticket=blank.ticket,
            asked_at=turn.wall,
        )
        pools.add(intent)
        store(turn, intent)
    turn.effects.append(SubmitRunners(event.pool, event.need, seconds, [blank.name for blank in blanks]))
    pools.due.add(event.pool)


def on_runners_submitted(world: World, turn: Turn, event: RunnersSubmitted) -> None:
    """The engine accepted these runners."""
    pools = world.use(Pools)
    pool = pools.pools.get(event.pool)
    if pool is None:
        return
    unwanted: dict[str, str] = {}
    for name, id in event.ids.items():
        intent = pool.intents.get(name)
        if intent is None or intent.withdrawn:
            unwanted[id] = name
        if intent is None:
            continue
        intent.engine_id = id or intent.engine_id
        if intent.state in (RunnerState.ASKED, RunnerState.UNKNOWN):
            intent.state = RunnerState.SUBMITTED
        pool.errors.pop(intent.need, None)
        store(turn, intent)
    unwanted.pop("", None)
    if unwanted:
        turn.effects.append(WithdrawRunners(event.pool, list(unwanted), sorted(unwanted.values())))
    turn.effects.append(SurveyPool(event.pool))


def on_submission_failed(world: World, turn: Turn, event: SubmissionFailed) -> None:
    """The engine failed. What was certainly not made is forgotten; the rest is searched for by name."""
    pools = world.use(Pools)
    pool = pools.pools.get(event.pool)
    if pool is None:
        return
    for name in event.names:
        intent = pool.intents.get(name)
        if intent is None:
            continue
        if event.refused and not intent.key:
            pools.remove(turn, intent)
        elif intent.state is RunnerState.ASKED:
            intent.state = RunnerState.UNKNOWN
            store(turn, intent)
    _fail(turn, event.pool, pool, event.need, event.error)
    if not event.refused:
        turn.effects.append(SurveyPool(event.pool))


def on_withdrawal_ended(world: World, turn: Turn, event: WithdrawalEnded) -> None:
    """The next survey shows whether the runners have ended, and repeats the withdrawal of the rest."""
    pool = world.use(Pools).pools.get(event.pool)
    if pool is None:
        return
    error = f"cannot withdraw runners: {event.error}" if event.error else ""
    if error and error != pool.withdrawal_error:
        turn.note(NO_JOB_ID, 0, "pool", f"{event.pool}: {error}")
    pool.withdrawal_error = error
    turn.effects.append(SurveyPool(event.pool, again=True))  # the engine may never do it


# ------------------------------------------------------------------ extension points


def _runner_joined(world: World, turn: Turn, runner: Runner, _event: RunnerJoined) -> None:
    """A runner of a pool has joined, so it exists whatever the engine says. Its host has the name of its
    intent."""
    intent = world.use(Pools).intents.get(runner.host)
    if intent is None:
        return
    intent.parted_at, intent.missed, intent.fenced = 0.0, 0, False
    if intent.runner != runner.id or intent.state is not RunnerState.RUNNING:
        intent.runner, intent.state = runner.id, RunnerState.RUNNING
        store(turn, intent)


def _runner_parted(world: World, turn: Turn, host: str) -> None:
    """Its connection ended. If it has left, a survey shows that soon."""
    pools = world.use(Pools)
    intent = pools.intents.get(host)
    if intent is None or has_runner(world, intent):
        return
    intent.parted_at = turn.mono
    pools.due.add(intent.pool)
    turn.effects.append(SurveyPool(intent.pool))


def _attempt_over(world: World, _turn: Turn, _job: Job, _ended: AttemptEnd, host: str) -> None:
    world.use(Pools).has_worked(host)


def _look_again(world: World, turn: Turn) -> None:
    """Decide again when a wait after an error ends, and about everything once a minute, in case a trigger was
    lost."""
    pools = world.use(Pools)
    if turn.mono - pools.restated_at >= RESTATE_S:
        pools.restated_at = turn.mono
        pools.due |= pools.pools.keys()
        for pool in pools.pools.values():
            pool.making.clear()
        _forget_unconfigured(world, turn)
    pools.due |= {name for name, pool in pools.pools.items() if pool.wanted and (pool.errors or pool.fruitless)}


def _send_away(world: World, turn: Turn, intent: Intent) -> None:
    """Let a runner finish its job and leave. The engine is not told, because it would end the job."""
    intent.withdrawn = True
    store(turn, intent)
    if (runner := world.runners.get(intent.runner)) is not None:
        close_allocation(world, turn, runner)


def _forget_unconfigured(world: World, turn: Turn) -> None:
    """Pools that are no longer configured cannot be surveyed. Forget their runners that have not come back in
    time; if the pool is configured again, a survey finds the others by name."""
    pools = world.use(Pools)
    if turn.mono - pools.began < RESTATE_S:
        return
    for pool in pools.pools.values():
        for intent in () if pool.configured else list(pool.intents.values()):
            if not has_runner(world, intent):
                pools.remove(turn, intent)


def _decide(world: World, turn: Turn) -> None:
    """Withdraw surplus runners, and ask for missing ones."""
    pools = world.use(Pools)
    if not pools.due:
        return
    due, pools.due = sorted(pools.due), set()
    while pools.foreign:
        turn.changes.intents[pools.foreign.pop()] = None
    for name in due:
        pool = pools.pools[name]
        for intent in surplus(pool) if pools.counted else ():
            withdraw(turn, intent)
        for intent in excess(pool):
            _send_away(world, turn, intent)
        for intent in pool.intents.values():
            if intent.parted_at:
                note_fruitless(turn, pool, intent)  # before another one is asked for
        for need, number in missing(pool, mono=turn.mono).items():
            pool.making[need] = pool.making.get(need, 0) + number
            turn.effects.append(MakeBlanks(name, need, number))


def _restore(world: World, restart: Restart) -> None:
    if restart.snapshot.intents:
        pools = world.use(Pools)
        pools.began = restart.mono
        for row in restart.snapshot.intents:
            pools.add(from_row(row))
        for pool in pools.pools.values():
            pool.allowed = max(pool.allowed, len(pool.intents))


def _consistent(world: World) -> list[str]:
    """Intents are found by name and ticket, and no pool has more of them than it may."""
    pools, wrong = world.use(Pools), []
    every = [intent for pool in pools.pools.values() for intent in pool.intents.values()]
    if len(pools.intents) != len(every) or any(pools.intents.get(each.name) is not each for each in every):
        wrong.append("pools: intents of the pools and of all differ")
    if len(pools.tickets) != len(every) or any(pools.tickets.get(each.ticket) is not each for each in every):
        wrong.append("pools: tickets and intents differ")
    for name, pool in pools.pools.items():
        if len(pool.intents) > max(pool.allowed, pool.rules.max_runners):
            wrong.append(f"pools: {name} has {len(pool.intents)} runners, and may have {pool.rules.max_runners}")
    return wrong


def _fail(turn: Turn, name: str, pool: PoolState, need: Need, error: str) -> None:
    before = pool.errors.get(need)
    if before is None or before.error != error:
        turn.note(NO_JOB_ID, 0, "pool", f"{name}: {error}")
    pool.errors[need] = backed_off(before, error, rules=pool.rules, mono=turn.mono, wall=turn.wall)


FEATURE = Feature(
    name="pools",
    state=Pools,
    handlers={
        BlanksMade: on_blanks_made,
        RunnersSubmitted: on_runners_submitted,
        SubmissionFailed: on_submission_failed,
        PoolSurveyed: on_pool_surveyed,
        SurveyFailed: on_survey_failed,
        WithdrawalEnded: on_withdrawal_ended,
    },
    restore=_restore,
    on_timer=_look_again,
    after_step=_decide,
    invariant=_consistent,
    runner_joined=_runner_joined,
    runner_parted=_runner_parted,
    attempt_over=_attempt_over,
    ticket_grants=lambda world: world.use(Pools),
)
