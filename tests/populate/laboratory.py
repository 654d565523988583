"""Laboratories: a schema with tables for each kind of ledger, and the interpreters that ask them."""

from __future__ import annotations

import itertools
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from rota.populate.source.desk import INSIDE, Desk, DeskSource
from tests.populate.lab.warm import CLIENT
from tests.populate.servers import MariaDb, PostgreSql, Redis, Server

_PEERS = Path(__file__).parents[2] / ".venv" / "peers"
LAB = Path(__file__).parent / "lab"

#: Ledger and server.
KINDS = ("datajoint2-mariadb", "datajoint2-postgresql", "datajoint0-mariadb", "sql-mariadb", "sql-postgresql")
_numbers = itertools.count(1)


def python_of(name: str) -> str:
    """The interpreter of a peer."""
    path = _PEERS / name / "bin" / "python"
    assert path.exists(), f"{path} is missing. Make it with: make .venv/.populate-peers"
    return str(path)


class Servers:
    """Started when they are first needed."""

    def __init__(self) -> None:
        # Not below the directory of the tests: that is closed to the users of the servers.
        self.home = Path(tempfile.mkdtemp(prefix="rota-servers-"))
        self.home.chmod(0o711)
        self._running: dict[str, Server] = {}

    def get(self, name: str) -> Any:
        if name not in self._running:
            made = {"mariadb": MariaDb, "postgresql": PostgreSql, "redis": Redis}[name](self.home / name)
            self._running[name] = made
            made.start()
        self._running[name].check()
        return self._running[name]

    def stop(self) -> None:
        for server in self._running.values():
            server.discard()
        shutil.rmtree(self.home)


