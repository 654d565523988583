"""Compares an engine's survey with the intents. A runner that is not shown has not necessarily ended.

An engine may be late, forget, claim or duplicate. A runner that is connected or holds leases exists whatever the
engine says. Strays are withdrawn.
"""

from __future__ import annotations

from collections.abc import Iterable

from rota.core.attempts.attempt import end_as_lost
from rota.core.machines.runners import retire_idle
from rota.core.pools.decisions import backed_off, is_missed
from rota.core.pools.effects import SurveyPool, WithdrawRunners
from rota.core.pools.events import PoolSurveyed, SurveyFailed
from rota.core.pools.records import Intent, RunnerState, Seen
from rota.core.pools.state import Pools, PoolState, has_runner, store
from rota.core.turn import NO_JOB_ID, Turn
from rota.core.world import World

#: Surveys in a row that must leave out a runner before it counts as ended.
MISSES = 2


def on_pool_surveyed(world: World, turn: Turn, event: PoolSurveyed) -> None:
    """The engine said what it has."""
    pools = world.use(Pools)
    pool = pools.pools.get(event.pool)
    if pool is None:
        return
    pool.surveyed, pool.survey_error = True, None
    shown: dict[str, list[Seen]] = {}
    for each in event.seen:
        shown.setdefault(each.name, []).append(each)
    strays: dict[str, Seen] = {}
    withdraw: dict[str, str] = {}  #: engine id → name
    for name, found in shown.items():
        intent = pool.intents.get(name)
        there = [each for each in found if each.state is not RunnerState.GONE]
        if intent is None:
            strays |= {each.engine_id: each for each in there}
            withdraw |= {each.engine_id: name for each in there}
        elif there:
            main = _the_one(intent, there)
            _take_seen(world, turn, pool, intent, main)
            extra = [each for each in there if each is not main]
            strays |= {each.engine_id: each for each in extra}
            # Which of two that run has the jobs is not known. The other one is refused, and ends by itself.
            withdraw |= {each.engine_id: name for each in extra if each.state is RunnerState.PENDING}
            if intent.withdrawn and not has_runner(world, intent):
                withdraw[main.engine_id] = name
    _note_strays(turn, event.pool, pool, strays)
    pool.strays = strays
    for name in sorted(event.known & pool.intents.keys()):
        found = shown.get(name, [])
        if all(each.state is RunnerState.GONE for each in found):
            _miss(world, turn, pool.intents[name], told=bool(found))
    if not withdraw:
        pool.withdrawal_error = ""  # what could not be withdrawn has gone by itself
    else:
        turn.effects.append(WithdrawRunners(event.pool, list(withdraw), sorted(set(withdraw.values()))))
    pools.due.add(event.pool)


def on_survey_failed(world: World, turn: Turn, event: SurveyFailed) -> None:
    """A failed survey changes nothing about runners."""
    pool = world.use(Pools).pools.get(event.pool)
    if pool is not None:
        if pool.survey_error is None or pool.survey_error.error != event.error:
            turn.note(NO_JOB_ID, 0, "pool", f"{event.pool}: {event.error}")
        pool.survey_error = backed_off(
            pool.survey_error, event.error, rules=pool.rules, mono=turn.mono, wall=turn.wall
        )


def _the_one(intent: Intent, there: list[Seen]) -> Seen:
    """Of several with one name: the one that the engine named at submission, else the one that runs."""
    return min(there, key=lambda each: (each.engine_id != intent.engine_id, each.state is not RunnerState.RUNNING))


def _take_seen(world: World, turn: Turn, pool: PoolState, intent: Intent, seen: Seen) -> None:
    before = (intent.state, intent.engine_id)
    intent.seen, intent.missed, intent.host = True, 0, seen.host
    intent.engine_id = seen.engine_id
    if seen.state is RunnerState.RUNNING:
        intent.running_since = intent.running_since or turn.mono
    if not (has_runner(world, intent) or intent.withdrawn):
        intent.state = seen.state
        if intent.key and not intent.parted_at and turn.mono - world.use(Pools).began > pool.rules.settle_s:
            intent.parted_at = turn.mono  # it joined an earlier manager, and has not come back
        if not intent.key and seen.state is RunnerState.RUNNING:
            if turn.mono - intent.running_since > pool.rules.join_s:
                _never_joined(turn, pool, intent)
        elif intent.parted_at and turn.mono - intent.parted_at > pool.rules.settle_s:
            withdraw(turn, intent)
        elif intent.parted_at:
            turn.effects.append(SurveyPool(intent.pool, again=True))  # it is about to end
    if (intent.state, intent.engine_id) != before:
        store(turn, intent)


