"""Resource groups of a request, compiled for one site: do they fit a set of free resources, and which to take?

Adjacent blocks are examined all at once by integer arithmetic: adding one at the lowest bit of every block carries
out of exactly the blocks that are wholly free, and subtracting one clears the lowest bit of each. So a question
about a thousand hosts costs a few operations on integers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import combinations, pairwise
from operator import itemgetter

from rota.errors import BadInput
from rota.plan.language.expression import Value
from rota.plan.language.request import ALL, BEST, HALF_BEST, Alternative, ResourceGroup
from rota.plan.site.bitset import lowest, positions
from rota.plan.site.resources import Site
from rota.plan.snapshot import Unchanging

#: How many choices are tried for groups that compete for the same resources.
TRIES = 10_000

#: Given resources: the subset whose hosts lack something else that the job needs.
Short = Callable[[int], int]


class Blocks:
    """Disjoint sets of resources. Each is identified by one bit, its mark."""

    def __init__(self, blocks: list[list[int]]) -> None:
        """Each block is a list of ascending bit positions; blocks are ordered by their lowest bit."""
        self.number = len(blocks)
        self.smallest = min(map(len, blocks), default=0)
        self.single = max(map(len, blocks), default=1) == 1
        self.aligned = all(one[-1] < other[0] for one, other in pairwise(blocks))
        self.blocks = blocks
        self._of: dict[int, int] | None = None
        #: even and odd blocks separately, so that a carry falls into a gap: lowest bits, marks, insides
        self._halves: list[tuple[int, int, int]] = []
        self._fill = 0  #: bits between those of a block that do not belong to it
        self._widths: dict[int, int] = {}  #: width → marks of the blocks so wide
        self.union = _set(position for block in blocks for position in block)
        if self.aligned and not self.single:
            for half in (blocks[0::2], blocks[1::2]):
                lows, tops = _set(block[0] for block in half), _set(block[-1] + 1 for block in half)
                insides = tops - lows
                self._halves.append((lows, tops, insides))
                self._fill |= insides & ~self.union
            widths: dict[int, list[int]] = {}
            for block in blocks:
                widths.setdefault(block[-1] + 1 - block[0], []).append(block[-1] + 1)
            self._widths = {width: _set(ends) for width, ends in widths.items()}

    @property
    def of(self) -> dict[int, int]:
        """Mark → the block."""
        if self._of is None:
            self._of = {self.mark(block): _set(block) for block in self.blocks}
        return self._of

    def mark(self, block: list[int]) -> int:
        return 1 << (block[0] if self.single or not self.aligned else block[-1] + 1)

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
        full = free & self.union
        if self._fill:
            full |= self._fill
        found = 0
        for lows, tops, insides in self._halves:
            found |= ((full & insides) + lows) & tops
        return found

    def with_at_least(self, bits: int, number: int) -> int:
        """Marks of the blocks with at least `number` of these bits."""
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

    def lowest_of_each(self, bits: int, number: int, within: int) -> int:
        """The lowest `number` of these bits in each marked block; each must have so many."""
        if self._halves and number < 2 * within.bit_count():
            bits &= self.expand(within)
            found = 0
            for lows, tops, insides in self._halves:
                rest = of_half = bits & insides
                for _ in range(number):
                    rest &= (rest | tops) - lows
                found |= of_half ^ rest
            return found
        of = self.of
        found = 0
        for position in positions(within):
            found |= lowest(bits & of[1 << position], number)
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


class BlockTree(Unchanging):
    """The blocks of nested levels over some resources: each level's blocks lie in one block of the level above."""

    def __init__(self, site: Site, levels: tuple[str, ...], eligible: int) -> None:
        columns = [site.column(level) for level in levels]
        everywhere = eligible == site.everything
        there = list(range(site.count)) if everywhere else list(positions(eligible))
        for column in columns:
            if None in column:
                there = [position for position in there if column[position] is not None]
        blocks = [there] if there else []
        self.levels: list[Blocks] = []
        #: for each level but the last, its blocks as sets of the marks of the level below
        self.over: list[NestedBlocks] = []
        for column in columns:
            inside = [_by_value(column, block) for block in blocks]
            blocks = sorted((block for some in inside for block in some), key=itemgetter(0))
            lower = Blocks(blocks)
            if self.levels:
                self.over.append(NestedBlocks(self.levels[-1], lower, inside))
            self.levels.append(lower)


def _by_value(column: list[Value | None], block: list[int]) -> list[list[int]]:
    found: dict[Value | None, list[int]] = {}
    for position in block:
        value = column[position]
        if value in found:
            found[value].append(position)
        else:
            found[value] = [position]
    return list(found.values())


