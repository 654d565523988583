"""Groups of a request, made ready for one site: do they fit a set of free resources, and which to take?

Blocks of resources that lie side by side are looked at all at once: adding one to every block at its
lowest bit carries out of exactly those that are wholly free, and taking one away clears the lowest bit
of each. So a question about a thousand hosts costs a few operations on integers, not a thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations, pairwise

from rota.errors import BadInput
from rota.plan.bits import lowest, positions
from rota.plan.request import ALL, BEST, HALF_BEST, Alternative, Group
from rota.plan.resources import Site

#: How many choices are tried for groups that compete for the same resources.
TRIES = 10_000

#: Which resources may not be taken, because their host lacks something else the job needs: of these, those.
Short = Callable[[int], int]


class Blocks:
    """Disjoint sets of resources, each known by one bit that no other has: its mark."""

    def __init__(self, masks: list[int]) -> None:
        masks = sorted(masks, key=lambda mask: mask & -mask)
        self.union = 0
        for mask in masks:
            self.union |= mask
        self.single = all(mask & (mask - 1) == 0 for mask in masks)
        spans = [((mask & -mask).bit_length() - 1, mask.bit_length()) for mask in masks]
        self.aligned = all(a[1] <= b[0] for a, b in pairwise(spans))
        if self.single or not self.aligned:
            self.of = {mask & -mask: mask for mask in masks}
        else:
            self.of = {1 << end: mask for mask, (_low, end) in zip(masks, spans, strict=True)}
        self.smallest = min((mask.bit_count() for mask in masks), default=0)
        #: even and odd blocks apart, so that a carry out of one falls into a gap: lowest bits, marks, insides
        self._halves: list[tuple[int, int, int]] = []
        self._fill = 0  #: bits inside a block's span that are not of it
        self._widths: dict[int, int] = {}  #: width → marks of the blocks so wide
        if self.aligned and not self.single:
            for half in (0, 1):
                lows = tops = insides = 0
                for low, end in spans[half::2]:
                    lows |= 1 << low
                    tops |= 1 << end
                    insides |= (1 << end) - (1 << low)
                self._halves.append((lows, tops, insides))
                self._fill |= insides & ~self.union
            for low, end in spans:
                self._widths[end - low] = self._widths.get(end - low, 0) | 1 << end

    def whole(self, free: int) -> int:
        """Marks of the blocks that are wholly free."""
        if self.single:
            return free & self.union
        if not self._halves:
            found = 0
            for mark, mask in self.of.items():
                if free & mask == mask:
                    found |= mark
            return found
        full = (free & self.union) | self._fill
        found = 0
        for lows, tops, insides in self._halves:
            found |= ((full & insides) + lows) & tops
        return found

    def with_at_least(self, bits: int, number: int) -> int:
        """Marks of the blocks in which so many of these bits are set."""
        if self.single:
            return bits & self.union if number <= 1 else 0
        if not self._halves or number > 2 * len(self.of):
            found = 0
            for mark, mask in self.of.items():
                if (bits & mask).bit_count() >= number:
                    found |= mark
            return found
        found = 0
        for lows, tops, insides in self._halves:
            rest = bits & insides
            for _ in range(number - 1):
                rest &= (rest | tops) - lows
            found |= ((rest | tops) - lows) & tops
        return found

    def expand(self, marks: int) -> int:
        """All resources of the blocks with these marks."""
        if self.single:
            return marks
        if not self._halves:
            found = 0
            for position in positions(marks):
                found |= self.of[1 << position]
            return found
        found = 0
        for width, of_width in self._widths.items():
            some = marks & of_width
            found += some - (some >> width)
        return found & self.union


class Tree:
    """The blocks of nested levels over some resources: each level's blocks lie in one block of the level above."""

    def __init__(self, site: Site, levels: tuple[str, ...], eligible: int) -> None:
        columns = [site.column(level) for level in levels]
        found: list[dict[tuple[object, ...], int]] = [{} for _ in levels]
        for position in positions(eligible):
            key: tuple[object, ...] = ()
            keys = []
            for column in columns:
                value = column[position]
                if value is None:
                    break
                key = (*key, value)
                keys.append(key)
            if len(keys) == len(levels):
                bit = 1 << position
                for masks, each in zip(found, keys, strict=True):
                    masks[each] = masks.get(each, 0) | bit
        self.levels = [Blocks(list(masks.values())) for masks in found]
        #: for each level but the last, its blocks as sets of the marks of the level below
        self.over = [Over(upper, lower) for upper, lower in zip(self.levels, self.levels[1:], strict=False)]


