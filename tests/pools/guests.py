"""A deployment that grants tickets, real runners that join it over TLS, and peers that pretend to be runners."""

from __future__ import annotations

import os
import secrets
import signal
import socket
import sqlite3
import ssl
import subprocess
import sys
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import msgspec

from rota.core.machines.ticket_grants import TicketGrant
from rota.plan.need import Need
from rota.plan.size import CORE, Size
from rota.wire import codec, ticket_file
from rota.wire import messages as m
from rota.wire.ticket_file import Ticket
from tests.deployment import Deployment, wait_until
from tests.pools.granting import ROW, Grant, ListGrants

ROOT = Path(__file__).parents[2]
#: Options of jobs of the group that tickets are for here.
GROUP = ("--cpus", "1", "--mem", "64M", "--time", "1m", "--override", "always", "--retries", "0")
NEED = Need(Size(cpus=CORE, mem=64 << 20, disk=0, time_s=60.0))


class Front:
    """The deployment, with a manager whose only runners come with tickets."""

    def __init__(self, made: Deployment) -> None:
        self.made = made
        self.runners: list[subprocess.Popen[bytes]] = []
        self.start()

    def start(self) -> None:
        argv = [sys.executable, "-m", "tests.pools.granting", "--home", str(self.made.home)]
        self.manager = subprocess.Popen(argv, env=self.made.env, cwd=ROOT)
        wait_until(lambda: self.made.rota("status").returncode == 0, "the manager listens")
        wait_until((self.made.home / "tls" / "certificates.json").exists, "it has a certificate")

    def kill(self) -> None:
        os.kill(self.manager.pid, signal.SIGKILL)
        self.manager.wait()

    def end_runners(self) -> None:
        """End them and their jobs: a second SIGTERM says so. Two at once would be one."""
        for process in self.runners:
            for _ in range(60):
                if process.poll() is not None:
                    break
                process.send_signal(signal.SIGTERM)
                with suppress(subprocess.TimeoutExpired):
                    process.wait(0.5)
            process.kill()
            process.wait()
        self.runners.clear()

    def close(self) -> None:
        self.end_runners()
        self.kill()

    # -------------------------------------------------------------- tickets

    @property
    def address(self) -> str:
        return f"127.0.0.1:{(self.made.home / 'tls.port').read_text().strip()}"

    @property
    def authority(self) -> str:
        return (self.made.home / "tls" / "ca.pem").read_text()

    def ask(self, message: m.Message) -> Any:
        """The body of the answer to an administrator."""
        with socket.socket(socket.AF_UNIX) as local:
            local.connect(str(self.made.home / "manager.sock"))
            local.settimeout(20)
            local.sendall(codec.frame(m.Hello(m.PROTOCOL, "admin")) + codec.frame(message))
            reader: codec.Reader[Any] = codec.Reader(m.ToClient)
            answers: list[Any] = []
            while len(answers) < 2 and (data := local.recv(65536)):
                answers += reader.feed(data)
        return msgspec.msgpack.decode(answers[1].body)

    def grant(self, name: str = "", **changes: Any) -> Ticket:
        """A new ticket."""
        name = name or f"test-{secrets.token_hex(6)}"
        ticket = Ticket(name=name, secret=ticket_file.new_secret(), manager=self.address, authority=self.authority)
        self.change(ticket, **changes)
        return ticket

    def change(self, ticket: Ticket, **changes: Any) -> None:
        grant = TicketGrant(**{"name": ticket.name, "pool": "test", "need": NEED} | changes)
        assert self.ask(Grant(1, ticket_file.digest(ticket.secret), grant))

    def grants(self) -> dict[str, TicketGrant]:
        found = msgspec.convert(self.ask(ListGrants(1)), list[TicketGrant])
        return {each.name: each for each in found}

    def stored(self, ticket: Ticket) -> TicketGrant:
        """What is on disk, read while no manager runs."""
        with closing(sqlite3.connect(f"file:{self.made.home / 'rota.db'}?mode=ro", uri=True)) as database:
            ((text,),) = database.execute("SELECT value FROM meta WHERE key = ?", (ROW,)).fetchall()
        grants = msgspec.json.decode(text, type=dict[str, TicketGrant])
        return grants[ticket_file.digest(ticket.secret)]

    def key_of(self, ticket: Ticket) -> str:
        """The key that a ticket belongs to."""
        return self.grants()[ticket.name].key

    # -------------------------------------------------------------- runners

    def run(
        self, ticket: Ticket, *options: str, place: str = "there", mode: int = 0o600
    ) -> subprocess.Popen[bytes]:
        """Start a runner with this ticket, which knows nothing of the deployment but that."""
        file = self.made.work / f"{ticket.name}.ticket"
        ticket_file.write(file, ticket)
        file.chmod(mode)
        argv = [sys.executable, "-P", "-m", "rota.runner", "--ticket", str(file)]
        argv += ["--dir", str(self.made.work / place), "--log", str(self.log(ticket)), *options]
        # The home is in its environment only so that the test can end what it leaves behind.
        process = subprocess.Popen(argv, env=self.made.env, cwd="/")
        self.runners.append(process)
        return process

    def log(self, ticket: Ticket) -> Path:
        return self.made.work / f"{ticket.name}.log"

    def directory(self, ticket: Ticket, place: str = "there") -> Path:
        return self.made.work / place / ticket.name

    def joined(self) -> dict[str, Any]:
        """Runners that are connected, by host."""
        found = self.made.json("manager", "status")["runners"]
        return {each["host"]: each for each in found if each.get("connected", True)}

    def add(self, *commands: str, options: tuple[str, ...] = GROUP) -> list[int]:
        text = "".join(f"{command}\n" for command in commands)
        added: list[int] = self.made.json("add", "--rerun", *options, "-", input=text)["added"]
        return added

    def wait(self, *jobs: int) -> None:
        self.made.rota("wait", *map(str, jobs))

    def peer(self) -> Pretender:
        return Pretender(self)


