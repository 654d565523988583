"""Long lists of jobs in any order: the ids are found once, pages are cut from them.

Scrolling through a million jobs takes many pages of one list. The list is kept for a while, so that the pages fit
together although jobs change. Each job is shown in its present state.
"""

from __future__ import annotations

import re
import threading
import time
from array import array
from collections.abc import Callable
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from rota.errors import BadInput
from rota.manager.loop import clock as wall
from rota.manager.views.queries import Queries
from rota.store.base import ORDERS, Clause, Order
from rota.wire.messages import ListPage
from rota.wire.views import JobPage

#: A slow list serves first pages for so many times as long as it took, although jobs have changed.
_WORTH: Final = 2.0
_QUICK_S: Final = 0.1
#: Later pages are of the same list for so long.
_KEPT_S: Final = 300.0
_LISTS: Final = 16
#: Ids in all lists together, 8 bytes each. The newest list is kept in any case.
_IDS: Final = 4_000_000
#: Length of lists that are not ordered by id.
SORTED: Final = 10_000

_CURSOR: Final = re.compile(r"([0-9]{1,18})-([0-9]{1,18})")
#: Characters of a text that is searched for.
_SEARCH: Final = 1000

_Key = tuple[tuple[Clause, ...], str, Order]


def order_of(sort: str) -> Order:
    """The order that is asked for like `-ended`. Raises `BadInput`."""
    by = sort.removeprefix("-")
    if by not in ORDERS:
        known = ", ".join(ORDERS)
        raise BadInput(f"jobs cannot be sorted by '{sort[:40]}'", hint=f"use one of {known}, or - before it")
    return Order(by, descending=sort.startswith("-"))


def _keyed(clause: Clause) -> Clause:
    """The clause by which a list is found again: with an age instead of a moment, which differs each time."""
    return replace(clause, before=float(round(wall.now() - clause.before))) if clause.before else clause


class PagePosition(Struct, frozen=True):
    """Where a page begins: how far down, and in which list if an earlier page has named it."""

    offset: int
    list: int | None = None


def place_of(ask: ListPage) -> PagePosition:
    """Where the page begins that is asked for. Raises `BadInput`."""
    if not ask.cursor:
        return PagePosition(min(max(0, ask.offset), 1 << 62))
    named = _CURSOR.fullmatch(ask.cursor)
    if named is None:
        raise BadInput("this cursor was not given by an earlier page", hint="begin again without one")
    return PagePosition(int(named[2]), int(named[1]))


class Listed(Struct, frozen=True):
    """Ids in order, how many match (there may be more than are listed), and when they were found."""

    number: int
    key: _Key
    ids: array[int]
    total: int
    at: float
    took_s: float
    version: int  #: of everything, when it was found

    def cursor(self, offset: int) -> str | None:
        """What leads to the page that begins there; None: there is none."""
        return f"{self.number}-{offset}" if offset < len(self.ids) else None


class Listings:
    """The lists that were asked for lately. May be used from several threads."""

    def __init__(
        self, queries: Queries, *, version: Callable[[], int], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._queries = queries
        self._version = version
        self._clock = clock
        self._lists: dict[int, Listed] = {}
        self._newest: dict[_Key, int] = {}
        self._followed: set[int] = set()  #: lists of which a later page was requested
        self._made = 0
        self._lock = threading.Lock()

    def page(self, clauses: list[Clause], ask: ListPage) -> JobPage:
        """The page that is asked for, of the jobs that match any of these."""
        if len(ask.search) > _SEARCH:
            raise BadInput(f"no text longer than {_SEARCH} characters can be searched for")
        place = place_of(ask)
        found = self.find(clauses, ask.search, order_of(ask.sort), place)
        shown, taken = self._queries.listed(found.ids[place.offset : place.offset + ask.limit].tolist())
        return JobPage(shown, found.cursor(place.offset + taken), found.total)

    def find(self, clauses: list[Clause], search: str, order: Order, place: PagePosition) -> Listed:
        """The list that a page is cut from: the one it names if that is kept, or else a new one."""
        key = (tuple(map(_keyed, clauses)), search, order)
        with self._lock:
            known = self._known(key, place)
        if known is not None:
            return known
        at, version = self._clock(), self._version()
        ids, total = self._queries.ordered(clauses, search, order, limit=SORTED)
        with self._lock:
            before = self._lists.get(self._newest.get(key, 0))
            # An unchanged list keeps its number, so that open cursors stay valid.
            if before is not None and before.ids == ids:
                number = before.number
            else:
                number = self._made = self._made + 1
            listed = Listed(number, key, ids, total, at, self._clock() - at, version)
            self._lists[listed.number] = listed
            self._newest[key] = listed.number
            self._forget_old(keep=number)
        return listed

    def _known(self, key: _Key, place: PagePosition) -> Listed | None:
        now = self._clock()
        named = self._lists.get(place.list) if place.list is not None else None
        if named is not None and named.key == key and now - named.at < _KEPT_S:
            self._followed.add(named.number)
            return named
        newest = self._lists.get(self._newest.get(key, 0))
        if newest is None or now - newest.at >= _KEPT_S:
            return None
        aging = any(clause.before for clause in key[0])
        if place.offset or (newest.version == self._version() and not aging):
            return newest
        return newest if now - newest.at < max(_QUICK_S, _WORTH * newest.took_s) else None

    def _forget_old(self, *, keep: int) -> None:
        """Drops lists: first expired ones and those of which only the first page was read. With many changes
        there are many of the latter."""
        held = sum(len(each.ids) for each in self._lists.values())
        now = self._clock()

        def worth(number: int) -> tuple[bool, bool, float]:
            at = self._lists[number].at
            return number == keep, number in self._followed and now - at < _KEPT_S, at

        while len(self._lists) > 1 and (len(self._lists) > _LISTS or held > _IDS):
            oldest = self._lists.pop(min(self._lists, key=worth))
            held -= len(oldest.ids)
            self._followed.discard(oldest.number)
            if self._newest.get(oldest.key) == oldest.number:
                del self._newest[oldest.key]
