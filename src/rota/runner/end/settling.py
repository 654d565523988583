"""Settles runners that died: finds what is left of their jobs, ends it, and returns how each job ended.

A runner is dead when its lock can be taken. The lock is then held until the manager has acknowledged everything,
so no two runners settle the same one. Blocks: it runs before the first job is taken. What failed is tried again
later, hastily.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection

from rota.core.attempts.leases import Finished
from rota.core.jobs.outcome import Outcome
from rota.launcher import procfs, scratch, trees
from rota.launcher.base import Launcher
from rota.launcher.nodefile import nodefile_path
from rota.runner import clock
from rota.runner.contain import fences, process_mark, signals
from rota.runner.contain.fence import Fence
from rota.runner.identity import PROGRESS, node_of
from rota.runner.launch import launched
from rota.runner.log import say, say_all
from rota.runner.report import journal
from rota.runner.start.errands import ticket_path

GRACE_S = 5.0
#: After this long without success the dead runner is left for later.
GIVE_UP_S = 60.0
#: The same while this runner has jobs of its own to look after.
GIVE_UP_HASTILY_S = 0.2
_SLACK = 2


class DeadRunner:
    """A dead runner's directory, locked by us."""

    def __init__(self, directory: str, lock: int, story: journal.Story) -> None:
        self.directory = directory
        self.runner = os.path.basename(directory)
        self.story = story
        self._lock = lock

    def release(self) -> None:
        """Leave it to the next runner."""
        os.close(self._lock)

    def remove(self) -> None:
        """The manager has acknowledged everything: remove the directory."""
        # The journal first: without all of the rest it would tell another story.
        self._unlink("journal.new", "journal")
        for path in launched.directories(self.directory):
            launched.end(path)
            say_all(trees.remove(path))
        say_all(trees.remove(f"{self.directory}/{PROGRESS}"))
        self._unlink("relay", "rules.new", "rules", "epoch.new", "epoch", "lock")
        try:
            os.rmdir(self.directory)
        except OSError as error:
            say(f"cannot remove {self.directory}: {error}")
        os.close(self._lock)

    def _unlink(self, *names: str) -> None:
        for name in names:
            try:
                os.unlink(f"{self.directory}/{name}")
            except OSError:
                continue


def dead_runners(root: str, own: str, machine: str) -> list[DeadRunner]:
    """All dead runners of this machine below `root`."""
    found = []
    for name in sorted(os.listdir(root)):
        directory = f"{root}/{name}"
        if name == own or not os.path.isdir(directory):
            continue
        lock = journal.take_lock(directory)
        if lock is None:
            _remove_empty(directory)
            continue
        try:
            story = journal.read(f"{directory}/journal")
        except FileNotFoundError:
            story = journal.Story([])  # it died before it could have done anything
        except OSError as error:
            say(f"cannot read the journal of {name}: {error}")
            os.close(lock)
            continue
        if story.began is not None and story.began.machine != machine:
            os.close(lock)  # a shared file system: a runner over there will do it
            continue
        found.append(DeadRunner(directory, lock, story))
    return found


def _remove_empty(directory: str) -> None:
    try:
        os.rmdir(directory)
    except OSError:
        pass  # it lives


def settle(
    dead: DeadRunner,
    launcher: Launcher,
    *,
    boot_id: str,
    scratch_root: str,
    hasty: bool = False,
    living: Collection[journal.Key] = (),
) -> tuple[list[Finished], bool]:
    """How every lease ended that the dead runner executed, and whether that is certainly all of them.

    `living`: leases that another runner goes on with.

    When this returns nothing of them runs. Raises `TimeoutError` if something cannot be ended; `hasty`:
    soon, and what is left is killed without being asked first. `launcher`: runs scripts of the site.
    """
    story = dead.story
    rebooted = story.began is not None and story.began.boot_id != boot_id
    leases = {key: lease for key, lease in story.leases.items() if key not in living}
    open_leases = [lease for lease in leases.values() if lease.finished is None]
    begun = None if rebooted else launched.leases(dead.directory)
    ended_count: dict[journal.Key, int] = {}
    if not rebooted:
        others = {f"{job}.{attempt}" for job, attempt, _ in living}
        others |= {fences.errand_name(*key) for key in living}
        found = {name: each for name, each in fences.of_runner(dead.runner).items() if name not in others}
        fenced = {lease.intent.key: _fence(lease, found, launcher) for lease in open_leases}
        if open_leases:
            ended_count = end_survivors(open_leases, fenced, node=node_of(dead.runner), hasty=hasty)
        for fence in list(found.values()):
            fence.remove_patiently()
    finished = []
    for key, lease in leases.items():
        if lease.finished is not None:
            finished.append(lease.finished)
            continue
        ended = lease.ended
        say_all(trees.remove_file(nodefile_path(scratch_root, lease.intent.job, lease.intent.attempt)))
        say_all(trees.remove_file(ticket_path(scratch_root, key)))
        path, tmp = scratch.directories(scratch_root, lease.intent.job, lease.intent.attempt)
        say_all(trees.remove(tmp))
        if lease.intent.scratch if ended is None else ended.scratch_goes:
            say_all(trees.remove(path))
        if ended is not None:
            finished.append(ended.finished)
            continue
        if lease.preparing or lease.intent.part:
            continue  # nothing but the site's prologue ran: it was never executed
        if begun is not None and key not in begun and lease.spawned is None:
            continue  # its launcher never heard of it
        spawned, ended_at = lease.spawned, None
        if spawned is not None and not rebooted:
            ended_at = spawned.started_at + clock.passed_since(spawned.start_time)
        outcome = Outcome(
            reason="lost",
            message=_what_is_known(dead.runner, rebooted, ended_count.get(key, 0)),
            started_at=None if spawned is None else spawned.started_at,
            ended_at=clock.now() if ended_at is None else ended_at,
            by_wall_clock=ended_at is None,
        )
        finished.append(Finished(*key, lease.spawned.seat if lease.spawned is not None else 0, outcome))
    # After a reboot the end of the journal may never have reached the disk.
    return finished, story.whole and not rebooted


