"""Which owner (a seat or a lease) has which cores of this host. Pure: nothing is bound here.

Cores that the planner gives are exclusive. For jobs without such an allocation the lowest free cores are picked
here, and they move when the planner gives their cores to another job. Fractions of a core share one core until it
is full. An owner that finds no free cores, or asks for none, runs anywhere.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable
from typing import NamedTuple

from rota.errors import BadInput
from rota.plan.site.bitset import parse_spans, spans_of
from rota.plan.size import CORE

_MOST_CORES = 1 << 16
Owner = Hashable


class Share:
    """The cores of one owner. Another one is made when it moves."""

    __slots__ = ("binds", "bound", "cores", "entry", "fences")

    def __init__(self, cores: frozenset[int], *, binds: bool, fences: bool) -> None:
        self.cores = cores  #: empty: none of its own
        self.binds = binds  #: do they differ from the cores that the runner itself may use?
        self.bound = cores if binds else frozenset()  #: to which its processes are bound; empty: to none
        self.fences = fences  #: are these fewer than the host has?
        #: What its processes find in their environment.
        self.entry = b"ROTA_CPU_LIST=" + spans_of(sorted(cores)).encode() if cores else None


#: For owners without cores of their own.
ANY = Share(frozenset(), binds=False, fences=False)


class _Pick(NamedTuple):
    cpus: int  #: what was asked for
    parts: dict[int, int]  #: hundredths of each core; empty: it only shares
    share: Share


class Cores:
    """Cores by the kernel's numbers, and their owners."""

    def __init__(self, usable: Iterable[int], *, of_host: int, first: int = 0) -> None:
        """`usable`: the cores of this runner. `of_host`: how many the host has. `first`: where picking starts."""
        self._usable = sorted(usable)
        first %= len(self._usable)
        self._order = self._usable[first:] + self._usable[:first]
        self._all = frozenset(self._usable)
        self._of_host = of_host
        self._given: dict[Owner, Share] = {}
        self._picked: dict[Owner, _Pick] = {}
        self._taken = dict.fromkeys(self._usable, 0)  #: hundredths that were picked
        self._exact = dict.fromkeys(self._usable, 0)  #: to how many it was given

    def named(self, cpu_list: str) -> frozenset[int]:
        """The kernel's numbers of these cores. The planner counts the usable cores of this host from 0.

        Raises `BadInput` if there are no such cores.
        """
        places = parse_spans(cpu_list, most=_MOST_CORES)
        if max(places) >= len(self._usable):
            raise BadInput(f"there are {len(self._usable)} here", hint="see 'rota resource list'")
        return frozenset(self._usable[place] for place in places)

    @property
    def all(self) -> frozenset[int]:
        return self._all

    def of(self, owner: Owner) -> Share:
        if owner in self._given:
            return self._given[owner]
        return self._picked[owner].share if owner in self._picked else ANY

    def pick(self, owner: Owner, cpus: int) -> Share:
        """Choose cores for this many hundredths; an owner that has some keeps them."""
        if owner not in self._given and owner not in self._picked:
            parts = self._find(cpus)
            if parts is None:
                return ANY
            self._take(owner, _Pick(cpus, parts, self._share(parts)))
        return self.of(owner)

    def keep(self, owner: Owner, cpus: int, cores: Collection[int]) -> Share:
        """Let an owner go on with cores that an earlier runner has picked for it, as far as they are there."""
        own = [core for core in cores if core in self._all]
        whole, part = divmod(cpus, CORE)
        parts = dict.fromkeys(own[:whole], CORE)
        if part:
            parts |= dict.fromkeys(own[whole : whole + 1], part)
        if not own or len(parts) != len(own):
            parts = {}
        if own:
            self._take(owner, _Pick(cpus, parts, self._share(own)))
        return self.of(owner)

    def _find(self, cpus: int) -> dict[int, int] | None:
        """Hundredths of each core to take, or None: there is no room."""
        whole, part = divmod(cpus, CORE)
        free = [core for core in self._order if not self._exact[core] and not self._taken[core]]
        parts = dict.fromkeys(free[:whole], CORE)
        if len(parts) < whole:
            return None
        if part:
            room = [core for core in self._order if core not in parts and not self._exact[core]]
            room = [core for core in room if self._taken[core] + part <= CORE]
            if not room:
                return None
            parts[max(room, key=lambda core: self._taken[core])] = part  # the fullest: others stay whole
        return parts or None

    def give(self, owner: Owner, cores: Collection[int]) -> list[Owner]:
        """The planner gave these. Returns the owners that had picked any of them and were moved: see `of`."""
        self._drop(owner)
        self._given[owner] = self._share(cores)
        for core in cores:
            self._exact[core] += 1
        driven = [other for other, pick in self._picked.items() if not pick.share.cores.isdisjoint(cores)]
        return self._place_again(driven)

    def release(self, owner: Owner) -> list[Owner]:
        """It needs none any more. Returns the owners that only shared and were moved to free cores."""
        self._drop(owner)
        sharers = [other for other, pick in self._picked.items() if not pick.parts]
        return self._place_again(sharers) if sharers else []

    def _place_again(self, owners: list[Owner]) -> list[Owner]:
        """Find other cores for these owners. Returns the ones whose cores changed."""
        before = {owner: self._picked[owner] for owner in owners}
        for owner in owners:
            self._drop(owner)
        rest = [core for core in self._usable if not self._exact[core]] or self._usable
        for owner, pick in before.items():
            parts = self._find(pick.cpus)
            # If nothing is free for it, it shares what the planner has not given to others.
            share = self._share(rest if parts is None else parts)
            if share.cores == pick.share.cores:
                share = pick.share
            self._take(owner, _Pick(pick.cpus, parts or {}, share))
        return [owner for owner, pick in before.items() if self._picked[owner].share is not pick.share]

    def _take(self, owner: Owner, pick: _Pick) -> None:
        self._picked[owner] = pick
        for core, hundredths in pick.parts.items():
            self._taken[core] += hundredths

    def _drop(self, owner: Owner) -> None:
        share = self._given.pop(owner, None)
        if share is not None:
            for core in share.cores:
                self._exact[core] -= 1
        pick = self._picked.pop(owner, None)
        if pick is not None:
            for core, hundredths in pick.parts.items():
                self._taken[core] -= hundredths

    def _share(self, cores: Iterable[int]) -> Share:
        own = frozenset(cores)
        return Share(own, binds=own != self._all, fences=len(own) < self._of_host)
