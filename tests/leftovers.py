"""Fails a run of the suite that leaves a process, a control group, a network namespace or a socket behind.

What belongs to this run is known by two marks that everything inherits which tests start: a variable of the
environment and, for those that forget theirs, an odd limit on message queues, which nobody uses. What was there
before, or belongs to others, is none of its business. What is found is named, with the test that began it, and
removed.
"""

from __future__ import annotations

import contextlib
import glob
import os
import random
import re
import resource
import signal
import sys
import time
import uuid
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

#: In the environment of everything that a run starts; deployments of tests pass nothing on that begins with ROTA_.
VARIABLE = "TESTS_OF_ROTA"
#: Seconds that the last commands and killed processes may take to be gone.
PATIENCE = "TESTS_OF_ROTA_PATIENCE"
_LOOK_EVERY_S = 0.5
CONTROL_GROUPS = Path("/sys/fs/cgroup")
#: A runner's groups and a cluster's: both name the process that they are of.
_GROUP = re.compile(r"rota-(?:test|.+)-(\d+)-[0-9a-f]+-.*")
_KEY = pytest.StashKey["Leftovers"]()


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # workers inherit the mark
        config.stash[_KEY] = Leftovers(uuid.uuid4().hex)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    for seen in _looking:
        seen.look()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_sessionfinish(session: pytest.Session) -> Iterator[None]:
    """After everybody else: workers have ended then."""
    try:
        return (yield)
    finally:
        seen = session.config.stash.get(_KEY, None)
        if seen is not None:
            _looking.clear()
            _judge(session, seen)


def _judge(session: pytest.Session, seen: Leftovers) -> None:
    if "tests.deployment" in sys.modules:
        sys.modules["tests.deployment"].cool_down()
    left = seen.wait_for_nothing()
    if not left:
        return
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    lines = ["", "this run left behind:", *(f"  {line}" for line in left)]
    if reporter is not None:
        reporter.write("\n".join(lines) + "\n", red=True)
    seen.remove()
    if session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


class Leftovers:
    """What there was before a run, and what of the rest is its own."""

    def __init__(self, mark: str) -> None:
        os.environ[VARIABLE] = mark
        self._mark = f"{VARIABLE}={mark}".encode()
        self._limit = _set_odd_limit()
        self._before = {*groups(), *_namespaces(), *_sockets()}
        self._owner: dict[str, str] = {}  #: control group → "ours", "theirs", "" (its process was gone already)
        self._looked = 0.0
        self._processes: dict[int, str] = {}
        self._paths: list[str] = []
        _looking[:] = [self]

    def look(self) -> None:
        """Note whose new control groups are, while those live that made them."""
        if time.monotonic() - self._looked < _LOOK_EVERY_S:
            return
        self._looked = time.monotonic()
        for path in groups():
            if path not in self._before and path not in self._owner:
                found = _GROUP.fullmatch(os.path.basename(path))
                maker = int(found[1]) if found is not None else 0
                environ = _environ(maker)
                self._owner[path] = "ours" if self._made(maker, environ) else "theirs" if environ else ""

    def _made(self, pid: int, environ: list[bytes]) -> bool:
        return self._mark in environ or (self._limit != "" and _limit(pid) == self._limit)

    def wait_for_nothing(self) -> list[str]:
        """What is left of this run, described, when it has had time to go."""
        deadline = time.monotonic() + float(os.environ.get(PATIENCE, "15"))
        while (left := self._left()) and time.monotonic() < deadline:
            time.sleep(0.1)
        return left

    def _left(self) -> list[str]:
        self._looked = 0.0
        self.look()
        alone = True
        self._processes = {}
        for pid in _living():
            environ = _environ(pid)
            if self._made(pid, environ):
                self._processes[pid] = _described(pid, environ)
            elif _is_rota(pid) or any(entry.startswith(f"{VARIABLE}=".encode()) for entry in environ):
                alone = False
        self._paths = [path for path in groups() if path not in self._before and self._is_ours(path, alone=alone)]
        if alone:
            # These say nothing of who made them.
            self._paths += [path for path in (*_namespaces(), *_sockets()) if path not in self._before]
        return [*self._processes.values(), *map(_named, self._paths)]

    def _is_ours(self, group: str, *, alone: bool) -> bool:
        inside = {int(pid) for pid in _lines(f"{group}/cgroup.procs")}
        if inside:
            return bool(inside & self._processes.keys())
        owner = self._owner.get(group)
        return owner == "ours" or (owner == "" and alone)

    def remove(self) -> None:
        """End and remove what was found: a run that failed does not burden the machine."""
        _end(self._processes)
        for path in self._paths:
            with contextlib.suppress(OSError):
                if path.startswith(str(CONTROL_GROUPS)):
                    os.rmdir(path)
                else:
                    os.unlink(path)


