"""Looks up in the store the jobs that a submission names, and jobs that wait for them.

Read-only. Jobs in memory may have changed since; the engine checks them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from rota.core.answers import entries_of, kept_of
from rota.core.events import FormerJob
from rota.core.jobs.job import Job, Parent
from rota.core.rows import KnownJob
from rota.core.states import RETRYABLE, TERMINAL, State
from rota.core.stored import job_from_row
from rota.core.submit.identity import key_maker
from rota.core.submit.spec_library import Library
from rota.errors import BadInput, NotFound
from rota.plan.language.reading import shown
from rota.store.base import Brief, Clause, Store
from rota.wire import messages as m

_MOST_PARENTS: Final = 10_000


class EarlierJobs(NamedTuple):
    """Jobs in the store that a chunk names, apart from jobs to retry."""

    namesakes: dict[str, list[FormerJob]]  #: of entries that are to run again
    formers: dict[int, FormerJob]  #: complete jobs whose entries wait for something
    places: dict[Parent, int]  #: replaced job that an entry waits for → its successor


class LastInput(NamedTuple):
    """An input when it was added last."""

    jobs: list[int]  #: in its order
    kept: list[int]  #: jobs that had been dropped from the input, and stayed
    dropped: dict[int, FormerJob]  #: jobs of both lists on disk that failed or were cancelled


#: (array, (first index, last index)) → the jobs that are meant.
ArrayElements = dict[tuple[Parent, tuple[int, int]], list[int]]


#: The line on which a dependency was written; 0: on none.
Line = Callable[[m.NewAfter], int]


def find_elements(store: Store, after: Iterable[m.NewAfter], line: Line) -> ArrayElements:
    """The jobs behind the elements of arrays that jobs are to wait for. Raises `NotFound`."""
    found: ArrayElements = {}
    for each in after:
        if each.elements is None or (each.parent, each.elements) in found:
            continue
        clause = Clause(array=int(each.parent), indexes=(each.elements,))
        ids = store.find([clause], above=0, limit=_MOST_PARENTS + 1) if each.parent else []
        if not ids:
            raise NotFound(f"array {each.parent} has no such element", field="after", line=line(each))
        if len(ids) > _MOST_PARENTS:
            raise BadInput(
                f"more than {_MOST_PARENTS} elements",
                field="after",
                line=line(each),
                hint="use a dependency group",
            )
        found[each.parent, each.elements] = ids
    return found


#: (command, directory) → the job that has it.
JobsByCommand = dict[tuple[Parent, str], int]


def command_keys(after: Iterable[m.NewAfter], user: str) -> dict[tuple[Parent, str], str]:
    """Keys of the jobs that dependencies name by their commands."""
    found: dict[tuple[Parent, str], str] = {}
    for each in after:
        if each.cwd is not None and (each.parent, each.cwd) not in found:
            make = key_maker(user=user, cwd=each.cwd or None)
            found[each.parent, each.cwd] = make(str(each.parent), 0)
    return found


def find_commanded(
    after: Iterable[m.NewAfter], keys: dict[tuple[Parent, str], str], ids: Mapping[str, int], line: Line
) -> JobsByCommand:
    """The jobs with these keys. Raises `NotFound` that names the place and the command."""
    found: JobsByCommand = {}
    for each in after:
        if each.cwd is None:
            continue
        job = ids.get(keys[each.parent, each.cwd])
        if job is None:
            where = f"in {shown(each.cwd)}" if each.cwd else "in a directory of its own"
            raise NotFound(
                f"no job has the command {shown(str(each.parent))} {where}",
                field="after",
                line=line(each),
                hint="add it first, or wait for something else",
            )
        found[each.parent, each.cwd] = job
    return found


def complete_dependents(store: Store, library: Library, groups: set[str]) -> dict[int, Job]:
    """Complete jobs on disk that wait for one of these groups, directly or through other jobs."""
    found: dict[int, Job] = {}
    pending: list[Parent] = list(groups)
    while pending:
        ids = [id for id in store.dependents(pending) if id not in found]
        loaded = load_jobs(store, library, ids)
        complete = {id: job for id, job in loaded.items() if job.state is State.COMPLETE}
        found |= complete
        pending = [*complete, *{name for job in complete.values() for name in job.spec.dep_groups}]
    return found


def look_up(
    store: Store, library: Library, user: str, keys: list[str]
) -> tuple[dict[str, KnownJob], dict[int, Job]]:
    """What the store knows of these keys: (id, state), and the whole job where it will be retried."""
    known = store.known_keys(user, keys)
    again = [job for job, state in known.values() if state in RETRYABLE]
    return known, load_jobs(store, library, again)


def look_before(
    store: Store,
    library: Library,
    add: m.Add,
    *,
    keys: list[str],
    known: dict[str, KnownJob],
    gone: list[int],
) -> EarlierJobs:
    """Jobs that a chunk may replace, complete jobs that it names, and successors of replaced ones (`gone`)."""
    again = set(add.rerun_entries)
    reruns = [key for n, key in enumerate(keys, add.first) if add.rerun or n in again]
    waiting = {each.entry - add.first for each in add.after}
    met = [known[keys[n]] for n in waiting if keys[n] in known]
    namesakes: dict[str, list[FormerJob]] = {}
    for former in _formers(library, store.namesakes(reruns)) if reruns else ():
        namesakes.setdefault(former.key, []).append(former)
    complete = [id for id, state in met if state == State.COMPLETE]
    formers = {each.id: each for each in _formers(library, store.briefs(complete))} if complete else {}
    return EarlierJobs(namesakes, formers, successors_of(store, gone) if gone else {})


def _formers(library: Library, briefs: list[Brief]) -> list[FormerJob]:
    return [FormerJob(each.id, each.key, library.specs[each.spec_id], each.after) for each in briefs]


def successors_of(store: Store, gone: list[int]) -> dict[Parent, int]:
    """The last successor of each of these replaced jobs; itself, if it has none."""
    by: dict[int, int] = {}
    pending = gone
    while pending:
        found = {row.id: row.replaced_by for row in store.jobs(pending) if row.replaced_by}
        by |= found
        pending = [id for id in found.values() if id not in by]
    places: dict[Parent, int] = {}
    for id in gone:
        last = id
        while last in by:
            last = by[last]
        places[id] = last
    return places


def look_at_last(
    store: Store, library: Library, *, user: str, name: str, failed: Callable[[int], bool]
) -> LastInput:
    """The jobs that an input had when it was added last; `failed` says which of them may be replaced."""
    found = store.last_of_input(user, name)
    if found is None or found.answer is None:
        return LastInput([], [], {})
    jobs, kept = entries_of(found.answer), kept_of(found.answer)
    bad = [id for id in dict.fromkeys([*jobs, *kept]) if failed(id)]
    return LastInput(jobs, kept, {each.id: each for each in _formers(library, store.briefs(bad))} if bad else {})


def find_followers(store: Store, library: Library, replaced: set[int]) -> dict[int, Job]:
    """Ended jobs on disk that waited for one of these jobs, without these themselves."""
    ids = [id for id in store.followers(sorted(replaced)) if id not in replaced]
    return {id: job for id, job in load_jobs(store, library, ids).items() if job.state in TERMINAL}


def load_jobs(store: Store, library: Library, ids: list[int]) -> dict[int, Job]:
    """Finished jobs, from the store."""
    if not ids:
        return {}
    return {row.id: job_from_row(row, library.specs[row.spec_id]) for row in store.jobs(ids)}


def parents_of(each: m.NewAfter, arrays: ArrayElements, commanded: JobsByCommand) -> list[Parent]:
    """The jobs, or the group, that a dependency means."""
    if each.cwd is not None:
        return [commanded[each.parent, each.cwd]]
    return [each.parent] if each.elements is None else list(arrays[each.parent, each.elements])


def line_of(add: m.Add, position: int) -> int:
    """The line of an entry, counted from the first of its chunk."""
    return add.lines[position] if add.lines else add.first + position + 1
