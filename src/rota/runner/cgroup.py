"""Control groups: a fence that no process of a job can leave by forking. Optional; the best there is.

Only groups made here are ever written to or removed. Making one and moving a process costs more than
a short job, so it is done only for jobs that are seen to last, unless the site wants it for all.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

from rota.runner.log import say

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

    def memory_peak(self) -> int:
        """Bytes, or 0 where the kernel does not say."""
        text = _read(f"{self.path}/memory.peak").strip()
        return int(text) if text.isdigit() else 0

    def oom_kills(self) -> int:
        for line in _read(f"{self.path}/memory.events").splitlines():
            name, _, value = line.partition(" ")
            if name == "oom_kill" and value.isdigit():
                return int(value)
        return 0

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

    def _probe(self) -> None:
        """Find a place by trying: permissions and delegation are not visible otherwise."""
        self._probed = True
        for version, parent in candidates():
            path = f"{parent}/{self._prefix}probe"
            try:
                os.mkdir(path, 0o755)
            except OSError:
                continue
            usable = os.access(f"{path}/cgroup.procs", os.W_OK)
            os.rmdir(path)
            if usable:
                self.version, self._parent = version, parent
                return


def candidates() -> list[tuple[int, str]]:
    """(version, directory of this process's own group), best first."""
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
        elif fields[2] == "cgroup" and "freezer" in fields[3].split(","):
            for names, path in own.items():
                if "freezer" in names.split(","):
                    found.append((1, mount + path))
    return sorted(found, reverse=True)


def of_runner(runner: str) -> dict[str, Group]:
    """What a runner made beside this process's own group, by `job.attempt`."""
    found = {}
    prefix = f"rota-{runner}-"
    for version, parent in candidates():
        try:
            names = os.listdir(parent)
        except OSError:
            continue
        for name in names:
            if name.startswith(prefix):
                found[name.removeprefix(prefix)] = Group(f"{parent}/{name}", version)
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
