"""Decide what a submission means for existing jobs: which it replaces, changes or leaves alone.

Changes nothing but the upload, so a dry run gets the same answer.
"""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from rota.core.answers import MOST_WARNINGS
from rota.core.events import ChunkArrived
from rota.core.gangs.admission import changes_gang
from rota.core.jobs.job import After, Spec
from rota.core.states import LEASED, RETRYABLE, WAITING
from rota.core.submit.edited_input import Reconciliation, drop_removed_lines
from rota.core.submit.parents import EntryParents
from rota.core.submit.upload import KnownEntry, Upload
from rota.core.world import NO_JOB, OPEN, World
from rota.errors import BadInput

_after = msgspec.json.Decoder(tuple[After, ...])


def decide(world: World, upload: Upload, entry_parents: EntryParents, event: ChunkArrived) -> Reconciliation:
    """Decide which jobs the submission replaces and changes. Adds warnings to the upload."""
    reconciled = Reconciliation({}, {}, {}, [])
    for new, olds in upload.replacing.items():
        for old in olds:
            reconciled.replaced[old.id] = (old, new)
            reconciled.successors[old.id] = new
    for entry, known in upload.known_entries.items():
        _compare(world, upload, reconciled, entry=entry, known=known, entry_parents=entry_parents)
    if event.previous or event.kept:
        drop_removed_lines(world, upload, reconciled, entry_parents=entry_parents, event=event)
    return reconciled


def _compare(
    world: World,
    upload: Upload,
    reconciled: Reconciliation,
    *,
    entry: int,
    known: KnownEntry,
    entry_parents: EntryParents,
) -> None:
    """Compare an existing job with its entry: it takes new dependencies and settings unless it runs or is
    complete, or would join or leave a gang."""
    job = world.jobs.get(known.job) or upload.retried.get(known.job)
    if job is not None:
        spec, after = job.spec, job.after
    elif known.former is not None:
        spec, after = (
            known.former.spec,
            _after.decode(known.former.after) if known.former.after else (),
        )
    else:
        return
    names = differences(known.spec, spec, in_array=known.array is not None)
    if known.job not in entry_parents.fixed and set(entry_parents.existing.get(known.job, ())) != set(after):
        names.insert(0, "after")
    if not names:
        return
    if job is not None and (job.state in WAITING or (job.state in RETRYABLE and known.job in upload.retried)):
        if not changes_gang(spec, known.spec, names):
            reconciled.changed[known.job] = known
            return
        # The gang knows its members by id: it would go on counting one that left, and miss one that joined.
        warn(
            upload,
            f"line {upload.lines[entry]}: job {known.job} keeps its own {', '.join(names)}: "
            "a gang is placed as it was added",
        )
        return
    state = job.state.label if job is not None else "complete"
    what = "keeps its own" if job is not None and job.state in LEASED else "is skipped with its own"
    warn(
        upload,
        f"line {upload.lines[entry]}: job {known.job} is {state} and {what} {', '.join(names)}; "
        "--rerun makes a new job of one that has ended",
    )


def warn(upload: Upload, sentence: str) -> None:
    """Add a warning, up to `MOST_WARNINGS`."""
    if len(upload.warnings) < MOST_WARNINGS:
        upload.warnings.append(sentence)


def differences(asked: Spec, has: Spec, *, in_array: bool) -> list[str]:
    """Name the fields in which two specifications differ.

    Ignores the environment, which every submission captures anew, and the name of an array's own limit.
    """
    if asked == has:
        return []
    apart = ("env", "limits")
    names = [n for n in Spec.__struct_fields__ if n not in apart and getattr(asked, n) != getattr(has, n)]
    if [use for use in asked.limits if use not in has.limits and not in_array]:
        names.append("limits")
    return names


def rerun_dependents(world: World, upload: Upload, renew: Callable[[int, KnownEntry], int]) -> None:
    """Replace ended dependents of replaced jobs too, if they are in the same input.

    `renew` makes a new job of an entry and returns its id.
    """
    ended = {entry: known for entry, known in upload.known_entries.items() if world.outcome(known.job) != OPEN}
    if not upload.replacing or not ended:
        return
    parents: dict[int, list[tuple[object, bool]]] = {}
    for entry, parent, _condition, local in upload.after:
        if entry in ended:
            parents.setdefault(entry, []).append((parent, local))
    again = {old.id for olds in upload.replacing.values() for old in olds} | set(upload.replacing)
    groups = {name for new in upload.replacing for name in upload.jobs[new].spec.dep_groups}
    found = True
    while found:
        found = False
        for entry in [entry for entry in parents if entry in ended]:
            if any(
                (upload.entries[parent] in again if local else parent in again or parent in groups)  # type: ignore[call-overload]
                for parent, local in parents[entry]
            ):
                known = ended.pop(entry)
                again |= {known.job, renew(entry, known)}
                groups |= {*known.spec.dep_groups}
                found = True
    kept = {id for id in upload.entries if id not in upload.jobs}
    upload.added = [id for id in upload.entries if id in upload.jobs]
    upload.existing = [id for id in upload.existing if id in kept]
    upload.complete = [id for id in upload.complete if id in kept]


def catch_up(world: World, upload: Upload) -> dict[int, int]:
    """Reconcile the upload with submissions that were completed while it was under way.

    Returns new jobs of the upload that are not needed → the existing job to use instead. Raises `BadInput` if a
    job that it relies on was dropped from its input.
    """
    there: dict[int, int] = {}
    for key, id in upload.keys.items():
        if id in upload.fresh:
            continue
        olds = [old for old in upload.replacing.get(id, ()) if world.outcome(old.id) != NO_JOB]
        if id in upload.replacing:
            upload.replacing[id] = [old for old in olds if not world.is_replaced(old.id)]
        found = world.keys.get(key)
        if found is not None and (found not in {old.id for old in olds} or world.outcome(found) == OPEN):
            there[id] = found
            continue
        for old in olds:
            if world.outcome(old.id) == OPEN:
                there[id] = old.id
            elif by := _latest(world, old.id):
                there[id] = by
    if world.successors:
        for id in dict.fromkeys(upload.entries):
            if not world.is_replaced(id) or id in upload.jobs:
                continue
            by = _latest(world, id)
            if not by:
                raise BadInput(f"job {id} was replaced meanwhile", hint="send the input again")
            there[id] = by
    return there


def _latest(world: World, id: int) -> int:
    """Follow the chain of successors; 0: the job has none."""
    while id in world.successors:
        id = world.successors[id]
        if id and not world.is_replaced(id):
            return id
    return 0
