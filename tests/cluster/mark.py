"""Whose a cluster is: a mark on its processes and control groups, by which those of a dead test run are found.

Networks need none: they are gone with the last process that lives in them.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import signal
import time
from pathlib import Path

#: In the environment of every process of a cluster.
VARIABLE = "CLUSTER_OF"
_PREFIX = "rota-test-"
_CONTROLLERS = Path("/sys/fs/cgroup")
_numbers = itertools.count()


def new_mark() -> str:
    """A name of this process, in its pid namespace, that no other process has or will have; and a number."""
    return f"{os.getpid()}-{_start_time(os.getpid())}-{_namespace()}-{next(_numbers)}"


def sweep() -> None:
    """End and remove what test runs that are dead left behind."""
    remove({mark for mark in known() if _is_left(mark)})


def remove(marks: set[str]) -> None:
    """Nothing that carries one of these marks is left afterwards."""
    for _ in range(100):
        pids = [pid for pid, mark in _marked().items() if mark in marks]
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        groups = [path for path in _groups() if path.name.removeprefix(_PREFIX) in marks]
        for path in groups:
            _remove_group(path)
        if not pids and not any(path.exists() for path in groups):
            return
        time.sleep(0.02)
    raise AssertionError(f"{pids} or {groups} cannot be removed")


def make_groups(mark: str, host: str) -> list[Path]:
    """A control group of each hierarchy for one host to live in, below those of this process; [] if it may not."""
    found = []
    for hierarchy, own in _own_groups().items():
        path = own / f"{_PREFIX}{mark}" / host
        try:
            path.mkdir(parents=True, exist_ok=True)
            if "cpuset" in hierarchy.split(","):  # one without cores and memory takes no process
                for each in (path.parent, path):
                    for name in ("cpuset.cpus", "cpuset.mems"):
                        (each / name).write_text((each.parent / name).read_text())
        except OSError:
            continue
        found.append(path)
    return found


def _own_groups() -> dict[str, Path]:
    """Where this process is in each hierarchy: names of the controllers → directory. "" is version 2."""
    found = {}
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, names, path = line.split(":", 2)
        if names in ("", "cpuset", "memory", "freezer"):
            for mount in (_CONTROLLERS / names, *([_CONTROLLERS / "unified"] if not names else [])):
                if (mount / path.lstrip("/") / "cgroup.procs").exists():
                    found[names] = mount / path.lstrip("/")
    return found


def _groups() -> list[Path]:
    """Of all clusters."""
    return [path for own in _own_groups().values() for path in own.glob(f"{_PREFIX}*")]


def _remove_group(path: Path) -> None:
    for directory, _, _ in os.walk(path, topdown=False):
        with contextlib.suppress(OSError):
            os.rmdir(directory)


def known() -> set[str]:
    """The marks of all that there is."""
    return {*_marked().values(), *(path.name.removeprefix(_PREFIX) for path in _groups())}


def _marked() -> dict[int, str]:
    """Living processes of any cluster, with their marks."""
    found = {}
    for name in os.listdir("/proc"):
        if not name.isdigit() or int(name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            for entry in Path(f"/proc/{name}/environ").read_bytes().split(b"\0"):
                if entry.startswith(f"{VARIABLE}=".encode()):
                    found[int(name)] = entry.partition(b"=")[2].decode(errors="replace")
    return found


def _is_left(mark: str) -> bool:
    """Is it of a process of this namespace that is no more?"""
    words = mark.split("-")
    if len(words) != 4 or words[2] != _namespace():
        return False
    return _start_time(int(words[0])) != words[1]


def _namespace() -> str:
    return str(os.stat("/proc/self/ns/pid").st_ino)


def _start_time(pid: int) -> str:
    """In ticks since the boot; "" if there is no such process."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[19].decode()
    except OSError:
        return ""