class WarmPythons:
    """In the place of the interpreters of peers: each imports its library once."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def get(self, name: str) -> str:
        """The command in the place of that interpreter."""
        command = self.home / name
        if name not in self._running:
            path = f"{self.home}/{name}.sock"
            modules = ["datajoint", "pymysql", "json"] + ["psycopg2"] * (name == "datajoint2")
            env = {**os.environ, "PYTHONWARNINGS": "ignore", "DJ_LOG_LEVEL": "ERROR"}
            started = [python_of(name), str(LAB / "warm.py"), path, *modules]
            self._running[name] = subprocess.Popen(started, env=env, stdin=subprocess.DEVNULL)
            wait_for(lambda: Path(path).exists(), f"{name} to import its library")
            command.write_text(CLIENT.format(python=sys.executable, path=path))
            command.chmod(0o755)
        return str(command)

    def run(self, name: str, code: str, *, env: dict[str, str]) -> tuple[int, str]:
        """Run code in a fork of that interpreter; its exit status, and all that it printed."""
        self.get(name)
        read, write = os.pipe()
        with socket.socket(socket.AF_UNIX) as connection, open(os.devnull) as nothing:
            connection.connect(f"{self.home}/{name}.sock")
            asked = json.dumps({"args": ["-c", code], "env": env, "cwd": str(LAB)}).encode() + b"\n"
            sent = socket.send_fds(connection, [asked], [nothing.fileno(), write, write])
            connection.sendall(asked[sent:])
            os.close(write)
            with open(read, encoding="utf-8", errors="replace") as output:
                printed = output.read()
            return int(connection.recv(16) or b"1"), printed

    def stop(self) -> None:
        for process in self._running.values():
            process.kill()
            process.wait()


def wait_for(condition: Callable[[], object], what: str, *, patience_s: float = 60) -> None:
    """Until it holds."""
    deadline = time.monotonic() + patience_s
    while not condition():
        assert time.monotonic() < deadline, f"waited for {what}"
        time.sleep(0.02)


class Lab:
    """A schema of its own with the tables of `lab`, and how to ask it."""

    def __init__(self, kind: str, server: Any, pythons: WarmPythons, home: Path, **spec: object) -> None:
        self.kind = kind
        self.server = server
        self.home = home
        self.home.mkdir(exist_ok=True)
        self.ledger, _, self.backend = kind.partition("-")
        self._pythons = pythons
        self._interpreter = "datajoint0" if self.ledger == "datajoint0" else "datajoint2"
        self.python = pythons.get(self._interpreter)
        self.name = "plain.trace" if self.ledger == "sql" else "lab.Trace"
        self.schema = f"lab{os.getpid()}_{next(_numbers)}"
        settings = dict(server.settings)
        if self.ledger == "sql":
            settings.setdefault("backend", "mysql")
            settings["name"] = self.schema
        self.settings = settings
        self.env = {
            **os.environ,
            "LAB": str(home),
            "LAB_SCHEMA": self.schema,
            "LAB_SETTINGS": json.dumps(settings),
            "PYTHONPATH": INSIDE,
            "PYTHONWARNINGS": "ignore",
            "DJ_LOG_LEVEL": "ERROR",
        }
        self.spec: dict[str, object] = {"name": self.name, "directory": str(LAB), "bins": True, **spec}
        if self.ledger == "sql":
            self.spec["sql"] = {
                "connect": "plain.connect", "key": ["recording"], "target": "trace",
                "keys": "SELECT * FROM recording",
            }  # fmt: skip
            self._make_plain()
        self._desks: list[Desk] = []
        self._ready: DeskSource | None = None

    def _make_plain(self) -> None:
        if self.backend == "postgresql":
            self.python_does("import psycopg2, json, os; s = json.loads(os.environ['LAB_SETTINGS']);"
                "c = psycopg2.connect(host=s['host'], port=s['port'], user=s['user'], dbname='postgres');"
                f"c.autocommit = True; c.cursor().execute('CREATE DATABASE {self.schema}')")  # fmt: skip
        else:
            self.python_does("import pymysql, json, os; s = json.loads(os.environ['LAB_SETTINGS']);"
                "c = pymysql.connect(host=s['host'], port=s['port'], user=s['user']);"
                f"c.cursor().execute('CREATE DATABASE {self.schema}')")  # fmt: skip
        self.execute("CREATE TABLE recording (recording INTEGER PRIMARY KEY, hours DOUBLE PRECISION)")
        self.execute("CREATE TABLE trace (recording INTEGER PRIMARY KEY, doubled DOUBLE PRECISION)")

    # ------------------------------------------------------------------ asking

    def ready(self) -> DeskSource:
        """The source that has prepared the ledger; the first one that a test gets."""
        source = self.source()
        source.migrate()
        self._ready = source
        return source

    def source(self) -> DeskSource:
        """Of the traces, over a process of its own."""
        if self._ready is not None:
            source, self._ready = self._ready, None
            return source
        desk = Desk(self.python, directory=str(LAB), settings={}, env=self.env)
        self._desks.append(desk)
        return DeskSource(desk, self.spec)

    def python_does(self, code: str, *, check: bool = True) -> str:
        """What the laboratory's interpreter prints."""
        status, printed = self._pythons.run(self._interpreter, code, env=self.env)
        assert not check or status == 0, printed
        return printed.strip()

    def execute(self, sql: str) -> list[list[Any]]:
        """A statement, over a connection of its own."""
        code = (
            "import json, plain; c = plain.connect(); k = c.cursor(); "
            f"k.execute({sql!r}); print(json.dumps(k.fetchall() if k.description else [], default=str)); "
            "c.commit()"
        )
        if self.ledger != "sql":
            code = (
                f"import json, lab; k = lab.dj.conn().query({sql!r}); "
                "print(json.dumps(k.fetchall() if k.description else [], default=str))"
            )
        return list(json.loads(self.python_does(code).splitlines()[-1]))

    def add(self, *numbers: int, hours: float = 1.0) -> None:
        """Recordings."""
        if self.ledger == "sql":
            for start in range(0, len(numbers), 5000):
                rows = ", ".join(f"({number}, {hours})" for number in numbers[start : start + 5000])
                self.execute(f"INSERT INTO recording VALUES {rows}")
        else:
            rows = f"[dict(recording=n, hours={hours}) for n in {list(numbers)}]"
            self.python_does(f"import lab; lab.Recording.insert({rows}); lab.Trace(); lab.Spectrum()")

    def behave(self, number: int, how: str) -> None:
        """What happens to this key while it is computed."""
        (self.home / f"key-{number}").write_text(how)

    def run(self, token: str, keys: list[dict[str, Any]], *, job_timeout: float = 60, **spec: object) -> str:
        """One batch in a process of its own, as a worker runs it; what it returned or raised."""
        order = {
            "token": token, "table": {**self.spec, "bins": False, **spec}, "job_timeout": job_timeout,
            "keys": keys,
        }  # fmt: skip
        return self.python_does(f"import rota_tables.batch as b; print(b.run({order!r}))", check=False)

    @property
    def made(self) -> list[int]:
        """Keys whose code was begun, in order."""
        path = self.home / "made"
        return [int(line.split()[0]) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def done(self) -> list[int]:
        """Keys that are in the table."""
        if self.ledger == "sql":
            return [row[0] for row in self.execute("SELECT recording FROM trace ORDER BY recording")]
        code = "import lab; print([int(k['recording']) for k in lab.Trace.proj().{}])"
        fetched = "fetch(as_dict=True)" if self.ledger == "datajoint0" else "to_dicts()"
        return sorted(json.loads(self.python_does(code.format(fetched)).splitlines()[-1]))

    @property
    def errors(self) -> dict[int, tuple[str, str]]:
        """Keys that are errors, with message and stack."""
        if self.ledger == "sql":
            sql = "SELECT recording, error_message, error_stack FROM trace_jobs WHERE status = 'error'"
            return {row[0]: (row[1], row[2]) for row in self.execute(sql)}
        told = "(key['recording'], k['error_message'], k['error_stack']) for k in {}"
        if self.ledger == "datajoint0":
            rows = "(lab.schema.jobs & 'status=\"error\"').fetch(as_dict=True) for key in [k['key']]"
        else:
            rows = "lab.Trace().jobs.errors.to_dicts() for key in [k]"
        jobs = f"[{told.format(rows)}]"
        found = json.loads(self.python_does(f"import lab, json; print(json.dumps({jobs}))").splitlines()[-1])
        return {number: (message, stack) for number, message, stack in found}

    def close(self) -> None:
        for desk in self._desks:
            desk.close()