def _set(positions: Iterable[int]) -> int:
    """The set of these bits."""
    found = bytearray()
    for position in positions:
        byte = position >> 3
        if byte >= len(found):
            found.extend(bytes(byte + 1 - len(found)))
        found[byte] |= 1 << (position & 7)
    return int.from_bytes(found, "little")


class NestedBlocks:
    """Blocks of one level as sets of marks of the level below."""

    def __init__(self, upper: Blocks, lower: Blocks, inside: list[list[list[int]]]) -> None:
        """`inside`: of each upper block, the lower ones in it."""
        marks = [sorted(lower.mark(block).bit_length() - 1 for block in blocks) for blocks in inside]
        #: mark → marks of the level below
        self.below = {upper.mark(block): _set(each) for block, each in zip(upper.blocks, marks, strict=True)}
        self._blocks = Blocks(sorted(marks, key=itemgetter(0)))
        #: by how much these marks are shifted against the upper level's: by 1 over wider blocks
        self._shift = next(
            (n for n in (0, 1) if {mark << n for mark in self.below} == self._blocks.of.keys()), None
        )

    def with_at_least(self, bits: int, number: int) -> int:
        """Marks of the upper blocks with at least `number` of these lower marks."""
        if self._shift is not None:
            return self._blocks.with_at_least(bits, number) >> self._shift
        found = 0
        for mark, below in self.below.items():
            if (bits & below).bit_count() >= number:
                found |= mark
        return found

    def lowest_of_each(self, bits: int, number: int, within: int) -> int:
        """The lowest `number` of these lower marks in each marked upper block."""
        if self._shift is not None:
            return self._blocks.lowest_of_each(bits, number, within << self._shift)
        found = 0
        for position in positions(within):
            found |= lowest(bits & self.below[1 << position], number)
        return found


def tree_of(site: Site, levels: tuple[str, ...], eligible: int) -> BlockTree:
    """The tree of these levels, cached by the site."""
    key = (levels, eligible)
    found = site.made.get(key)
    if not isinstance(found, BlockTree):
        found = site.made[key] = BlockTree(site, levels, eligible)
    return found


class GroupFit:
    """One resource group on one site: nested blocks, and how many of each."""

    def __init__(self, group: ResourceGroup, site: Site, *, within: int) -> None:
        levels = tuple(site.level(level.name) for level in group.levels)
        eligible = site.still_matching(group.where, group.pool) & within
        if group.host_cores > 1:
            eligible &= site.on_hosts_with(group.host_cores)
        tree = tree_of(site, levels, eligible)
        self.tree = tree
        self._tree, self._over = tree.levels, tree.over
        self.number = group.levels[0].number
        self.numbers = [level.number for level in group.levels]
        #: number of blocks if the group has one level and a plain number; else 0
        self.simple = self.number if isinstance(self.number, int) and len(levels) == 1 else 0
        self.last = levels[-1]
        self.aligned = all(blocks.aligned for blocks in self._tree)
        self.eligible = self._tree[-1].union
        self.even = self._tree[-1].smallest * self._tree[-1].number == self.eligible.bit_count()
        self.least = self._least()

    def _least(self) -> int:
        """The least number of resources that can be enough."""
        if isinstance(self.number, str):
            return self.eligible.bit_count() if self.number == ALL else 1
        smallest = self._tree[-1].smallest
        for number in self.numbers:
            assert isinstance(number, int)
            smallest *= number
        return max(1, smallest)

    def candidates(self, free: int) -> tuple[list[int], int]:
        """Marks of the blocks that could be taken at each level, and how many are wanted at the first."""
        found = [self._tree[-1].whole(free)]
        for over, number in zip(reversed(self._over), reversed(self.numbers[1:]), strict=True):
            assert isinstance(number, int)
            found.append(over.with_at_least(found[-1], number))
        found.reverse()
        wanted = self.number
        if isinstance(wanted, str):
            there = found[0].bit_count()
            if wanted == ALL:
                wanted = self._tree[0].number
            elif wanted == BEST:
                wanted = max(1, there)
            else:
                assert wanted == HALF_BEST
                wanted = there // 2
        return found, wanted

    def fits(self, free: int) -> bool:
        if self.simple:
            return self._tree[0].whole(free).bit_count() >= self.simple
        found, wanted = self.candidates(free)
        return found[0].bit_count() >= wanted

    def choose(self, free: int, short: Short | None = None) -> int:
        """The free resources to take, preferred ones first; 0 if it does not fit."""
        if self.simple and short is None:
            marks = self._tree[0].whole(free)
            return self._tree[0].expand(lowest(marks, self.simple)) if marks.bit_count() >= self.simple else 0
        if short is not None and isinstance(self.number, str):
            free &= ~short(free & self.eligible)  # resources that it may not take do not count as free
        while True:
            found, wanted = self.candidates(free)
            if wanted < 1 or found[0].bit_count() < wanted:
                return 0
            taken = self.take(found, lowest(found[0], wanted))
            lacking = short(taken) if short is not None else 0
            if not lacking:
                return taken
            free &= ~lacking

    def take(self, found: list[int], marks: int) -> int:
        """The resources to take of these blocks of the first level; `found`: the result of `candidates`."""
        for over, number, candidates in zip(self._over, self.numbers[1:], found[1:], strict=True):
            assert isinstance(number, int)
            marks = over.lowest_of_each(candidates, number, marks)
        return self._tree[-1].expand(marks)

    def choices(self, free: int) -> Iterator[int]:
        """Every possible choice, preferred ones first."""
        found, wanted = self.candidates(free)
        if wanted:  # ALL of no blocks never fits
            yield from self._choices(0, found[0], wanted, found)

    def _choices(self, depth: int, marks: int, number: int, found: list[int]) -> Iterator[int]:
        # One after another: of many blocks the first is often enough.
        ones = ((1 << position,) for position in positions(marks))
        for some in (
            ones if number == 1 else combinations([1 << position for position in positions(marks)], number)
        ):
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


