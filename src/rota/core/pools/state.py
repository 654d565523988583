"""The state of the feature `pools`: rules and demand of each delegated pool, and its intents."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
from msgspec import Struct

from rota.core.machines.ticket_grants import TicketGrant
from rota.core.pools.effects import SurveyPool
from rota.core.pools.records import Intent, RunnerState, Seen, Wanted
from rota.core.rows import IntentRow
from rota.core.turn import Turn
from rota.core.world import World
from rota.plan.need import Need
from rota.plan.size import Size


class PoolRules(Struct, frozen=True, kw_only=True):
    """What the settings say about a pool, as far as decisions depend on it."""

    max_runners: int
    settle_s: float = 30.0  #: a runner that surveys leave out for this long, twice in a row, does not exist
    join_s: float = 600.0  #: a runner that has started and not joined by then is replaced
    retry_s: float = 5.0  #: wait after the first error of a group; doubled with each further one


class BackOff(Struct, gc=False):
    """After an error nothing is asked for until `retry_at`."""

    error: str
    failures: int
    retry_at: float  #: monotonic time
    retry_wall: float  #: the same as wall time, for people


def _fits(_size: Size, _seconds: float) -> bool:
    return True


class PoolState:
    """One delegated pool."""

    def __init__(self, rules: PoolRules) -> None:
        self.rules = rules
        self.configured = True  #: False: its engine is not known, so it is never surveyed
        #: Could the engine ever start such a runner? Set by `manager.pools`.
        self.can_fit: Callable[[Size, float], bool] = _fits
        self.wanted: dict[Need, Wanted] = {}  #: in order of rank
        self.making: dict[Need, int] = {}  #: names and tickets that are being made
        self.intents: dict[str, Intent] = {}  #: by name
        #: Strays: shown by the newest survey under our names without an intent, or as a double.
        self.strays: dict[str, Seen] = {}  #: by engine id
        self.surveyed = False  #: a survey has succeeded since the manager started
        self.survey_error: BackOff | None = None
        self.errors: dict[Need, BackOff] = {}  #: per group: the engine failed
        self.fruitless: dict[Need, BackOff] = {}  #: per group: its runners leave without a job
        self.withdrawal_error = ""  #: of the last withdrawal
        self.allowed = rules.max_runners  #: more than `max_runners` if that was lowered while they existed


class Pools:
    """State of the feature `pools`, in use as soon as a delegated pool is configured or an intent stored."""

    def __init__(self) -> None:
        self.pools: dict[str, PoolState] = {}
        self.intents: dict[str, Intent] = {}  #: of all pools, by name
        self.tickets: dict[str, Intent] = {}  #: by the ticket's hash
        #: Is the demand complete? False: jobs may be missing in it, so no runner is withdrawn as surplus.
        self.counted = True
        self.due: set[str] = set()  #: pools to decide about at the end of this step
        self.foreign: list[str] = []  #: intents of another deployment, whose rows are removed in the next step
        self.restated_at = 0.0  #: monotonic time at which everything was last decided anew
        self.began = 0.0  #: monotonic time at which the manager started

    # ------------------------------------------------------------------ tickets

    def by_ticket(self, sha256: str) -> TicketGrant | None:
        """The grant of the ticket with this hash; None: there is none, or it is used up."""
        found = self.tickets.get(sha256)
        return _grant(found) if found is not None and not found.left else None

    def by_name(self, name: str) -> TicketGrant | None:
        """The grant with this name. It is there as long as its runner holds a lease."""
        found = self.intents.get(name)
        return _grant(found) if found is not None else None

    def bound(self, turn: Turn, name: str, key: str) -> None:
        """The ticket belongs to the runner with this key from now on."""
        intent = self.intents[name]
        intent.key, intent.state = key, RunnerState.RUNNING
        store(turn, intent)

    def left(self, turn: Turn, name: str) -> None:
        """The runner has reported everything and left: the ticket is used up."""
        intent = self.intents.get(name)
        if intent is not None:
            intent.left, intent.parted_at = True, turn.mono
            turn.effects.append(SurveyPool(intent.pool))
            self.due.add(intent.pool)

    def has_worked(self, host: str) -> None:
        """The runner with this name had a job: asking for more of them makes sense."""
        intent = self.intents.get(host)
        if intent is not None and not intent.worked:
            intent.worked = True
            self.pools[intent.pool].fruitless.pop(intent.need, None)

    # ------------------------------------------------------------------ demand

    def want(self, wanted: dict[str, dict[Need, Wanted]], *, whole: bool = True) -> None:
        """Set how many runners each pool should have, needs in order of rank; a need that is left out should have
        none. Decisions follow at the end of the step. Not `whole`: jobs may be missing in it.
        """
        if whole != self.counted:
            self.counted = whole
            self.due |= self.pools.keys()
        for name, pool in self.pools.items():
            its = wanted.get(name, {})
            if its != pool.wanted:
                pool.wanted = its
                pool.errors = {need: error for need, error in pool.errors.items() if need in its}
                pool.fruitless = {need: error for need, error in pool.fruitless.items() if need in its}
                self.due.add(name)

    def can_fit(self, pool: str, size: Size, seconds: float) -> bool:
        """Could the engine of this pool ever start such a runner? Cheap; unknown means yes."""
        found = self.pools.get(pool)
        return found is None or found.can_fit(size, seconds)

    # ------------------------------------------------------------------ pools and intents

    def configure(self, rules: dict[str, PoolRules], *, prefix: str = "") -> None:
        """Take over the settings. A pool that is no longer configured gets no more runners.

        Names of this deployment's runners begin with `prefix`. In a copy of a home, or a restored backup, others
        belong to the original: they are forgotten here, and never withdrawn.
        """
        for intent in [each for each in self.intents.values() if not each.name.startswith(prefix)]:
            self._drop(intent)
            self.foreign.append(intent.name)
        for name, pool in self.pools.items():
            if name not in rules:
                pool.rules, pool.configured = PoolRules(max_runners=0), False
        for name, its in rules.items():
            pool = self.pools.setdefault(name, PoolState(its))
            pool.rules, pool.configured = its, True
        for pool in self.pools.values():
            pool.allowed = max(pool.rules.max_runners, len(pool.intents))
        self.due |= self.pools.keys()

    def add(self, intent: Intent) -> None:
        pool = self.pools.setdefault(intent.pool, PoolState(PoolRules(max_runners=0)))
        pool.intents[intent.name] = intent
        self.intents[intent.name] = self.tickets[intent.ticket] = intent

    def remove(self, turn: Turn, intent: Intent) -> None:
        """Remove the intent of a runner that no longer exists."""
        intent.state = RunnerState.GONE
        self._drop(intent)
        turn.changes.intents[intent.name] = None
        self.due.add(intent.pool)

    def _drop(self, intent: Intent) -> None:
        del self.pools[intent.pool].intents[intent.name]
        del self.tickets[intent.ticket], self.intents[intent.name]


def _grant(intent: Intent) -> TicketGrant:
    return TicketGrant(
        name=intent.name, pool=intent.pool, need=intent.need, key=intent.key, valid=not intent.withdrawn
    )


def store(turn: Turn, intent: Intent) -> None:
    """Write an intent with this batch."""
    turn.changes.intents[intent.name] = IntentRow(
        intent.name,
        intent.pool,
        msgspec.json.encode(intent.need).decode(),
        intent.seconds,
        intent.ticket,
        intent.key,
        intent.engine_id,
        int(intent.state),
        intent.withdrawn,
        intent.runner,
        intent.asked_at,
    )


def from_row(row: IntentRow) -> Intent:
    """The intent as it was last written."""
    need: Any = msgspec.json.decode(row.need, type=Need)
    made = Intent(
        row.name, pool=row.pool, need=need, seconds=row.seconds, ticket=row.ticket, asked_at=row.asked_at
    )
    made.key, made.engine_id, made.runner = row.key, row.engine_id, row.runner
    made.state, made.withdrawn = RunnerState(row.state), bool(row.withdrawn)
    made.seen = made.state in (RunnerState.PENDING, RunnerState.RUNNING)
    made.worked = bool(made.key)  # whether it did is not known
    return made


def has_runner(world: World, intent: Intent) -> bool:
    """Has its runner a connection, or leases? Then it exists, whatever the engine says."""
    runner = world.runners.get(intent.runner) if intent.runner else None
    return runner is not None and (runner.connected or bool(runner.leases))
