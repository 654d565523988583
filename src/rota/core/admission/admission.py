"""Admission of jobs by a manager: the rulebook of its site, and what only its world knows.

That is the newest version of the site, the user's waiting reservations, and containers that jobs name.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Final, Protocol

from rota.core.admission.rule_facts import ADMINISTRATOR, ANY_USER, SubmissionContext
from rota.core.admission.rulebook import Admitted, Rulebook
from rota.core.jobs.job import Job, Spec
from rota.core.machines.hosts import site_now
from rota.core.pools.registry import names as pool_names
from rota.core.states import WAITING
from rota.core.world import World
from rota.errors import BadInput
from rota.plan.planner.endangered import unanswered
from rota.plan.policy.quota_rules import NO_QUOTAS

#: Size of the cache of verdicts.
_MOST_KNOWN: Final = 10_000
_LONGEST_ID: Final = 17


class UserGroups(Protocol):
    """The Unix groups of users, as the machine of the manager knows them."""

    def is_fresh(self, user: str) -> bool:
        """Was this user looked up lately?"""

    def look_up(self, user: str) -> object:
        """Ask the machine now; this may take long."""

    def of(self, user: str) -> tuple[str, ...]:
        """The names of the groups that this user is in."""


class Admission:
    """The rulebook of the newest version of the site, with a cache of its verdicts."""

    def __init__(self, world: World, groups: UserGroups, *, system: bool = False) -> None:
        self._world = world
        self._groups = groups
        self._system = system
        self._version = -1
        self._book: Rulebook | None = None
        self._known: dict[tuple[Spec, SubmissionContext], Admitted] = {}

    def admit(self, spec: Spec, *, admin: bool = False, before: Spec | None = None) -> Admitted:
        """See `Rulebook.admit`. `before`: the former specification of a job that is modified."""
        book = self.rulebook()
        if spec.force_host and not admin:
            self._refuse_forced(spec)
        by = self._by(book, spec, admin=admin, before=before)
        found = self._known.get((spec, by))
        if found is None:
            if len(self._known) >= _MOST_KNOWN:
                self._known.clear()
            found = self._known[spec, by] = book.admit(spec, by)
        return found

    def _refuse_forced(self, spec: Spec) -> None:
        """Raise `BadInput` unless the host that is forced belongs to this user or a group of the user."""
        record = self._world.site["host"].get(spec.force_host) or {}
        groups = (self._world.site["machine_group"].get(name) or {} for name in record.get("groups") or ())
        users = {record.get("owner"), *(user for group in groups for user in group.get("users") or ())}
        if spec.user not in users:
            raise BadInput(
                f"only its owner, its groups and administrators may force jobs onto host '{spec.force_host}'",
                field="force_host",
                hint="leave it out, or ask an administrator",
                code="denied",
            )

    def _by(self, book: Rulebook, spec: Spec, *, admin: bool, before: Spec | None = None) -> SubmissionContext:
        groups = self._groups.of(spec.user) if book.asks_for_unix_groups else ()
        exempt = before is not None and NO_QUOTAS in before.types
        queue = before.queue if before is not None else ""
        if not (groups or exempt or queue):
            return ADMINISTRATOR if admin else ANY_USER
        return SubmissionContext(admin, groups, exempt, queue)

    def to_look_up(self, *users: str) -> list[Callable[[], object]]:
        """Lookups to make, off the loop, before jobs of these users are judged; they may take long."""
        if not self.rulebook().asks_for_unix_groups:
            return []
        return [partial(self._groups.look_up, user) for user in users if not self._groups.is_fresh(user)]

    def rulebook(self) -> Rulebook:
        if self._book is None or self._version != self._world.site_version:
            self._version = self._world.site_version
            self._book = Rulebook(self._world.site, system=self._system, pools=pool_names(self._world))
            self._known.clear()
        return self._book

    def refuse_reservation(self, wished: Spec, count: int, *, admin: bool = False) -> None:
        """Raise `BadInput` if a rule forbids that the user has so many reservations waiting, this one included.

        `wished`: as the user asked for it. The rules might refuse what they made of it.
        """
        book = self.rulebook()
        if not book.counts_reservations:
            return
        by = self._by(book, wished, admin=admin)
        if (error := book.judge(wished, reservations=count, by=by).error) is not None:
            raise error

    def is_known(self, key: str) -> bool:
        """Is it the key of a job in memory?"""
        return key in self._world.keys

    def unanswered(self, spec: Spec) -> str:
        """Why a reservation cannot be confirmed or refused now; empty if it can."""
        waits = unanswered(site_now(self._world)) if spec.at is not None else None
        return "" if waits is None else waits.message

    def missing_container(self, spec: Spec, others: Iterable[Spec] = ()) -> str:
        """A notice for a job whose container does not exist, nor is among `others`; empty if it does.

        Raises `BadInput` if the named job is not a container.
        """
        home = next((word.removeprefix("inner=") for word in spec.types if word.startswith("inner=")), "")
        if not home or any(_is_home(other, home) for other in others):
            return ""
        named = self._world.jobs.get(int(home)) if home.isdecimal() and len(home) < _LONGEST_ID else None
        if named is not None and "container" in named.spec.types and _has_yet_to_end(named):
            return ""
        if any(_is_home(job.spec, home) and _has_yet_to_end(job) for job in self._world.jobs.values()):
            return ""
        if named is not None and "container" not in named.spec.types:
            raise BadInput(f"job {home} is not a container", field="type", hint="give one with type 'container'")
        return f"there is no container '{home}' that waits or runs; the job waits for one of this name"

    def waiting_reservations(self, user: str) -> int:
        """The number of reservations of this user that have not started."""
        return sum(
            job.spec.at is not None and job.spec.user == user and job.state in WAITING
            for job in self._world.jobs.values()
        )


def _is_home(spec: Spec, name: str) -> bool:
    return spec.name == name and "container" in spec.types


def _has_yet_to_end(job: Job) -> bool:
    return job.lease is not None or job.state in WAITING