class Over:
    """Blocks of one level, seen as sets of the marks of the level below."""

    def __init__(self, upper: Blocks, lower: Blocks) -> None:
        owner: dict[int, int] = {}
        for mark, mask in upper.of.items():
            for position in positions(mask):
                owner[position] = mark
        self.below = dict.fromkeys(upper.of, 0)  #: mark → marks of the level below
        for mark, mask in lower.of.items():
            self.below[owner[(mask & -mask).bit_length() - 1]] |= mark
        self._blocks = Blocks(list(self.below.values()))
        #: blocks whose marks lie one place further than the upper level's, as they do over wider blocks
        self._shift = next((n for n in (0, 1) if {mark << n for mark in upper.of} == self._blocks.of.keys()), None)

    def with_at_least(self, bits: int, number: int) -> int:
        """Marks of the upper blocks that have so many of these marks below."""
        if self._shift is not None:
            return self._blocks.with_at_least(bits, number) >> self._shift
        found = 0
        for mark, below in self.below.items():
            if (bits & below).bit_count() >= number:
                found |= mark
        return found


def tree_of(site: Site, levels: tuple[str, ...], eligible: int) -> Tree:
    """The tree of these levels, made once for each site."""
    key = (levels, eligible)
    found = site.made.get(key)
    if not isinstance(found, Tree):
        found = site.made[key] = Tree(site, levels, eligible)
    return found


class Fit:
    """One group on one site: nested blocks, and how many of each."""

    def __init__(self, group: Group, site: Site, *, within: int) -> None:
        levels = tuple(site.level(level.name) for level in group.levels)
        tree = tree_of(site, levels, site.matching(group.where) & within)
        self.tree = tree
        self._tree, self._over = tree.levels, tree.over
        self.number = group.levels[0].number
        self.numbers = [level.number for level in group.levels]
        self.last = levels[-1]
        self.eligible = self._tree[-1].union
        self.least = self._least()

    def _least(self) -> int:
        """No set of fewer resources can do."""
        if isinstance(self.number, str):
            return self.eligible.bit_count() if self.number == ALL else 1
        smallest = self._tree[-1].smallest
        for number in self.numbers:
            assert isinstance(number, int)
            smallest *= number
        return max(1, smallest)

    def candidates(self, free: int) -> tuple[list[int], int]:
        """Marks of what could be taken at each level, and how many are wanted at the first."""
        found = [self._tree[-1].whole(free)]
        for over, number in zip(reversed(self._over), reversed(self.numbers[1:]), strict=True):
            assert isinstance(number, int)
            found.append(over.with_at_least(found[-1], number))
        found.reverse()
        wanted = self.number
        if isinstance(wanted, str):
            there = found[0].bit_count()
            if wanted == ALL:
                wanted = len(self._tree[0].of)
            elif wanted == BEST:
                wanted = max(1, there)
            else:
                assert wanted == HALF_BEST
                wanted = there // 2
        return found, wanted

    def fits(self, free: int) -> bool:
        found, wanted = self.candidates(free)
        return found[0].bit_count() >= wanted

    def choose(self, free: int, short: Short | None = None) -> int:
        """The resources to take of those that are free, the preferred first; 0 if it does not fit."""
        while True:
            found, wanted = self.candidates(free)
            if wanted < 1 or found[0].bit_count() < wanted:
                return 0
            taken = self._take(found, wanted)
            lacking = short(taken) if short is not None else 0
            if not lacking:
                return taken
            free &= ~lacking

    def _take(self, found: list[int], wanted: int) -> int:
        marks = lowest(found[0], wanted)
        for over, number, candidates in zip(self._over, self.numbers[1:], found[1:], strict=True):
            assert isinstance(number, int)
            chosen = 0
            for position in positions(marks):
                chosen |= lowest(candidates & over.below[1 << position], number)
            marks = chosen
        return self._tree[-1].expand(marks)

    def choices(self, free: int) -> Iterator[int]:
        """Every way to take it, the preferred first."""
        found, wanted = self.candidates(free)
        yield from self._choices(0, found[0], wanted, found)

    def _choices(self, depth: int, marks: int, number: int, found: list[int]) -> Iterator[int]:
        for some in combinations([1 << position for position in positions(marks)], number):
            if depth == len(self.numbers) - 1:
                yield self._tree[-1].expand(sum(some))
            else:
                yield from self._products(depth, some, found)

    def _products(self, depth: int, blocks: tuple[int, ...], found: list[int]) -> Iterator[int]:
        if not blocks:
            yield 0
            return
        below = self._over[depth].below
        number = self.numbers[depth + 1]
        assert isinstance(number, int)
        for taken in self._choices(depth + 1, found[depth + 1] & below[blocks[0]], number, found):
            for rest in self._products(depth, blocks[1:], found):
                yield taken | rest


