"""Which runners to ask for and which to withdraw: functions of the demand and of what may exist.

Everything that may exist counts against the bound, including intents with an unknown fate, and strays.
"""

from __future__ import annotations

from rota.core.pools.records import NOT_STARTED, Intent
from rota.core.pools.state import BackOff, PoolRules, PoolState
from rota.plan.need import Need

#: The longest wait after errors.
MOST_RETRY_S = 300.0


def existing(pool: PoolState) -> int:
    """How many runners there may be."""
    return len(pool.intents) + len(pool.strays)


def serving(pool: PoolState) -> dict[Need, list[Intent]]:
    """The runners that work for each need, or will. A runner that has left, or must leave, does not count."""
    found: dict[Need, list[Intent]] = {}
    for intent in pool.intents.values():
        if not intent.withdrawn and not intent.parted_at:
            found.setdefault(intent.need, []).append(intent)
    return found


def targets(pool: PoolState) -> dict[Need, int]:
    """How many runners each need should have within `max_runners`, by rank."""
    left, found = pool.rules.max_runners, {}
    for need, wanted in pool.wanted.items():
        found[need] = min(wanted.number, left)
        left -= found[need]
    return found


def missing(pool: PoolState, *, mono: float) -> dict[Need, int]:
    """How many runners to ask for now.

    None before the first survey: what an earlier manager left must be counted first.
    """
    if not pool.surveyed:
        return {}
    there = serving(pool)
    room = pool.rules.max_runners - existing(pool) - sum(pool.making.values())
    found: dict[Need, int] = {}
    for need, number in targets(pool).items():
        errors = (pool.errors.get(need), pool.fruitless.get(need))
        if any(error is not None and mono < error.retry_at for error in errors):
            continue
        lack = number - len(there.get(need, ())) - pool.making.get(need, 0)
        more = min(lack, room)
        if more > 0:
            found[need] = more
            room -= more
    return found


def surplus(pool: PoolState) -> list[Intent]:
    """Runners to withdraw: too many for their need, and not started. The newest go first."""
    found: list[Intent] = []
    target = targets(pool)
    for need, intents in serving(pool).items():
        excess = len(intents) - target.get(need, 0)
        if excess <= 0:
            continue
        waiting = [each for each in intents if each.state in NOT_STARTED and not each.key]
        waiting.sort(key=lambda each: (each.asked_at, each.name), reverse=True)
        found += waiting[:excess]
    return found


def excess(pool: PoolState) -> list[Intent]:
    """Started runners above `max_runners`, which was lowered: they get no more jobs. The newest go first."""
    started = [each for each in pool.intents.values() if each.key and not each.parted_at]
    started.sort(key=lambda each: (not each.withdrawn, each.asked_at, each.name), reverse=True)
    number = max(0, len(started) - pool.rules.max_runners)
    number -= sum(each.withdrawn for each in started)
    return [each for each in started if not each.withdrawn][: max(0, number)]


def is_missed(pool: PoolState, need: Need) -> bool:
    """Has this need fewer runners than it should have?"""
    return len(serving(pool).get(need, ())) < targets(pool).get(need, 0)


def backed_off(before: BackOff | None, error: str, *, rules: PoolRules, mono: float, wall: float) -> BackOff:
    """How long to wait after this error."""
    failures = before.failures + 1 if before is not None else 1
    wait_s = min(MOST_RETRY_S, rules.retry_s * 2.0 ** min(failures - 1, 16))
    return BackOff(error, failures, mono + wait_s, wall + wait_s)