def _what_is_known(runner: str, rebooted: bool, ended: int) -> str:
    if rebooted:
        return f"the machine was restarted while runner {runner} had this attempt; how it ended is unknown"
    if ended:
        left = "1 process of it was" if ended == 1 else f"{ended} processes of it were"
        return f"runner {runner} died while this attempt ran; {left} still there and ended"
    return f"runner {runner} died while it had this attempt; nothing of it was left; how it ended is unknown"


def _fence(lease: journal.JournalledLease, found: dict[str, Fence], launcher: Launcher) -> Fence | None:
    """The runner may have died after it had made the fence and before it journalled it: look on the host first."""
    job, attempt, token = lease.intent.key
    if (fence := found.get(fences.errand_name(job, attempt, token))) is not None:
        return fence
    return found.get(f"{job}.{attempt}") or fences.recorded(lease.fence, job, attempt, launcher)


def end_survivors(
    leases: list[journal.JournalledLease], fenced: dict[journal.Key, Fence | None], *, node: str, hasty: bool
) -> dict[journal.Key, int]:
    """TERM, grace, KILL, until nothing is left; how many processes each lease still had."""
    grace_s, give_up_s = (0.0, GIVE_UP_HASTILY_S) if hasty else (GRACE_S, GIVE_UP_S)
    counts: dict[journal.Key, int] = {}
    begun = time.monotonic()
    asked: set[tuple[int, int]] = set()
    known: dict[journal.Key, dict[int, int]] = {}
    while left := _survivors(leases, fenced, known, node):
        elapsed = time.monotonic() - begun
        if elapsed > grace_s + give_up_s:
            raise TimeoutError(f"{sum(map(len, left.values()))} processes of dead jobs cannot be ended")
        for key, processes in left.items():
            fence = fenced[key]
            fresh = [seen for seen in processes if (seen.pid, seen.start_time) not in asked]
            counts[key] = counts.get(key, 0) + len(fresh)
            asked.update((seen.pid, seen.start_time) for seen in fresh)
            if elapsed < grace_s:
                signals.ask_to_end(fresh)
                if fence is not None and fresh:
                    fence.freeze(False)  # a frozen process receives no TERM
            else:
                if fence is not None:
                    fence.kill()
                signals.kill(processes)
        time.sleep(0.02 if elapsed < 1 else 0.1)
    for fence in fenced.values():
        if fence is not None:
            fence.remove_patiently()
    return counts


def _survivors(
    leases: list[journal.JournalledLease],
    fenced: dict[journal.Key, Fence | None],
    known: dict[journal.Key, dict[int, int]],
    node: str,
) -> dict[journal.Key, list[procfs.Process]]:
    """Living processes of these leases: by pid, session, fence, environment and ancestry.

    `known` remembers them from one call to the next: a parent may die before its child is looked at.
    """
    table = procfs.table()
    children: dict[int, list[procfs.Process]] = {}
    for seen in table.values():
        children.setdefault(seen.ppid, []).append(seen)
    by_mark: dict[bytes, journal.Key] = {}
    roots: dict[journal.Key, set[int]] = {}
    for lease in leases:
        key = lease.intent.key
        roots[key] = {pid for pid, start in known.get(key, {}).items() if _same(table, pid, start)}
        by_mark[process_mark.value(lease.intent.token, node)] = key
        if lease.spawned is not None:
            roots[key].update(_of_session(table, lease.spawned))
        if (fence := fenced[key]) is not None:
            roots[key].update(fence.pids() & table.keys())
    own = os.getpid()
    for pid, seen in table.items():
        if seen.alive and pid != own:
            value = procfs.environ_value(pid, process_mark.VARIABLE)
            if value is not None and value in by_mark:
                roots[by_mark[value]].add(pid)
    found = {}
    for key, pids in roots.items():
        pids.discard(own)
        stack, tree = list(pids), set(pids)
        while stack:
            for child in children.get(stack.pop(), ()):
                if child.pid not in tree and child.pid != own:
                    tree.add(child.pid)
                    stack.append(child.pid)
        living = [table[pid] for pid in tree if table[pid].alive]
        if living:
            found[key] = living
            known.setdefault(key, {}).update((seen.pid, seen.start_time) for seen in living)
    return found


def _same(table: dict[int, procfs.Process], pid: int, start_time: int) -> bool:
    return pid in table and table[pid].start_time == start_time


def _of_session(table: dict[int, procfs.Process], spawned: journal.Spawned) -> set[int]:
    leader = table.get(spawned.pid)
    if leader is not None and abs(leader.start_time - spawned.start_time) > _SLACK:
        return set()  # the pid was reused: all of the old session is gone
    return {pid for pid, seen in table.items() if seen.session == spawned.pid}
