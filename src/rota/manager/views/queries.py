"""Answers questions about jobs: from memory about live jobs, from the store about ended ones.

The stored state of a live job is only as new as its last non-routine change, so questions about live
states are answered from memory, and rows are corrected before they are shown.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import compress

import msgspec

from rota.core.answers import expand_answer, ranges
from rota.core.attempts.parts import closing_jobs
from rota.core.forecast.expectation import Expected
from rota.core.forecast.expected_times import Expectations
from rota.core.jobs.command import one_line
from rota.core.jobs.explain import replaced, why
from rota.core.jobs.job import Job, Spec
from rota.core.jobs.reason_texts import sentence
from rota.core.jobs.report_groups import names_of
from rota.core.learning.estimate import decision
from rota.core.pipelines.session import is_submission
from rota.core.states import LEASED, LIVE, TERMINAL, WAITING, State
from rota.core.stored import StoredJob, job_from_row
from rota.core.world import NO_JOB, World
from rota.errors import NotFound
from rota.manager.loop import clock
from rota.manager.output.outputs import OutputChecks
from rota.manager.views import graphs, rows
from rota.manager.views.amounts import add_learned
from rota.manager.views.expected_times import expected_views
from rota.manager.views.matching import IdRanges, Matching
from rota.manager.views.selectors import disjoint, is_range, parse
from rota.pool_names import pool_of_runner
from rota.store.base import Clause, Order, Store, folded
from rota.wire.views import GraphView, JobPage, JobView, LearnedView, ReasonView, StatusView, WhyView

#: A page holds at most this much; commands may be long. Beside its command a job takes about this.
_PAGE_BYTES = 16 << 20
_VIEW_BYTES = 1700
#: Ids that are looked up one by one, however few jobs there are.
_SPANNED = 64

#: Ids that are taken at once where they are many.
_SLICE = 1 << 15

_LIVE_NUMBERS = frozenset(int(state) for state in LIVE)
#: What `bytes.translate` makes of an outcome: is there such a job?
_EXISTS = bytes(outcome != NO_JOB for outcome in range(256))
_LEASED_NUMBERS = frozenset(int(state) for state in LEASED)


class Queries:
    """Read-only. May be called from worker threads while the loop changes the world, so a value that is used twice
    is read once. Answers leave after the commit of everything they may have seen."""

    def __init__(
        self, world: World, store: Store, specs: dict[int, Spec], checks: OutputChecks | None = None
    ) -> None:
        self._checks = checks
        self._world = world
        self._store = store
        self._specs = specs
        self.expectations: Expectations | None = None  #: callers refresh it before they ask about jobs

    # -- which jobs

    def clauses(self, words: list[str], user: str) -> list[Clause]:
        """What these selectors mean for this user."""
        last: list[tuple[int, int]] = []
        session = ""
        if any("last" in word.split(",") for word in words):
            newest = self._store.last_submission(user)
            if newest is None or newest.answer is None:
                raise NotFound("nothing was added yet", hint="add jobs with 'rota add' or 'rota run'")
            if is_submission(newest.id):
                session = newest.id
            else:
                answer = expand_answer(newest.answer)
                last = ranges(sorted({*answer.added, *answer.existing, *answer.retried}))
        found = parse(words, last=last, now=clock.now(), last_session=session)
        if not any(clause.pool for clause in found):
            return found
        return [msgspec.structs.replace(each, pool_hosts=self._hosts_in(each.pool)) for each in found]

    def _hosts_in(self, pool: str) -> tuple[str, ...]:
        """The hosts that this pool has now."""
        known = list(self._world.capacity.items()) if pool else []
        return tuple(sorted(host for host, has in known if has.pool == pool))

    def live_ids(self, clauses: list[Clause]) -> list[int]:
        """Jobs in memory that match, ascending."""
        world = self._world
        jobs: list[Job]
        if all(clause.low for clause in clauses) and _spanned(clauses) <= max(_SPANNED, len(world.jobs)):
            near = (world.jobs.get(id) for clause in clauses for id in range(clause.low, clause.high + 1))
            jobs = [job for job in near if job is not None]
        elif all(clause.state in _LEASED_NUMBERS for clause in clauses):
            # Few, however many wait.
            leased = [id for runner in list(world.runners.values()) for id in list(runner.leases)]
            found = (world.jobs.get(id) for id in (*leased, *list(closing_jobs(world))))
            jobs = [job for job in found if job is not None]
        elif states := _only_states(clauses):
            return sorted(job.id for job in list(world.jobs.values()) if job.state in states)
        else:
            jobs = list(world.jobs.values())
        if all(clause.exits for clause in clauses):
            jobs = [job for job in jobs if job.attempt and job.state in WAITING]
        exits = self._exit_codes(jobs) if any(clause.exits for clause in clauses) else {}
        matching = Matching(clauses, self.hosts, lambda job: exits.get(job.id))
        return sorted({job.id for job in jobs if matching.has(job)})

    def _exit_codes(self, jobs: Iterable[Job]) -> dict[int, int | None]:
        """The exit codes of jobs in memory that wait after an attempt: only the store has them."""
        tried = [job.id for job in jobs if job.attempt and job.state in WAITING]
        rows = (row for at in range(0, len(tried), _SLICE) for row in self._store.jobs(tried[at : at + _SLICE]))
        return {row.id: row.newest.exit_code for row in rows if row.newest is not None}

    def ended_ids(self, clauses: list[Clause], states: Iterable[State]) -> list[int]:
        """Jobs on disk that match and ended in one of these states."""
        ended = frozenset(int(state) for state in states)
        wanted = [
            msgspec.structs.replace(clause, state=state)
            for clause in clauses
            if not is_range(clause)
            for state in ended
            if clause.state in (0, state)
        ]
        ids = IdRanges((clause.low, clause.high) for clause in clauses if is_range(clause))
        known = self._of_outcome(ids, ended)
        return sorted({*known, *self._store.find(wanted, above=0, limit=2**62)}) if wanted else known

    def _of_outcome(self, ids: IdRanges, ended: frozenset[int]) -> list[int]:
        """The ids among these that ended in these states, from memory alone."""
        table = bytes(outcome in ended for outcome in range(256))
        outcomes = self._world.outcomes
        found: list[int] = []
        for low, high in ids.ranges:
            for begin in range(low, min(high + 1, len(outcomes)), _SLICE):
                stop = min(begin + _SLICE, high + 1)
                found.extend(compress(range(begin, stop), outcomes[begin:stop].translate(table)))
        return found

    def missing(self, clauses: list[Clause]) -> list[int]:
        """Ids that were named one by one and do not exist."""
        return [
            clause.low
            for clause in clauses
            if clause.low and clause.low == clause.high and self._world.outcome(clause.low) == NO_JOB
        ]

    def submitted(self, submission: str) -> tuple[list[int], set[int]]:
        """All jobs of a submission, and the subset that it added or re-opened."""
        found = self._store.submission(submission)
        if found is None or found.answer is None:
            raise NotFound(f"there is no submission {submission}")
        answer = expand_answer(found.answer)
        fresh = {*answer.added, *answer.retried}
        return sorted({*fresh, *answer.existing}), fresh

    def host(self, job: Job) -> str:
        """The first host of its present attempt."""
        lease = job.lease  # the loop may end it meanwhile
        runner = self._world.runners.get(lease.runner) if lease else None
        return (lease.host if lease else "") or (runner.host if runner else "")

    def hosts(self, job: Job) -> tuple[str, ...]:
        """All hosts of its present attempt, also those on which it is over already; the first comes first."""
        lease = job.lease
        return rows.hosts_of(self.host(job), lease.given) if lease else ()

    def ordered(self, clauses: list[Clause], search: str, order: Order, *, limit: int) -> tuple[array[int], int]:
        """Ids of jobs that match, in an order, and how many match. In the order of ids these are all; in another
        one the first `limit`. Live states are asked of memory, which knows better."""
        clauses = disjoint(clauses or [Clause()])
        wanted = [clause for clause in clauses if clause.state not in _LIVE_NUMBERS]
        live = [clause for clause in clauses if clause.state in _LIVE_NUMBERS]
        living = self.live_ids(live) if live else []
        if order.by == "id" and not search and (not wanted or wanted == [Clause()] or _only_states(wanted)):
            ids = self._by_outcome({clause.state for clause in wanted}, living, descending=order.descending)
            return ids, len(ids)
        wanted += [Clause(low=low, high=high) for low, high in ranges(living)]
        if not wanted:
            return array("q"), 0
        text, specs = folded(search), list(self._specs.items()) if search or order.by == "priority" else []
        named = [id for id, spec in specs if search and text in folded(spec.name)]
        priorities = {id: spec.priority for id, spec in specs} if order.by == "priority" else {}
        most = -1 if order.by == "id" else limit
        found = self._store.ordered(wanted, order, search=search, named=named, specs=priorities, limit=most)
        full = len(found) == most
        return found, self._store.count(wanted, search=search, named=named) if full else len(found)

    def _by_outcome(self, ended: set[int], living: list[int], *, descending: bool) -> array[int]:
        """Ids of jobs that ended in these states (0: all jobs), and `living`, in order, from memory alone."""
        world = self._world
        ids = array("q")
        if not ended:
            ids.extend(reversed(living) if descending else living)
            return ids
        table = _EXISTS if 0 in ended else bytes(outcome in ended for outcome in range(256))
        wanted = bytearray(world.outcomes.translate(table))
        for id in living:
            wanted[id] = True
        if 0 in ended:
            # Jobs of unfinished submissions do not count yet. A dry run was given no ids.
            uploads = [upload for upload in list(world.uploads.values()) if not upload.check]
            for id in (id for upload in uploads for id in list(upload.added)):
                if id < len(wanted):
                    wanted[id] = False
        places: range = range(len(wanted))
        if descending:
            wanted.reverse()
            places = places[::-1]
        # In slices: no other thread runs during one.
        for low in range(0, len(wanted), _SLICE):
            ids.extend(compress(places[low : low + _SLICE], wanted[low : low + _SLICE]))
        return ids

    # -- answers

    def listed(self, ids: list[int]) -> tuple[list[JobView], int]:
        """These jobs in this order, without removed ones, as many as fit one answer; and how many of `ids` that
        covers."""
        found = {view.id: view for view, _job in self._views(ids)}
        views = [found[id] for id in ids if id in found]
        fitting = _fitting(views)
        return views[:fitting], ids.index(views[fitting].id) if fitting < len(views) else len(ids)

    def graph(self, id: int) -> GraphView:
        """What a job waits for, and what waits for it."""
        return graphs.graph_view(id, self._world, self._store, self._specs)

    def page(self, clauses: list[Clause], *, limit: int, cursor: int) -> JobPage:
        """One page of a list, in order of id."""
        clauses = disjoint(clauses or [Clause()])
        stored = [clause for clause in clauses if clause.state not in _LIVE_NUMBERS]
        ids = self._store.find(stored, above=cursor, limit=limit + 1) if stored else []
        live = [clause for clause in clauses if clause.state in _LIVE_NUMBERS]
        if live:
            ids = sorted({*ids, *(id for id in self.live_ids(live) if id > cursor)})
        more = len(ids) > limit
        ids = ids[:limit]
        found = self._views(ids)
        hosts = {view.id: tuple(view.hosts) for view, _job in found}
        exits = {view.id: view.exit_code for view, _job in found}
        matching = Matching(clauses, lambda job: hosts[job.id], lambda job: exits[job.id])
        shown = [view for view, job in found if job is None or matching.has(job)]
        last = ids[-1] if more else None
        fitting = _fitting(shown)
        if fitting < len(shown):
            shown = shown[:fitting]
            last = shown[-1].id
        return JobPage(shown, None if last is None else str(last), self._total(clauses))

    def _total(self, clauses: list[Clause]) -> int:
        if clauses == [Clause()]:
            return sum(sum(counts) for counts in list(self._world.counts.values()))
        if states := _only_states(clauses):
            return sum(counts[state] for counts in list(self._world.counts.values()) for state in states)
        ended = [clause for clause in clauses if clause.state not in _LIVE_NUMBERS]
        stored = self._store.count(ended) if ended else 0
        live = [clause for clause in clauses if clause.state in _LIVE_NUMBERS]
        return stored + (len(self.live_ids(live)) if live else 0)

    def _views(self, ids: list[int]) -> list[tuple[JobView, Job | None]]:
        return [self._view(row) for row in self._store.jobs(ids)]

    def _view(self, row: StoredJob) -> tuple[JobView, Job | None]:
        job = self._world.jobs.get(row.id)
        host = self.host(job) if job is not None else None
        planned = self._world.placement.planned(row.id) if job is not None else None
        newest = row.newest
        ran = self._specs.get(newest.spec) if newest is not None and newest.spec is not None else None
        spec, expected = self._specs[row.spec_id], self._expected(job)
        return rows.view(
            row, spec, job, host=host, pool_of=self._pool_of, planned=planned, expected=expected, ran=ran
        ), job

    def _pool_of(self, host: str) -> str:
        """The pool that a host belongs to, or belonged to."""
        known = self._world.capacity.get(host)
        return known.pool if known is not None else pool_of_runner(host)

    def _expected(self, job: Job | None) -> Expected | None:
        return self.expectations.of(job) if job is not None and self.expectations is not None else None

    def show(self, id: int) -> tuple[JobView, Job]:
        """Everything about one job that is read from disk; `explain` adds the rest."""
        found = self._store.jobs([id])
        if not found:
            raise NotFound(f"there is no job {id}", hint="list them with 'rota jobs'")
        view, job = self._view(found[0])
        stored = self._store.attempts(id)
        missing = self._checks.missing(stored) if self._checks is not None else [None] * len(stored)
        attempts = [
            rows.attempt_view(row, job, self._specs, missing=why) for row, why in zip(stored, missing, strict=True)
        ]
        view.attempts = attempts
        view.story = rows.story(view, attempts, self._store.events(id))
        return view, job or job_from_row(found[0], self._specs[found[0].spec_id])

    def explain(self, view: JobView, shown: Job) -> None:
        """Add why a job waits, what was learned about its group, and how its size is determined. Reads state that
        changes with every decision, so it belongs to the loop's thread."""
        job = self._world.jobs.get(view.id) or shown
        decided = decision(self._world, job)
        view.learned = LearnedView(decided.mem, decided.disk, decided.time_s)
        if view.amounts is not None:
            add_learned(view.amounts, decided)
        if job.state in TERMINAL or view.id not in self._world.jobs:
            return
        reasons = why(self._world, job, wall=clock.now())
        if reasons and job.state is State.READY:
            view.reason = ReasonView(reasons[0].code, sentence(reasons[0].code, reasons[0].message))
        if job.state in WAITING and job.state is not State.READY:
            view.size = rows.taken(decided.used, job.spec, view.walltime_s)  # as it would be, were it ready now

    def why(self, id: int, *, wall: float) -> WhyView:
        """What keeps a job from running. Belongs to the loop's own thread, like `explain`."""
        world = self._world
        job = world.jobs.get(id)
        if job is None:
            if world.outcome(id) == NO_JOB:
                raise NotFound(f"there is no job {id}", hint="list them with 'rota jobs'")
            row = self._store.jobs([id])[0]
            job = job_from_row(row, self._specs[row.spec_id])
        reasons = why(world, job, wall=wall)
        if world.is_replaced(id) and (found := self._store.jobs([id])):
            reasons.append(replaced(found[0].replaced_by or 0))
        start, end, unknown = expected_views(self._expected(job) or Expected())
        return WhyView(
            id=id,
            state=job.state.label,
            reasons=[rows.why_reason(each) for each in reasons],
            expected_start=start if job.state in WAITING else None,
            expected_end=end,
            expected_reason=unknown,
        )

    def some_of(self, clauses: list[Clause]) -> list[Job] | None:
        """The live jobs that match; None: all of their groups do."""
        if all(clause == Clause(group=clause.group) for clause in clauses):
            return None
        found = (self._world.jobs.get(id) for id in self.live_ids(clauses))
        return [job for job in found if job is not None]

    def status(self, clauses: list[Clause]) -> StatusView:
        """Counts by state, over all and by group."""
        groups: dict[str, dict[str, int]] = {}  #: a job in several groups is counted once, under all their names
        named = {""}
        if all(clause == Clause(group=clause.group) for clause in clauses):
            # Whole groups are counted already. An empty name means all of them.
            named = {clause.group for clause in clauses or [Clause()]}
            for group, counts in list(self._world.counts.items()):
                if "" not in named and named.isdisjoint(names_of(group)):
                    continue
                by_state = {state.label: counts[state] for state in State if counts[state]}
                if by_state:
                    groups[group] = by_state
        else:
            self._count_some(clauses, groups)
        totals: dict[str, int] = {}
        for by_state in groups.values():
            for label, number in by_state.items():
                totals[label] = totals.get(label, 0) + number
        return StatusView(
            totals,
            _by_name(groups, named),
            paused=self._world.paused,
            draining=self._world.draining,
            safe_mode=self._world.bugs.safe_mode or None,
        )

    def _count_some(self, clauses: list[Clause], groups: dict[str, dict[str, int]]) -> None:
        def count(group: str, state: State, number: int) -> None:
            by_state = groups.setdefault(group, {})
            by_state[state.label] = by_state.get(state.label, 0) + number

        stored = [clause for clause in clauses if clause.state not in _LIVE_NUMBERS]
        if stored:
            for (group, number), n in self._store.tally(stored).items():
                if State(number) in TERMINAL:
                    count(group, State(number), n)
        for id in self.live_ids(clauses):
            job = self._world.jobs.get(id)
            if job is not None and job.state not in TERMINAL:
                count(job.spec.group, job.state, 1)