def _never_joined(turn: Turn, pool: PoolState, intent: Intent) -> None:
    error = f"{intent.name} was started and did not join within {pool.rules.join_s:g} s"
    pool.errors[intent.need] = backed_off(
        pool.errors.get(intent.need), error, rules=pool.rules, mono=turn.mono, wall=turn.wall
    )
    turn.note(NO_JOB_ID, 0, "pool", f"{intent.pool}: {error}")
    withdraw(turn, intent)


def _miss(world: World, turn: Turn, intent: Intent, *, told: bool) -> None:
    """A survey left this runner out, or (`told`) says that it has ended."""
    runner = world.runners.get(intent.runner) if intent.runner else None
    if runner is not None and runner.connected and not runner.silent:
        return
    pool = world.use(Pools).pools[intent.pool]
    intent.missed += 1
    if intent.missed == 1:
        intent.missed_since = turn.mono
    if runner is not None and runner.leases:
        _fence(world, turn, pool, intent)
        return
    if told or intent.parted_at:
        gone = True
    elif intent.seen:
        gone = intent.missed >= MISSES
    else:
        gone = intent.missed >= MISSES and turn.mono - intent.missed_since >= pool.rules.settle_s
    if gone:
        world.use(Pools).remove(turn, intent)
        note_fruitless(turn, pool, intent)
    else:
        if intent.state is not RunnerState.UNKNOWN:
            intent.state = RunnerState.UNKNOWN
            store(turn, intent)
        turn.effects.append(SurveyPool(intent.pool, again=True))


def note_fruitless(turn: Turn, pool: PoolState, intent: Intent) -> None:
    """A runner has ended. If it never had a job and its need still misses one, the next may fare no better: wait
    longer before each request. What ends in the same round, an array perhaps, counts once."""
    if intent.withdrawn or intent.worked or intent.judged or not is_missed(pool, intent.need):
        return
    intent.judged = True
    before = pool.fruitless.get(intent.need)
    if before is not None and turn.mono < before.retry_at:
        return
    if intent.key:
        error = f"{intent.name} joined and left without a job; is its allocation too short?"
    elif intent.seen:
        error = f"{intent.name} ended before it joined; see the engine's own log"
    else:
        error = f"{intent.name} was asked for, and the engine never showed it"
    pool.fruitless[intent.need] = backed_off(before, error, rules=pool.rules, mono=turn.mono, wall=turn.wall)
    turn.note(NO_JOB_ID, 0, "pool", f"{intent.pool}: {error}")


def _fence(world: World, turn: Turn, pool: PoolState, intent: Intent) -> None:
    """Fence a silent runner that has jobs and that the engine does not show: have the engine remove it, survey
    again, then give up its jobs."""
    runner = world.runners[intent.runner]
    if not runner.silent:
        return
    if not intent.fenced:
        intent.fenced = True
        withdraw(turn, intent)
        intent.missed, intent.missed_since = 0, turn.mono
    elif intent.missed >= MISSES and turn.mono - intent.missed_since >= pool.rules.settle_s:
        for id in list(runner.leases):
            end_as_lost(world, turn, world.jobs[id], f"pool {intent.pool} says that its runner is gone")
        runner.connected = False
        retire_idle(world, runner)
        world.use(Pools).remove(turn, intent)


def withdraw(turn: Turn, intent: Intent) -> None:
    """Void the ticket of a runner; the engine is told after the commit."""
    intent.withdrawn = True
    store(turn, intent)
    ids = [intent.engine_id] if intent.engine_id else []
    turn.effects.append(WithdrawRunners(intent.pool, ids, [intent.name]))


def _note_strays(turn: Turn, name: str, pool: PoolState, strays: dict[str, Seen]) -> None:
    new = sorted(strays.keys() - pool.strays.keys())
    if new:
        turn.note(NO_JOB_ID, 0, "pool", f"{name}: withdrawing what was not asked for: {_few(new)}")


def _few(names: Iterable[str], most: int = 10) -> str:
    names = list(names)
    return ", ".join(names[:most]) + (f" and {len(names) - most} more" if len(names) > most else "")
