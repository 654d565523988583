"""Control groups: a fence that no process of a job can leave by forking. Optional; the best there is.

Only groups made here are ever written to or removed. Making one and moving a process costs more than
a short job, so it is done only for jobs that are seen to last, unless the site wants it for all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from rota.runner.log import say

#: The file of a group that limits its memory, by version.
LIMIT_FILES = {1: "memory.limit_in_bytes", 2: "memory.max"}
_PATIENCE_S = 1.0


class Group:
    """One job's control group."""

    __slots__ = ("path", "version")

    def __init__(self, path: str, version: int) -> None:
        self.path = path
        self.version = version

    def add(self, pid: int) -> bool:
        """Move a process in; False if it is gone or must not be moved."""
        return _write(f"{self.path}/cgroup.procs", str(pid))

    def pids(self) -> set[int]:
        try:
            with open(f"{self.path}/cgroup.procs", "rb") as file:
                return {int(word) for word in file.read().split()}
        except (OSError, ValueError):
            return set()

    def kill(self, signal_all: Callable[[set[int]], None]) -> None:
        """End everything inside. `signal_all` is used where the kernel cannot do it itself, while
        nothing inside can run and fork."""
        if self.version == 2 and _write(f"{self.path}/cgroup.kill", "1"):
            return
        self._freeze(True)
        try:
            signal_all(self.pids())
        finally:
            self._freeze(False)

    def _freeze(self, on: bool) -> None:
        if self.version == 2:
            _write(f"{self.path}/cgroup.freeze", "1" if on else "0")
            return
        _write(f"{self.path}/freezer.state", "FROZEN" if on else "THAWED")
        if on:
            self._wait_frozen()

    def _wait_frozen(self) -> None:
        give_up = time.monotonic() + 0.1
        while time.monotonic() < give_up:
            if _read(f"{self.path}/freezer.state").strip() == "FROZEN":
                return

    def limit_memory(self, limit: int) -> bool:
        """Let it have this much memory and no swap; False where that cannot be."""
        if self.version == 1:
            done = _write(f"{self.path}/memory.limit_in_bytes", str(limit))
            _write(f"{self.path}/memory.memsw.limit_in_bytes", str(limit))
            return done
        _write(f"{self.path}/memory.swap.max", "0")
        _write(f"{self.path}/memory.oom.group", "1")  # a job of which one process is killed is of no use
        return _write(f"{self.path}/memory.max", str(limit))

    def memory_peak(self) -> int:
        """Bytes, cached files included, or 0 where the kernel does not say."""
        name = "memory.peak" if self.version == 2 else "memory.max_usage_in_bytes"
        text = _read(f"{self.path}/{name}").strip()
        return int(text) if text.isdigit() else 0

    def oom_kills(self) -> int | None:
        """How many processes inside the kernel killed for lack of memory, or None where it does not say."""
        name = "memory.events" if self.version == 2 else "memory.oom_control"
        for line in _read(f"{self.path}/{name}").splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.isdigit():
                return int(value)
        return None

    def remove_patiently(self) -> bool:
        """Remove it when its last process, which is dead, has left the scheduler too: very soon."""
        give_up = time.monotonic() + _PATIENCE_S
        while not self.remove():
            if time.monotonic() > give_up:
                say(f"{self.path} cannot be removed")
                return False
            time.sleep(0.005)
        return True

    def remove(self) -> bool:
        """False while something is still inside."""
        try:
            os.rmdir(self.path)
        except FileNotFoundError:
            return True
        except OSError:
            return False
        return True


