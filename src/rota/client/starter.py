"""Starts a manager from a client: spawn it, continue working, then wait until it is ready.

The manager runs in its own session with its output in `logs/manager.out`, and writes one JSON line to a pipe:
`{"ok": true, …}` or `{"error": {"code", "message", "hint"}}`. When two clients start one at once, the second
manager finds the lock taken, and its client uses the first.
"""

from __future__ import annotations

import os
import select
import sys
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from rota.client import endpoint
from rota.client.submit_environment import JOB_VARIABLES
from rota.errors import EnvironmentFault, NoManager, RotaError, from_code
from rota.home import Home

#: Recovering a large deployment takes time; a longer silence is a fault.
READY_TIMEOUT: Final = 120.0
#: How often to retry when the manager that held the lock has ended meanwhile.
_MORE_TRIES: Final = 5


class Starting:
    """A spawned manager that may not be ready yet. `spawn` starts it and returns its pid and ready pipe."""

    def __init__(self, home: Home, spawn: Callable[[], tuple[int, int]]) -> None:
        self.home = home
        self._spawn = spawn
        self.pid, self._pipe = spawn()

    def wait(self, timeout: float = READY_TIMEOUT) -> dict[str, Any]:
        """Wait until it, or another manager of the deployment, is ready. Raises the error of a failed start."""
        limit = time.monotonic() + timeout
        for _ in range(_MORE_TRIES):
            try:
                return self._wait(limit)
            except RotaError as error:
                # The holder of the lock may have been about to end.
                if error.code != "locked" or time.monotonic() >= limit or holder_lives(self.home):
                    raise
            self.pid, self._pipe = self._spawn()
        return self._wait(limit)

    def _wait(self, limit: float) -> dict[str, Any]:
        try:
            line = self._line(limit)
        finally:
            os.close(self._pipe)
        if line:
            said = msgspec.json.decode(line, type=dict[str, Any])
            if "error" not in said:
                return said
            error = _as_error(said["error"])
        else:
            error = self._silent()
        self._reap()
        if self._other_is_there(patient=error.code == "locked"):
            return {"ok": True, "already": True}
        raise error

    def _line(self, limit: float) -> bytes:
        got = b""
        while b"\n" not in got:
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self._pipe], [], [], left)[0]:
                raise NoManager(
                    f"the manager (pid {self.pid}) is not ready yet",
                    hint=f"see {self.home.logs / 'manager.out'}",
                )
            data = os.read(self._pipe, 65536)
            if not data:
                break
            got += data
        return got.split(b"\n")[0] if b"\n" in got else b""

    def _silent(self) -> RotaError:
        path = self.home.logs / "manager.out"
        try:
            last = path.read_text("utf-8", "replace").strip().splitlines()[-1:]
        except OSError:
            last = []
        what = f": {last[0][:300]}" if last else ""
        return EnvironmentFault(f"the manager ended while it started{what}", hint=f"see {path}")

    def _reap(self) -> None:
        try:
            os.waitpid(self.pid, os.WNOHANG)
        except ChildProcessError:
            pass

    def _other_is_there(self, *, patient: bool) -> bool:
        """Is there another manager? It may still be recovering and have no socket yet."""
        from rota.client.blocking.connection import Connection

        limit = time.monotonic() + (READY_TIMEOUT if patient else 0)
        while True:
            try:
                Connection(lambda: endpoint.find(self.home, environ={}), timeout=10).close()
            except NoManager:
                if time.monotonic() >= limit or not holder_lives(self.home):
                    return False
                time.sleep(0.05)
            else:
                return True


def start_manager(home: Home, *, idle_stop: float | None = None, arguments: tuple[str, ...] = ()) -> Starting:
    """Spawn a manager for this deployment and return at once; `wait` on the result."""
    return Starting(home, lambda: _spawn(home, idle_stop, arguments))


def wake_manager(home: Home) -> bool:
    """Start the manager again if the last one stopped because it was idle, and wait until it is ready. It stops
    when idle as the last one did. False, and nothing is done, after any other end."""
    if not (home.idle_stopped.is_file() and home.database.is_file()):
        return False
    from rota.config import load

    start_manager(home, idle_stop=load(home).settings.idle_stop).wait()
    return True


def ensure_manager(home: Home) -> None:
    """Start a manager where there is none, as `rota add` does, and wait until it is ready."""
    if not wake_manager(home):
        start_manager(home).wait()


def _spawn(home: Home, idle_stop: float | None, arguments: tuple[str, ...]) -> tuple[int, int]:
    home.create()
    ready, report = os.pipe()
    command = [sys.executable, "-P", "-m", "rota.manager", "--home", str(home), "--ready-fd", str(report)]
    if idle_stop is not None:
        command += ["--idle-stop", f"{idle_stop:.6f}"]
    command += arguments
    log = os.path.join(home.logs, "manager.out")
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW
    try:
        os.set_inheritable(report, True)
        pid = os.posix_spawn(
            sys.executable,
            command,
            environment(home),
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, "/dev/null", os.O_RDONLY, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, flags, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
        )
    except OSError as error:
        os.close(ready)
        raise EnvironmentFault(
            f"the manager cannot be started: {error.strerror}", hint="see 'rota doctor'"
        ) from None
    finally:
        os.close(report)
    return pid, ready


def environment(home: Home) -> dict[bytes, bytes]:
    """The environment of a manager: ours, without the variables of a job we may run in."""
    kept = {name: value for name, value in os.environb.items() if name not in JOB_VARIABLES}
    kept[b"ROTA_HOME"] = os.fsencode(home.path)
    return kept


def _as_error(said: Any) -> RotaError:
    if not isinstance(said, dict):
        return EnvironmentFault(f"the manager did not start: {said}")
    text = {name: str(said.get(name, "")) for name in ("code", "message", "hint")}
    return from_code(text["code"], text["message"], hint=text["hint"])


def holder_lives(home: Home) -> bool:
    """Is the process named in the lock file alive? Trying the lock could make a starting manager fail."""
    try:
        pid = int(home.lock.read_text("ascii"))
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            state = file.read().rpartition(")")[2].split()[:1]
    except (OSError, ValueError):
        return False
    return state not in ([], ["Z"], ["X"])  # it may be a zombie