class Pretender:
    """A peer that speaks to the manager over TLS as a runner would, or not quite."""

    def __init__(self, front: Front, *, address: str = "") -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.load_verify_locations(cadata=front.authority)
        host, port = ticket_file.address(address or front.address)
        plain = socket.create_connection((host, port), timeout=20)
        self._stream = context.wrap_socket(plain, server_hostname="rota")
        self._reader: codec.Reader[Any] = codec.Reader(m.ToRunner)
        self._read: list[Any] = []

    def __enter__(self) -> Pretender:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._stream.close()

    def send(self, *messages: m.Message) -> None:
        for message in messages:
            self._stream.sendall(codec.frame(message))

    def next(self) -> Any:
        """The next message; None: the manager has hung up."""
        while not self._read:
            try:
                data = self._stream.recv(65536)
            except (ConnectionError, ssl.SSLError):
                return None
            if not data:
                return None
            self._read += self._reader.feed(data)
        return self._read.pop(0)

    def hello(self, ticket: Ticket, key: str, **changes: Any) -> Any:
        """Say hello with this ticket and key; the answer."""
        given = {"protocol": m.PROTOCOL, "role": "runner", "token": ticket.secret, "host": ticket.name, "key": key}
        self.send(m.Hello(**given | changes))
        return self.next()

    def join(self, ticket: Ticket, **changes: Any) -> Any:
        """Join as a runner of this ticket; the answer."""
        self.send(self.joining(ticket, **changes))
        return self.next()

    def joining(self, ticket: Ticket, **changes: Any) -> m.Join:
        given: dict[str, Any] = {"runner": f"{ticket.name}-1-{secrets.token_hex(4)}", "host": ticket.name}
        given |= {"boot_id": "boot", "pid": 1, "start_time": 1, "cores": 1, "mem": 1 << 30, "disk": 1 << 30}
        return m.Join(**given | changes)


def new_key() -> str:
    return secrets.token_urlsafe(32)