class Cgroups:
    """Where groups can be made on this host, if anywhere."""

    def __init__(self, runner: str) -> None:
        self._prefix = f"rota-{runner}-"
        self._parent = ""
        self.version = 0  #: 2, 1 (freezer), or 0: none
        self._probed = False
        self._limiting: tuple[int, str] | None = None  #: where memory can be limited; version 0: nowhere

    def make(self, job: int, attempt: int) -> Group | None:
        """A new, empty group, or None."""
        if not self._probed:
            self._probe()
        if not self.version:
            return None
        path = f"{self._parent}/{self._prefix}{job}.{attempt}"
        try:
            os.mkdir(path, 0o755)
        except OSError as error:
            say(f"no control group for job {job}: {error}")
            self.version = 0
            return None
        return Group(path, self.version)

    def make_limited(self, job: int, attempt: int, limit: int, *, instead: Group | None) -> Group | None:
        """A group that lets a job have so much memory, or None: `instead`, where that one can do it."""
        if self._limiting is None:
            self._limiting = self._place(memory_candidates(), LIMIT_FILES) or (0, "")
            if not self._limiting[0]:
                say("memory cannot be limited by control groups here")
        version, parent = self._limiting
        if not version:
            return None
        if instead is not None and os.path.dirname(instead.path) == parent:
            return instead if instead.limit_memory(limit) else None
        group = Group(f"{parent}/{self._prefix}{job}.{attempt}", version)
        try:
            os.mkdir(group.path, 0o755)
        except OSError as error:
            say(f"no memory limit for job {job}: {error}")
            return None
        if not group.limit_memory(limit):
            say(f"no memory limit for job {job}: {group.path} takes none")
            group.remove()
            return None
        return group

    def _probe(self) -> None:
        """Find a place by trying: permissions and delegation are not visible otherwise."""
        self._probed = True
        found = self._place(candidates(), {1: "cgroup.procs", 2: "cgroup.procs"})
        if found is not None:
            self.version, self._parent = found

    def _place(self, places: list[tuple[int, str]], needed: dict[int, str]) -> tuple[int, str] | None:
        """The first place where groups can be made, filled, and have this file to write to."""
        for version, parent in places:
            path = f"{parent}/{self._prefix}probe"
            try:
                os.mkdir(path, 0o755)
            except OSError:
                continue
            usable = all(os.access(f"{path}/{name}", os.W_OK) for name in ("cgroup.procs", needed[version]))
            os.rmdir(path)
            if usable:
                return version, parent
        return None


def memory_candidates() -> list[tuple[int, str]]:
    """(version, directory) in which a group's memory may be limited, best first.

    Version 2 gives groups in which there are processes no controllers to pass on: so beside the own
    group is a better place than below it.
    """
    below = candidates("memory")
    beside = [(2, os.path.dirname(path)) for version, path in below if version == 2]
    usable = [place for place in beside if os.access(f"{place[1]}/cgroup.procs", os.W_OK)]
    return sorted(below + usable, reverse=True)


def candidates(controller: str = "freezer") -> list[tuple[int, str]]:
    """(version, directory of this process's own group), best first; in version 1 of this controller."""
    own: dict[str, str] = {}
    for line in _read("/proc/self/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        own[names] = path.rstrip("/")
    found = []
    for line in _read("/proc/self/mounts").splitlines():
        fields = line.split()
        if len(fields) < 4:
            continue
        mount = fields[1].encode().decode("unicode_escape")
        if fields[2] == "cgroup2" and "" in own:
            found.append((2, mount + own[""]))
        elif fields[2] == "cgroup" and controller in fields[3].split(","):
            for names, path in own.items():
                if controller in names.split(","):
                    found.append((1, mount + path))
    return sorted(found, reverse=True)


def of_runner(runner: str) -> dict[str, list[Group]]:
    """What a runner made in or beside this process's own groups, by `job.attempt`."""
    found: dict[str, list[Group]] = {}
    prefix = f"rota-{runner}-"
    for version, parent in dict.fromkeys(candidates() + memory_candidates()):
        try:
            names = os.listdir(parent)
        except OSError:
            continue
        for name in names:
            if name.startswith(prefix):
                found.setdefault(name.removeprefix(prefix), []).append(Group(f"{parent}/{name}", version))
    return found


def existing(path: str) -> Group | None:
    """A group that a dead runner recorded, if it is still there and is one of ours."""
    if not os.path.basename(path).startswith("rota-") or not os.path.isdir(path):
        return None
    return Group(path, 2 if os.path.exists(f"{path}/cgroup.freeze") else 1)


def _write(path: str, text: str) -> bool:
    try:
        fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        os.write(fd, text.encode())
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def _read(path: str) -> str:
    try:
        with open(path, encoding="utf-8", errors="surrogateescape") as file:
            return file.read()
    except OSError:
        return ""
