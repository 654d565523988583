"""Makes the fences of a runner, and finds those that a dead runner left."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Iterator

from rota.launcher.base import Launcher
from rota.runner.contain.cgroup import ControlGroup
from rota.runner.contain.fence import Fence
from rota.runner.contain.hierarchies import (
    CORES,
    HOLD,
    KERNEL_TREE,
    MEMORY,
    CgroupTree,
    Hierarchies,
    parents,
    purposes_of,
)
from rota.runner.contain.process_trail import ProcessTrail
from rota.runner.contain.site_script import BY_SCRIPT, ScriptFence
from rota.runner.launch.launchers import Launchers
from rota.runner.log import say


def errand_name(job: int, attempt: int, token: int) -> str:
    """The name of a fence around one of several leases of an attempt."""
    return f"{job}.{attempt}.{token:x}"


class Fences:
    """Makes the fences of a runner."""

    def __init__(self, runner: str, tree: CgroupTree = KERNEL_TREE, *, launchers: Launchers | None = None) -> None:
        """`launchers`: run the script of the site; None: it is never used."""
        self._launchers = launchers
        self._prefix = f"rota-{runner}-"
        self._tree = tree
        self.hierarchies = Hierarchies(f"{self._prefix}probe", tree)
        self.script = ""  #: of the site, used instead of control groups
        self._logged: set[str] = set()

    def make(
        self,
        job: int,
        attempt: int,
        *,
        hold: bool = True,
        cores: Collection[int] = (),
        memory: int = 0,
        token: int | None = None,
        name: str = "",
    ) -> Fence:
        """A new, empty fence. Purposes that the host cannot serve are left out: see `holds`, `limited`.

        `token`: of its lease. It identifies its processes where no group holds them. `name`: of its groups, if its
        attempt may have other fences here.
        """
        trail = ProcessTrail(token)
        if self.script and hold and self._launchers is not None and not name:
            launcher = self._launchers.new
            made = ScriptFence(job, attempt, launcher=launcher, script=self.script, cores=cores, trail=trail)
            if made.run("make"):
                return made
            say(f"job {job} is fenced by control groups instead")
        fence = Fence(job, attempt, {}, trail, name=name)
        self.widen(fence, hold=hold, cores=cores, memory=memory)
        return fence

    def widen(self, fence: Fence, *, hold: bool = True, cores: Collection[int] = (), memory: int = 0) -> bool:
        """Add the purposes that a fence does not serve yet; False if none was added."""
        before = len(fence.by_purpose)
        if hold and HOLD not in fence.by_purpose:
            self._add(fence, HOLD)
        if cores and CORES not in fence.by_purpose:
            group = self._add(fence, CORES)
            if group is not None and not group.keep_to(cores):
                self._drop(fence, CORES, f"it does not accept cores {sorted(cores)}")
        if memory and MEMORY not in fence.by_purpose:
            group = self._add(fence, MEMORY)
            if group is not None and not group.limit_memory(memory):
                self._drop(fence, MEMORY, "it does not accept a memory limit")
        return len(fence.by_purpose) > before

    def _add(self, fence: Fence, purpose: str) -> ControlGroup | None:
        place = self.hierarchies.place(purpose)
        if place is None:
            self._tell(f"control groups cannot be used for {purpose} here")
            return None
        path = f"{place.parent}/{self._prefix}{fence.name}"
        group = next((group for group in fence.groups if group.path == path), None)
        if group is None:
            group = ControlGroup(path, place.version, self._tree)
            try:
                self._tree.make(path)
            except FileExistsError:
                pass  # left by the same attempt: its fence could not be removed
            except OSError as error:
                self._tell(f"no control group in {place.parent}: {error}")
                return None
        fence.by_purpose[purpose] = group
        return group

    def _drop(self, fence: Fence, purpose: str, why: str) -> None:
        group = fence.by_purpose.pop(purpose)
        self._tell(f"{os.path.dirname(group.path)}: {why}")
        if group not in fence.groups:
            group.remove()

    def _tell(self, what: str) -> None:
        if what not in self._logged:
            self._logged.add(what)
            say(what)


def recorded(record: str, job: int, attempt: int, launcher: Launcher) -> Fence | None:
    """The fence in a dead runner's journal, as far as it still exists and was made by Rota. `launcher`: runs the
    site's script, if that made it."""
    if record.startswith(BY_SCRIPT):
        return ScriptFence(job, attempt, launcher=launcher, script=record.removeprefix(BY_SCRIPT))
    return _of_paths(record.split("\n"), job, attempt)