def _by_name(groups: dict[str, dict[str, int]], named: set[str]) -> dict[str, dict[str, int]]:
    """Counts of each of these groups; empty: of all groups."""
    found: dict[str, dict[str, int]] = {}
    for group, counts in groups.items():
        for name in names_of(group):
            if "" not in named and name not in named:
                continue
            if name not in found:
                found[name] = dict(counts)
                continue
            for label, number in counts.items():
                found[name][label] = found[name].get(label, 0) + number
    return found


def _spanned(clauses: list[Clause]) -> int:
    """How many ids these ranges have."""
    return sum(clause.high - clause.low + 1 for clause in clauses)


def _only_states(clauses: list[Clause]) -> set[int]:
    """The states that these clauses ask for, if they ask for nothing else."""
    states = {clause.state for clause in clauses}
    plain = 0 not in states and all(clause == Clause(state=clause.state) for clause in clauses)
    return states if plain else set()


def _fitting(views: list[JobView]) -> int:
    """How many of these, at least one, fit an answer."""
    size = 0
    for place, view in enumerate(views):
        size += _VIEW_BYTES + len(one_line(view.cmd)) * 4
        size += sum(map(len, (*(view.request or ()), *view.hosts))) * 4
        if size > _PAGE_BYTES and place:
            return place
    return len(views)