def end_all_of(directory: str) -> None:
    """End the processes that work in this home or were told of it, and remove the groups of its runners."""
    while pids := [pid for pid in _living() if _mentions(pid, _environ(pid), directory)]:
        _end(pids)
    runners = tuple(f"rota-{name}-" for name in os.listdir(f"{directory}/runners"))
    for path in groups():
        if os.path.basename(path).startswith(runners):
            with contextlib.suppress(OSError):
                os.rmdir(path)


def _end(pids: Collection[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + float(os.environ.get(PATIENCE, "15"))
    while any(map(_is_living, pids)) and time.monotonic() < deadline:
        time.sleep(0.02)


_looking: list[Leftovers] = []  #: the one of this process, if it is not a worker


# ------------------------------------------------------------------ what there is


def _living() -> list[int]:
    """All processes but this one and those above it."""
    above, pid = {os.getpid()}, os.getppid()
    while pid > 1:
        above.add(pid)
        pid = int((_stat(pid) or ["", "0"])[1])
    pids = (int(name) for name in os.listdir("/proc") if name.isdigit())
    return [pid for pid in pids if pid not in above and _is_living(pid)]


def _is_living(pid: int) -> bool:
    return (_stat(pid) or "X")[0] not in "ZX"


def _stat(pid: int) -> list[str]:
    return _read(f"/proc/{pid}/stat").rpartition(b")")[2].decode().split()


def _environ(pid: int) -> list[bytes]:
    return [entry for entry in _read(f"/proc/{pid}/environ").split(b"\0") if entry]


def _command(pid: int) -> bytes:
    return _read(f"/proc/{pid}/cmdline").replace(b"\0", b" ").strip()


def _set_odd_limit() -> str:
    """Its value, which no other run has; "" if it may not be set."""
    _, hard = resource.getrlimit(resource.RLIMIT_MSGQUEUE)
    most = 800_000 if hard == resource.RLIM_INFINITY else hard
    odd = random.SystemRandom().randint(most // 4, most // 2)
    if odd == 0:
        return ""
    resource.setrlimit(resource.RLIMIT_MSGQUEUE, (odd, hard))
    return str(odd)


def _limit(pid: int) -> str:
    """Of a process, as `_set_odd_limit` set it."""
    name = "Max msgqueue size"
    found = (line.removeprefix(name).split()[0] for line in _lines(f"/proc/{pid}/limits") if line.startswith(name))
    return next(found, "")


def _mentions(pid: int, environ: list[bytes], directory: str) -> bool:
    """Does it work in this directory, or was it told of it?"""
    try:
        where = os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        where = ""
    inside = f"{directory}/".encode()
    return any(inside in words for words in (os.fsencode(f"{where}/"), _command(pid), *environ))


def _is_rota(pid: int) -> bool:
    command = _command(pid)
    return b"rota.manager" in command or b"rota.runner" in command


def _described(pid: int, environ: list[bytes]) -> str:
    began = next((entry for entry in environ if entry.startswith(b"PYTEST_CURRENT_TEST=")), b"")
    test = began.partition(b"=")[2].decode(errors="replace") or "an unknown test"
    command = _command(pid).decode(errors="replace")[:200]
    apart = _other_network(pid)
    return f"process {pid} of {test}: {command!r}{apart}"


def _other_network(pid: int) -> str:
    try:
        here, there = (os.readlink(f"/proc/{each}/ns/net") for each in ("self", pid))
    except OSError:
        return ""
    return f", in the network namespace {there}" if here != there else ""


def groups() -> list[str]:
    """Control groups of Rota in every hierarchy, from the root down to where this process is."""
    places = {""}
    for line in _lines("/proc/self/cgroup"):
        path = line.split(":", 2)[2]
        while path not in ("", "/"):
            places.add(path.strip("/"))
            path = os.path.dirname(path)
    roots = [str(CONTROL_GROUPS), *glob.glob(f"{CONTROL_GROUPS}/*/")]
    found = {os.path.normpath(os.path.join(root, place)) for root in roots for place in places}
    return [path for place in found for path in glob.glob(f"{glob.escape(place)}/rota-*") if os.path.isdir(path)]


def _namespaces() -> list[str]:
    """Network namespaces that live on without processes, because they have a name."""
    return glob.glob("/run/netns/*")


def _sockets() -> list[str]:
    """Sockets of managers whose homes have too long a path for one."""
    places = {os.environ.get("XDG_RUNTIME_DIR") or "/tmp", "/tmp"}
    return [path for place in places for path in glob.glob(f"{place}/rota-*/manager.sock")]


def _named(path: str) -> str:
    if path.startswith(str(CONTROL_GROUPS)):
        return f"control group {path}"
    return f"network namespace {path}" if path.startswith("/run/netns/") else f"socket {path}"


def _lines(path: str) -> list[str]:
    return _read(path).decode(errors="replace").splitlines()


def _read(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError:
        return b""