class Shape:
    """One alternative of a request on one site: groups that take different resources."""

    def __init__(self, alternative: Alternative, site: Site, *, within: int) -> None:
        for group in alternative.groups:
            for level in group.levels:
                if not site.is_level(level.name):
                    raise BadInput(
                        f"there is no level '{level.name}'", hint=f"levels are {', '.join(site.levels)}"
                    )
        self.fits = [Fit(group, site, within=within) for group in alternative.groups]
        self.eligible = 0
        self.least = 0
        apart = True
        for fit in self.fits:
            apart = apart and not self.eligible & fit.eligible
            self.eligible |= fit.eligible
            self.least += fit.least
        self._apart = apart  #: no two groups compete
        self.bounded = False  #: at some time not every choice could be tried
        self.plain = len(self.fits) == 1
        #: shapes of one family differ only in `number`: what needs more of it cannot begin earlier
        self.family: object = self
        self.number = 1
        numbers = self.fits[0].numbers
        if self.plain and isinstance(numbers[-1], int):
            self.family, self.number = (self.fits[0].tree, *numbers[:-1]), numbers[-1]
        #: takes whole hosts, so all of what a host has besides resources
        self.whole_hosts = any(fit.last in _whole(site) for fit in self.fits)

    def may_fit(self, free: int) -> bool:
        """Could each group, taken alone, be had of what is free?"""
        return all(fit.fits(free) for fit in self.fits)

    def choose(self, free: int, short: Short | None = None) -> int:
        """The resources to take of those that are free; 0 if they do not suffice."""
        if self.plain:
            return self.fits[0].choose(free, short)
        taken = self._in_turn(self.fits, free, short)
        if taken or self._apart:
            return taken
        narrow_first = sorted(self.fits, key=lambda fit: fit.eligible.bit_count())
        return self._in_turn(narrow_first, free, short) or self._search(free, short)

    def _in_turn(self, fits: list[Fit], free: int, short: Short | None) -> int:
        taken = 0
        for fit in fits:
            some = fit.choose(free & ~taken, short)
            if not some:
                return 0
            taken |= some
        return taken

    def _search(self, free: int, short: Short | None) -> int:
        """Try every way to take the first groups, up to a bound."""
        if short is not None:
            free &= ~short(free & self.eligible)
        left = [TRIES]

        def rest(index: int, free: int) -> int:
            fit = self.fits[index]
            if index == len(self.fits) - 1:
                return fit.choose(free)
            for taken in fit.choices(free):
                if left[0] <= 0:
                    return 0
                left[0] -= 1
                more = rest(index + 1, free & ~taken)
                if more:
                    return taken | more
            return 0

        found = rest(0, free)
        if not found and left[0] <= 0:
            self.bounded = True
        return found


def _whole(site: Site) -> tuple[str, ...]:
    """Levels whose blocks are one host or more."""
    return site.levels[: site.levels.index("host") + 1] if "host" in site.levels else ("host",)
