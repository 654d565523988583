"""`Home`: the directory of a deployment and the paths in it."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from rota.errors import BadInput, EnvironmentFault
from rota.unix import MAX_SOCKET_PATH

#: Device and inode of a directory: they identify it under any name.
Mark = tuple[int, int]


class ManagerFile(Struct, omit_defaults=True):
    """`manager.json`: facts about the manager of this deployment. Written by the manager.

    It holds no path, because in a copy of the home a path would lead to the original.
    """

    pid: int = 0
    socket: str = ""  #: written by 0.1.0 before homes had an identity; see `Home.former_socket`
    address: str | None = None  #: HOST:PORT of the TLS listener
    version: str = ""
    generation: int = 0
    started_at: str = ""
    boot: str = ""  #: boot id of the machine
    starts_anew: bool = False  #: this process is about to be a manager again (`manager.loop.reexecution`)


def node_home(name: str) -> Path:
    """The default directory for the files of a node's agent."""
    import socket

    leaf = (name or socket.gethostname() or "localhost").replace("/", "_")
    if os.geteuid() == 0:
        return Path("/var/lib/rota/nodes") / leaf
    return Home.find(environ={k: v for k, v in os.environ.items() if k != "ROTA_HOME"}).path / "nodes" / leaf


class Home:
    """The directory of one deployment and the paths in it. Only `create` creates anything."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(os.path.abspath(path))

    def __str__(self) -> str:
        return str(self.path)

    def __repr__(self) -> str:
        return f"Home({str(self.path)!r})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Home) and other.path == self.path

    def __hash__(self) -> int:
        return hash(self.path)

    @classmethod
    def find(cls, given: str | None = None, environ: Mapping[str, str] | None = None) -> Home:
        """The home to use: `given`, else `$ROTA_HOME`, else the default in the user's state directory."""
        environ = os.environ if environ is None else environ
        if explicit := given or environ.get("ROTA_HOME"):
            if "\0" in explicit:
                raise BadInput("the deployment's directory contains a NUL byte", hint="correct --home")
            return cls(os.path.expanduser(explicit))
        state = environ.get("XDG_STATE_HOME", "")
        if not os.path.isabs(state):
            user = environ.get("HOME") or os.path.expanduser("~")
            if not os.path.isabs(user):
                raise EnvironmentFault("there is no home directory", hint="set ROTA_HOME")
            state = os.path.join(user, ".local", "state")
        return cls(os.path.join(state, "rota"))

    @property
    def database(self) -> Path:
        return self.path / "rota.db"

    @property
    def config(self) -> Path:
        return self.path / "rota.toml"

    @property
    def manager_file(self) -> Path:
        return self.path / "manager.json"

    @property
    def idle_stopped(self) -> Path:
        """An empty file that says: the last manager stopped because it was idle."""
        return self.path / "idle-stopped"

    @property
    def lock(self) -> Path:
        return self.path / "manager.lock"

    @property
    def tls(self) -> Path:
        return self.path / "tls"

    @property
    def ca(self) -> Path:
        return self.tls / "ca.pem"

    @property
    def tokens(self) -> Path:
        return self.path / "tokens"

    @property
    def tickets(self) -> Path:
        return self.path / "tickets"

    @property
    def logs(self) -> Path:
        return self.path / "logs"

    @property
    def output(self) -> Path:
        return self.path / "output"

    @property
    def runners(self) -> Path:
        return self.path / "runners"

    @property
    def socket(self) -> Path:
        """The manager's socket. Its path may be too long for the kernel: see `rota.unix`."""
        return self.path / "manager.sock"

    @property
    def former_socket(self) -> Path | None:
        """Where managers of earlier versions listened if the path of the home was too long for a socket. Their
        runners and clients still look there. None for a home with a short path."""
        if len(os.fsencode(self.socket)) <= MAX_SOCKET_PATH:
            return None
        name = f"rota-{os.getuid()}-{self._digest()}"
        for base in (os.environ.get("XDG_RUNTIME_DIR", ""), "/tmp"):
            far = os.path.join(base, name, "manager.sock")
            if os.path.isabs(base) and os.path.isdir(base) and len(os.fsencode(far)) <= MAX_SOCKET_PATH:
                return Path(far)
        return None

    def find_socket(self) -> Path | None:
        """The socket of this home's manager, if there is one; it may be stale. Raises `EnvironmentFault` if other
        users may write to its directory."""
        if self.socket.exists():
            return self.socket
        written = self.read_manager_file()
        for far in (Path(written.socket) if written and written.socket else None, self.former_socket):
            # Only if its name is derived from our path: a copied manager file would lead to the original home.
            if far is not None and far.parent.name.endswith(f"-{self._digest()}") and far.exists():
                check_private(far.parent)  # every user may create a directory in /tmp
                return far
        return None

    def _digest(self) -> str:
        import hashlib

        return hashlib.sha256(os.fsencode(self.path)).hexdigest()[:16]

    def mark(self) -> Mark | None:
        """Device and inode of the home; None if it does not exist."""
        try:
            found = os.stat(self.path)
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def create(self) -> None:
        """Make the home and its directories, private to this user. Raises `EnvironmentFault`."""
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            check_private(self.path)
            for path in (self.tls, self.tokens, self.logs, self.output, self.runners):
                path.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise EnvironmentFault(
                f"cannot use {self.path} as the deployment's directory: {error.strerror}",
                hint="choose another with --home or ROTA_HOME",
            ) from None

    def read_manager_file(self) -> ManagerFile | None:
        """The facts in `manager.json`; None if it is missing or unreadable. They may be stale."""
        try:
            if not self.manager_file.is_file():  # opening a pipe would block
                return None
            return msgspec.json.decode(self.manager_file.read_bytes(), type=ManagerFile)
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
            return None

    def being_reexecuted(self) -> int:
        """The manager of this home that starts anew in its process, and does not listen yet; 0: there is none."""
        facts = self.read_manager_file()
        if facts is None or not facts.starts_anew:
            return 0
        try:
            words = Path(f"/proc/{facts.pid}/cmdline").read_bytes().split(b"\0")
        except OSError:
            return 0  # it is gone
        return facts.pid if b"rota.manager" in words and os.fsencode(self.path) in words else 0


def check_private(path: Path) -> None:
    """Raise `EnvironmentFault` unless the directory is ours and only we may write to it."""
    found = os.stat(path)
    if not stat.S_ISDIR(found.st_mode):
        raise EnvironmentFault(f"{path} is not a directory", hint="choose another with --home or ROTA_HOME")
    if found.st_uid != os.getuid():
        raise EnvironmentFault(
            f"{path} belongs to another user (uid {found.st_uid})",
            hint="choose another with --home or ROTA_HOME",
        )
    if found.st_mode & 0o022:
        raise EnvironmentFault(f"others may write to {path}", hint=f"run: chmod go-rwx '{path}'")
