"""Several hosts on one machine: each has its own network, processes, name, boot id and control groups.

They share the file system, as the nodes of a cluster do. A host is killed with everything on it, and boots again
with another boot id.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cluster import mark as marks
from tests.cluster.network import Network, address
from tests.deployment import is_alive, wait_until

BOOT = Path(__file__).with_name("boot.py")
#: Enters control groups, given up to `--`, and then becomes what follows.
_ENTER = 'while [ "$1" != -- ]; do echo 0 > "$1/cgroup.procs"; shift; done; shift; exec "$@"'


class Host:
    """One host; `number` from 1, its place on the network."""

    def __init__(self, directory: Path, *, mark: str, number: int, network: Network) -> None:
        self.name = directory.name
        self.number = number
        self.address = address(number)
        self.directory = directory
        self._mark = mark
        self._network = network
        self._groups: list[Path] = []
        self._init: subprocess.Popen[bytes] | None = None
        self.pid = 0  #: of its first process
        directory.mkdir(parents=True)

    @property
    def is_up(self) -> bool:
        return self._init is not None

    def boot(self) -> None:
        assert self._init is None
        self._groups = marks.make_groups(self._mark, self.name)
        self._init, self.pid = begin(
            ["--net", "--pid", "--mount", "--uts", "--mount-proc", "--propagation", "private"],
            [sys.executable, "-I", "-S", str(BOOT), str(self.directory)],
            mark=self._mark,
            log=self.directory / "boot.log",
        )
        for group in self._groups:
            (group / "cgroup.procs").write_text(str(self.pid))
        self._network.plug(self.number, self.pid)

    def crash(self) -> None:
        """The power is off: every process on it is dead afterwards."""
        if self._init is not None:
            end(self._init, self.pid)
            self._init = None
            self._network.unplug(self.number)

    def reboot(self) -> None:
        self.crash()
        self.boot()

    @property
    def boot_id(self) -> str:
        return (self.directory / "boot_id").read_text().strip()

    # -------------------------------------------------------------- what runs on it

    def popen(self, *argv: str, **options: Any) -> Process:
        """Start something on this host."""
        assert self._init is not None, f"{self.name} is down"
        options = {"stdin": subprocess.DEVNULL, "start_new_session": True, **options}
        options["env"] = {**(options.get("env") or os.environ), marks.VARIABLE: self._mark}
        directory = options.pop("cwd", self.directory)
        enter = ["nsenter", "--target", str(self.pid), "--net", "--pid", "--mount", "--uts", f"--wd={directory}"]
        groups = [str(path) for path in self._groups]
        return Process(["sh", "-c", _ENTER, "enter", *groups, "--", *enter, *argv], **options)

    def run(self, *argv: str, **options: Any) -> str:
        """Run something on this host; what it printed."""
        process = self.popen(*argv, stdout=subprocess.PIPE, **options)
        out, _ = process.communicate(timeout=60)
        assert process.returncode == 0, f"{argv} on {self.name} ended with {process.returncode}"
        return str(out.decode())

    def pids(self) -> list[int]:
        """Its living processes, the first one not counted, as this machine numbers them."""
        wanted = os.stat(f"/proc/{self.pid}/ns/pid").st_ino
        found = []
        for name in os.listdir("/proc"):
            if name.isdigit() and int(name) != self.pid and is_alive(int(name)):
                with contextlib.suppress(OSError):
                    if os.stat(f"/proc/{name}/ns/pid").st_ino == wanted:
                        found.append(int(name))
        return found

    # -------------------------------------------------------------- its cable

    def cut(self) -> None:
        self._network.cut(self.number)

    def lose_what_it_hears(self) -> None:
        self._network.lose_what_it_hears(self.number)

    def lose_what_it_says(self) -> None:
        self._network.lose_what_it_says(self.number, self.pid)

    def heal(self) -> None:
        self._network.heal(self.number, self.pid)

    @contextlib.contextmanager
    def away(self, how: str = "cut") -> Any:
        """Cut off meanwhile: `cut`, `lose_what_it_hears` or `lose_what_it_says`."""
        getattr(self, how)()
        try:
            yield
        finally:
            if self.is_up:
                self.heal()


class Process(subprocess.Popen[bytes]):
    """Something on a host. Signals go to the process itself, not to the one that entered the host for it."""

    def there(self) -> int:
        """Its pid, as this machine numbers it; 0 when it is gone."""
        if self.poll() is not None:
            return 0
        return next(iter(children(self.pid)), 0)

    def signal(self, number: int) -> None:
        if pid := self.there():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, number)
        if number == signal.SIGCONT:  # the one that waits for it stands still as well
            self.send_signal(number)

    def kill_and_wait(self) -> None:
        if not self.there():
            wait_until(lambda: self.there() or self.poll() is not None, "it is there")
        self.signal(signal.SIGKILL)
        self.send_signal(signal.SIGCONT)
        self.wait(timeout=60)


def begin(namespaces: list[str], argv: list[str], *, mark: str, log: Path) -> tuple[subprocess.Popen[bytes], int]:
    """Start a first process in new namespaces; it and its pid, once it is up. It dies with its parent."""
    parent = ["setpriv", "--pdeathsig", "KILL", "unshare", *namespaces, "--fork", "--kill-child", *argv]
    env = {**os.environ, marks.VARIABLE: mark}
    with log.open("ab") as errors:
        process = subprocess.Popen(parent, env=env, stdout=subprocess.PIPE, stderr=errors, start_new_session=True)
    assert process.stdout is not None
    said = process.stdout.readline()
    process.stdout.close()
    assert said == b"up\n", f"no namespaces, which takes root: {log.read_text()}"
    (pid,) = children(process.pid)
    return process, pid


def end(process: subprocess.Popen[bytes], pid: int) -> None:
    """Kill a first process, and wait until nothing of it is left."""
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGKILL)
    process.wait(timeout=60)


def children(pid: int) -> list[int]:
    """Of this process, those alive."""
    found = []
    for name in os.listdir("/proc"):
        with contextlib.suppress(OSError, IndexError):
            fields = Path(f"/proc/{name}/stat").read_bytes().rpartition(b")")[2].split() if name.isdigit() else []
            if fields[1:2] == [str(pid).encode()] and fields[0] not in (b"Z", b"X"):
                found.append(int(name))
    return found
