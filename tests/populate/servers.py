"""Real servers on private ports, in a directory of their own; each counts its statements in its own log."""

from __future__ import annotations

import contextlib
import os
import pwd
import random
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

_PATIENCE_S = 60


def free_port() -> int:
    """Below those that connections get, which come and go between this question and the start of a server."""
    while True:
        port = random.randint(15000, 32000)
        with socket.socket() as tried, contextlib.suppress(OSError):
            tried.bind(("127.0.0.1", port))
            return port


def _needed(command: str, package: str, *places: str) -> str:
    path = shutil.which(command, path=os.pathsep.join([os.environ["PATH"], "/usr/sbin", *places]))
    assert path is not None, f"{command} is missing. Install with: sudo apt-get install {package}"
    return path


class Server:
    """A process that answers on its port."""

    def __init__(self, home: Path, *, user: str) -> None:
        self.home = home
        self.home.mkdir(parents=True)
        self.port = free_port()
        self.user = user
        self.log = home / "statements.log"
        self.process: subprocess.Popen[bytes] | None = None

    def as_user(self) -> dict[str, object]:
        """How `subprocess` makes it the server's own process."""
        # Two that begin at once would find each other's temporary tables.
        env = {**os.environ, "TMPDIR": str(self.home)}
        if os.getuid() != 0:
            return {"env": env}
        entry = pwd.getpwnam(self.user)
        for path in [self.home, *self.home.rglob("*")]:
            os.chown(path, entry.pw_uid, entry.pw_gid)
        return {"user": self.user, "group": entry.pw_gid, "extra_groups": [], "env": env}

    def command(self) -> list[str]:
        raise NotImplementedError

    def start(self) -> None:
        with open(self.home / "output", "ab") as output:
            self.process = subprocess.Popen(
                self.command(), stdin=subprocess.DEVNULL, stdout=output, stderr=output, **self.as_user()
            )  # type: ignore[call-overload]
        deadline = time.monotonic() + _PATIENCE_S
        while not self.answers():
            assert self.process.poll() is None, (self.home / "output").read_text()
            assert time.monotonic() < deadline, (self.home / "output").read_text()
            time.sleep(0.02)

    def check(self) -> None:
        """That it still runs."""
        assert self.process is None or self.process.poll() is None, (self.home / "output").read_text()[-3000:]

    def answers(self) -> bool:
        with socket.socket() as tried:
            return tried.connect_ex(("127.0.0.1", self.port)) == 0

    def stop(self) -> None:
        if self.process is None:
            return
        self.process.send_signal(signal.SIGTERM if self.user != "postgres" else signal.SIGINT)
        try:
            self.process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self.process = None

    def discard(self) -> None:
        """End it at once; what it kept is not needed any more."""
        if self.process is not None:
            # PostgreSQL has children, which it ends in this way only.
            self.process.send_signal(signal.SIGQUIT if self.user == "postgres" else signal.SIGKILL)
            self.process.wait(_PATIENCE_S)
            self.process = None

    def mark(self) -> int:
        """Where the log of statements ends now."""
        return self.log.stat().st_size if self.log.exists() else 0

    def lines(self, since: int) -> list[str]:
        with open(self.log, "rb") as log:
            log.seek(since)
            return log.read().decode(errors="replace").splitlines()


class MariaDb(Server):
    def __init__(self, home: Path) -> None:
        super().__init__(home, user="mysql")
        self.daemon = _needed("mariadbd", "mariadb-server")
        install = _needed("mariadb-install-db", "mariadb-server")
        options = ["--skip-test-db", "--auth-root-authentication-method=normal"]
        names = ["--no-defaults", f"--datadir={home}/data", f"--tmpdir={home}", "--user=mysql"]
        done = subprocess.run(
            [install, *names, *options], check=False, capture_output=True, text=True, **self.as_user()
        )  # type: ignore[call-overload]
        assert done.returncode == 0, done.stdout + done.stderr

    def command(self) -> list[str]:
        return [
            self.daemon, "--no-defaults", f"--datadir={self.home}/data", f"--socket={self.home}/s",
            f"--port={self.port}", "--bind-address=127.0.0.1", "--character-set-server=utf8mb4",
            "--general-log=1", f"--general-log-file={self.log}", "--innodb-flush-log-at-trx-commit=0",
            "--innodb-flush-method=nosync", "--innodb-doublewrite=0", "--innodb-stats-persistent=0",
            "--sync-frm=0",
            "--innodb-buffer-pool-size=32M", "--performance-schema=0", "--skip-name-resolve",
        ]  # fmt: skip

    def statements(self, since: int) -> list[str]:
        """Of clients, from that place of the log on."""
        found = (line.split("Query\t", 1) for line in self.lines(since) if "Query\t" in line)
        return [parts[1] for parts in found]

    @property
    def settings(self) -> dict[str, object]:
        return {"host": "127.0.0.1", "port": self.port, "user": "root", "password": "", "use_tls": False}


class PostgreSql(Server):
    def __init__(self, home: Path) -> None:
        super().__init__(home, user="postgres")
        found = sorted(Path("/usr/lib/postgresql").glob("*/bin"))
        self.daemon = _needed("postgres", "postgresql", *map(str, found))
        self.is_ready = _needed("pg_isready", "postgresql", *map(str, found))
        initdb = _needed("initdb", "postgresql", *map(str, found))
        command = [initdb, "-A", "trust", "-U", "root", "--no-sync", "-D", f"{home}/data"]
        done = subprocess.run(command, check=False, capture_output=True, text=True, **self.as_user())  # type: ignore[call-overload]
        assert done.returncode == 0, done.stdout + done.stderr

    def command(self) -> list[str]:
        options = "fsync=off log_statement=all unix_socket_directories= listen_addresses=127.0.0.1"
        pairs = [word for option in options.split() for word in ("-c", option)]
        return [self.daemon, "-D", f"{self.home}/data", "-p", str(self.port), *pairs]

    def start(self) -> None:
        self.log = self.home / "output"
        super().start()

    def answers(self) -> bool:
        """It listens before it is ready."""
        command = [self.is_ready, "-q", "-h", "127.0.0.1", "-p", str(self.port)]
        return subprocess.run(command, check=False).returncode == 0

    def statements(self, since: int) -> list[str]:
        found = (line.split("statement: ", 1) for line in self.lines(since) if "statement: " in line)
        return [parts[1] for parts in found]

    @property
    def settings(self) -> dict[str, object]:
        return {
            "host": "127.0.0.1", "port": self.port, "user": "root", "password": "", "backend": "postgresql",
            "name": "postgres", "use_tls": False,
        }  # fmt: skip


class Redis(Server):
    def __init__(self, home: Path) -> None:
        super().__init__(home, user="redis")
        self.daemon = _needed("redis-server", "redis-server")

    def as_user(self) -> dict[str, object]:
        return {}

    def command(self) -> list[str]:
        return [self.daemon, "--port", str(self.port), "--bind", "127.0.0.1", "--save", "", "--appendonly", "no"]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}/0"