class Shape(Unchanging):
    """One alternative of a request on one site: resource groups that must not overlap."""

    def __init__(self, alternative: Alternative, site: Site, *, within: int) -> None:
        for group in alternative.groups:
            for level in group.levels:
                if not site.is_level(level.name):
                    raise BadInput(
                        f"there is no level '{level.name}'", hint=f"levels are {', '.join(site.levels)}"
                    )
        self.fits = [GroupFit(group, site, within=within) for group in alternative.groups]
        self.eligible = 0
        self.least = 0
        apart = True
        for fit in self.fits:
            apart = apart and not self.eligible & fit.eligible
            self.eligible |= fit.eligible
            self.least += fit.least
        self._apart = apart  #: no two groups compete
        self.bounded = False  #: has a search ever stopped at `TRIES`?
        self.plain = len(self.fits) == 1
        #: shapes of one family differ only in `number`: a larger one cannot start earlier
        self.family: Family = self
        self.number = 1
        numbers = self.fits[0].numbers
        if self.plain and isinstance(numbers[-1], int):
            self.family, self.number = (self.fits[0].tree, *numbers[:-1]), numbers[-1]
        #: every choice has the same number of resources
        self.even = all(isinstance(fit.number, int) and fit.even for fit in self.fits)
        #: takes all or half of the free blocks
        self.greedy = any(isinstance(fit.number, str) and fit.number != ALL for fit in self.fits)
        #: preferred resources are always lower bits
        self.ordered = self.plain and isinstance(numbers[0], int) and self.fits[0].aligned
        #: it fits an empty site
        self.possible = bool(self.choose(within))
        #: takes whole hosts, and so all of their memory, disk and GPUs
        self.whole_hosts = any(fit.last in whole_host_levels(site) for fit in self.fits)

    def may_fit(self, free: int) -> bool:
        """Does each group fit alone? False means that the shape cannot fit."""
        if self.plain:
            return self.fits[0].fits(free)
        return all(fit.fits(free) for fit in self.fits)

    def choose(self, free: int, short: Short | None = None) -> int:
        """The free resources to take; 0 if they are not enough."""
        if self.plain:
            return self.fits[0].choose(free, short)
        taken = self._in_turn(self.fits, free, short)
        if taken or self._apart:
            return taken
        narrow_first = sorted(self.fits, key=lambda fit: fit.eligible.bit_count())
        return self._in_turn(narrow_first, free, short) or self._search(free, short)

    def _in_turn(self, fits: list[GroupFit], free: int, short: Short | None) -> int:
        taken = 0
        for fit in fits:
            some = fit.choose(free & ~taken, short)
            if not some:
                return 0
            taken |= some
        return taken

    def _search(self, free: int, short: Short | None) -> int:
        """Backtracking over the choices of all groups but the last, up to `TRIES`."""
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


#: What shapes have in common that differ only in a number.
Family = Shape | tuple[BlockTree | int | str, ...]


def whole_host_levels(site: Site) -> tuple[str, ...]:
    """Levels whose blocks are one host or more."""
    return site.levels[: site.levels.index("host") + 1] if "host" in site.levels else ("host",)