def _of_paths(paths: Iterable[str], job: int, attempt: int) -> Fence | None:
    groups: dict[str, ControlGroup] = {}
    for path in paths:
        if os.path.basename(path).startswith("rota-") and os.path.isdir(path):
            group = ControlGroup(path, 2 if os.path.exists(f"{path}/cgroup.events") else 1)
            purposes = purposes_of(group)
            # A group that cannot freeze is kept as well, under its own name: it must be emptied and removed.
            groups.update(dict.fromkeys(purposes or [path], group))
    return Fence(job, attempt, groups) if groups else None


def of_runner(runner: str, tree: CgroupTree = KERNEL_TREE) -> dict[str, Fence]:
    """The fences of a runner in or beside this process's own groups, by name: `job.attempt`, or `errand_name`."""
    found: dict[str, list[str]] = {}
    for _, parent, name in _made(f"rota-{runner}-", tree):
        found.setdefault(name, []).append(f"{parent}/rota-{runner}-{name}")
    fences = {}
    for name, paths in found.items():
        job, _, attempt = name.partition(".")
        numbers = (int(job), int(attempt)) if job.isdigit() and attempt.isdigit() else (0, 0)
        if (fence := _of_paths(paths, *numbers)) is not None:
            fences[name] = fence
    return fences


def sweep(node: str, tree: CgroupTree = KERNEL_TREE, *, own: str = "") -> None:
    """Remove the empty groups of dead runners of this host, but not those of `own`, which may be named after a
    process whose place it has taken.

    A successor removes the groups of its own deployment when it settles them. This is for deployments that are
    never started again. A group that still holds a process stays.
    """
    for version, parent, name in _made(f"rota-{node}-", tree):
        pid = name.partition("-")[0]
        if own and f"{node}-{name}".startswith(f"{own}-"):
            continue
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            group = ControlGroup(f"{parent}/rota-{node}-{name}", version, tree)
            if not group.pids():
                group.remove()


def _made(prefix: str, tree: CgroupTree) -> Iterator[tuple[int, str, str]]:
    """Groups in or beside this process's own whose names begin like this: version, parent, rest of the name."""
    for version, parent in parents(tree):
        try:
            names = os.listdir(parent)
        except OSError:
            continue
        for name in names:
            if name.startswith(prefix):
                yield version, parent, name.removeprefix(prefix)


def found_here(fences: Fences) -> tuple[str, list[tuple[str, str]]]:
    """The kind of this host (version 2, version 1, hybrid, none), and a line for each purpose that says what
    control groups can do here, marked "good" or "note"."""
    places = fences.hierarchies.found()
    versions = {place.version for place in places.values()}
    kind = "hybrid" if len(versions) == 2 else f"version {versions.pop()}" if versions else "none"
    lines = []
    for purpose, done, missing in (
        (HOLD, "jobs are frozen and killed", "jobs can leave their session; they are found by their ancestors"),
        (CORES, "jobs are kept to their cores", "jobs are kept to their cores by affinity, which they can change"),
        (MEMORY, "memory can be limited", "memory cannot be limited (enforce_memory = cgroup)"),
    ):
        place = places.get(purpose)
        if place is None:
            lines.append(("note", missing))
        else:
            lines.append(("good", f"{done} in {place.parent} (version {place.version})"))
    return (kind if HOLD in places else "none"), lines
