"""Runs the provision commands of nodes on the manager's host, or has the agent of the deploy host run them, keeps
their output, and answers `rota node ready`.

It decides nothing: `core.machines.provision_steps` does. A command runs once its beginning and the hash of its
ticket are on disk. A command that an earlier manager has started is ended before it is run again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
import socket
import subprocess
import threading
from collections import deque
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from rota.core.effects import Effect
from rota.core.machines.provision_records import (
    BeginProvision,
    KeepProvisionOutput,
    NodeReady,
    ProvisionBegan,
    ProvisionEnded,
    Provisions,
    RunProvision,
    SendErrand,
    StopProvision,
    TicketMade,
)
from rota.core.machines.provision_restart import ask_again
from rota.core.machines.provisioned_machines import is_provisioning
from rota.core.machines.provisioning import ProvisionLimits
from rota.errors import BadInput, Denied, NotFound
from rota.manager.feature import FeatureService, ManagerFeature, Perform, Serve, Services
from rota.manager.host.errand_work import errand_work
from rota.manager.host.provision_output import MOST, copy_output, kept_outputs, open_private, path_of, prune
from rota.manager.output.outputs import SegmentFiles
from rota.manager.peers.ownership import restricted
from rota.manager.peers.peer import Peer
from rota.runner import identity
from rota.wire import messages as m
from rota.wire import private_files, ticket_file

log = logging.getLogger("rota.manager")

#: Commands that run at once.
_AT_ONCE: Final = 64
#: Old output is looked for so often.
_PRUNE_S: Final = 3600.0
#: Characters of the last line in an error.
_REPORTED: Final = 300

Key = tuple[int, int, str]  #: job, attempt, host


class _Command:
    """A command from its turn to its end."""

    def __init__(self, order: RunProvision) -> None:
        self.order = order
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False


class Provisioner(FeatureService):
    """The provision commands of one manager."""

    def __init__(self, services: Services, directory: Path) -> None:
        self._loop = asyncio.get_running_loop()
        self._services = services
        self._directory = directory
        self._happened = services.turns.happened
        self._waiting: deque[RunProvision] = deque()
        self._commands: dict[Key, _Command] = {}
        self._tickets: dict[int, bytes] = {}  #: for commands that deploy hosts will run, by token
        self._prune_at = 0.0

    def performers(self) -> Mapping[type[Effect], Perform]:
        return {
            RunProvision: self._queue,
            BeginProvision: self._begin,
            StopProvision: self._stop,
            SendErrand: self._send,
            KeepProvisionOutput: self._keep,
        }

    def requests(self) -> Mapping[type[Any], Serve]:
        return {m.NodeReady: self._ready, m.ReadProvision: self._read}

    def start(self) -> None:
        """End what an earlier manager has started, and go on with what it has not finished."""
        for path in self._directory.glob("*.pid"):
            _end_leftover(path)
        for order in ask_again(self._services.world):
            self._queue(order)

    def tick(self, now: float) -> None:
        self._go_on()
        if now >= self._prune_at:
            self._prune_at = now + _PRUNE_S
            if self._directory.is_dir():
                threading.Thread(target=prune, args=(self._directory,), daemon=True).start()

    def close(self) -> None:
        """The manager stops: end the commands. The next manager runs them again."""
        self._waiting.clear()
        for command in self._commands.values():
            _end(command)

    # ------------------------------------------------------------------ commands

    def _queue(self, order: RunProvision) -> None:
        self._services.authority.wanted.set()
        self._waiting.append(order)
        self._go_on()

    def _go_on(self) -> None:
        """Begin with waiting commands, as many as may run at once, when there is a certificate for tickets."""
        while self._waiting and len(self._commands) < _AT_ONCE and self._services.authority.ready.is_set():
            order = self._waiting.popleft()
            if order.via:
                self._off_loop(lambda order=order: self._make_ticket(order))  # type: ignore[misc]
                continue
            key = (order.job, order.attempt, order.host)
            self._commands[key] = _Command(order)
            self._off_loop(lambda order=order: self._write_ticket(order))  # type: ignore[misc]

    def _write_ticket(self, order: RunProvision) -> None:
        secret = ticket_file.new_secret()
        wrong = ""
        try:
            private_files.make_directory(self._directory)
            ticket_file.write(self._path(order, "ticket"), self._ticket(order, secret))
        except Exception as error:
            wrong = f"its ticket cannot be written: {error}"
        if wrong:
            self._tell(lambda: self._over(order, wrong))
        else:
            self._tell(lambda: self._happened(ProvisionBegan(**_about(order), ticket=ticket_file.digest(secret))))

    def _ticket(self, order: RunProvision, secret: str) -> ticket_file.Ticket:
        return ticket_file.Ticket(
            name=f"provision-{order.job}-{order.attempt}",
            secret=secret,
            manager=_reachable(self._services.deployment.address or ""),
            authority=self._services.home.ca.read_text(),
        )

    def _make_ticket(self, order: RunProvision) -> None:
        """Make a ticket for a command that the deploy host will run. It is kept in memory until it is sent."""
        secret = ticket_file.new_secret()
        try:
            content = ticket_file.content(self._ticket(order, secret))
        except Exception as error:
            wrong = f"its ticket cannot be made: {error}"
            self._tell(lambda: self._happened(ProvisionEnded(**_about(order), wrong=wrong)))
            return

        def made() -> None:
            self._tickets[order.token] = content
            self._happened(TicketMade(**_about(order), ticket=ticket_file.digest(secret)))

        self._tell(made)

    def _send(self, effect: SendErrand) -> None:
        """Have the agent of the deploy host run a command. If it is gone, the engine asks again later."""
        ticket, peer = self._tickets.pop(effect.order.token, b""), self._services.peer_of(effect.runner)
        if peer is not None and ticket and is_provisioning(effect.job, effect.order.attempt, effect.order.token):
            peer.send(errand_work(effect, ticket))

    def _begin(self, effect: BeginProvision) -> None:
        command = self._commands.get((effect.job, effect.attempt, effect.host))
        if command is not None and command.process is None and not command.stopped:
            self._off_loop(lambda: self._run(command))

    def _run(self, command: _Command) -> None:
        """Run a command to its end, in a thread of its own."""
        order = command.order
        env = {
            **os.environ,
            **{name: value.replace("\0", "") for name, value in order.about.items()},
            "ROTA_HOOK": "provision_cmd",
            "ROTA_HOME": str(self._services.home),
            "ROTA_JOB_ID": str(order.job),
            "ROTA_ATTEMPT": str(order.attempt),
            "ROTA_HOST": order.host,
            "ROTA_PROVISION": order.what,
            "ROTA_TICKET": str(self._path(order, "ticket")),
        }
        pid_file = self._path(order, "pid")
        try:
            with open_private(self._path(order, "log")) as output:
                process = command.process = subprocess.Popen(
                    ["/bin/sh", "-c", order.command],
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    start_new_session=True,
                    cwd="/",
                    env=env,
                )
                private_files.write(pid_file, f"{process.pid} {identity.start_of(process.pid)}".encode())
                if command.stopped:
                    _end(command)
                last = copy_output(process, output)
        except OSError as error:
            why = f"it cannot be run: {error.strerror}"
            self._tell(lambda: self._over(order, why))
            return
        pid_file.unlink(missing_ok=True)
        status = process.returncode
        wrong = ""
        if status:
            ended = f"signal {-status}" if status < 0 else f"exit {status}"
            wrong = ended + (f": {last[:_REPORTED]}" if last else "")
        self._tell(lambda: self._over(order, wrong))

    def _over(self, order: RunProvision, wrong: str) -> None:
        command = self._commands.pop((order.job, order.attempt, order.host), None)
        if command is not None and not command.stopped:
            if wrong:
                log.warning("provision_cmd of %s for job %d: %s", order.host, order.job, wrong)
            self._happened(ProvisionEnded(**_about(order), wrong=wrong))
        self._go_on()

    def _stop(self, effect: StopProvision) -> None:
        """The machines of an attempt are ready, or are not wanted any more."""
        about = (effect.job, effect.attempt)
        self._waiting = deque(each for each in self._waiting if (each.job, each.attempt) != about)
        if not self._services.world.use(Provisions).jobs:
            self._tickets.clear()
        for key in [key for key in self._commands if key[:2] == about]:
            command = self._commands[key]
            if command.process is None:
                del self._commands[key]
            _end(command)
        if self._directory.is_dir():
            for path in self._directory.glob(f"{effect.job}-{effect.attempt}-*.ticket"):
                path.unlink(missing_ok=True)
        self._go_on()

    def _path(self, order: RunProvision, kind: str) -> Path:
        return path_of(self._directory, order.job, order.attempt, order.host, kind)

    def _off_loop(self, call: Callable[[], None]) -> None:
        threading.Thread(target=call, name="provision", daemon=True).start()

    def _tell(self, call: Callable[[], None]) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is gone
            self._loop.call_soon_threadsafe(call)

    # ------------------------------------------------------------------ output

    def _keep(self, effect: KeepProvisionOutput) -> None:
        outcome = effect.outcome
        path = path_of(self._directory, effect.job, effect.attempt, effect.host, "log")

        def keep() -> None:
            files = SegmentFiles(self._services.home.output)
            try:
                private_files.make_directory(self._directory)
                with open_private(path) as output:
                    for stream, length in ((1, outcome.out_len), (2, outcome.err_len)):
                        if length:
                            output.write(files.all_of(outcome, stream, offset=0, length=min(length, MOST)))
            except OSError as error:
                log.warning("the output of provisioning %s cannot be kept: %s", effect.host, error)
            finally:
                files.close()

        self._off_loop(keep)

    # ------------------------------------------------------------------ requests

    async def _ready(self, peer: Peer, message: m.NodeReady) -> None:
        if not peer.ticket and not message.host:
            raise BadInput("say which node is ready", hint="name it, or give its ticket with --ticket FILE")
        asker = peer.asker(message.n)
        self._happened(NodeReady(host=message.host, ticket=peer.ticket, by=asker))

    async def _read(self, peer: Peer, message: m.ReadProvision) -> None:
        job = message.job
        row = await self._services.readers.read(lambda: self._services.store.jobs([job]))
        if not row:
            raise NotFound(f"there is no job {job}", hint="list them with 'rota jobs'")
        if restricted(peer) and row[0].user != peer.user:
            raise Denied(f"job {job} belongs to {row[0].user}", hint="ask its owner")
        found = await self._services.readers.read(lambda: kept_outputs(self._directory, job, message.attempt))
        self._services.turns.answer(peer.asker(message.n), found)


def _about(order: RunProvision) -> dict[str, Any]:
    """The fields by which the engine knows what an event is about."""
    return {"job": order.job, "attempt": order.attempt, "host": order.host, "token": order.token}


def _reachable(address: str) -> str:
    """The address of the manager as others may reach it: by the name of its host if it listens everywhere."""
    host, _, port = address.rpartition(":")
    return f"{socket.gethostname()}:{port}" if host in ("0.0.0.0", "[::]", "::") else address


def _end(command: _Command) -> None:
    command.stopped = True
    process = command.process
    if process is not None and process.returncode is None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


def _end_leftover(path: Path) -> None:
    """End a command that an earlier manager has started and not seen the end of."""
    with contextlib.suppress(OSError, ValueError):
        pid, start_time = map(int, path.read_text().split())
        if start_time and identity.lives(pid, start_time):
            os.killpg(pid, signal.SIGKILL)
    path.unlink(missing_ok=True)


def _make(services: Services) -> Provisioner:
    settings = services.settings
    limits = ProvisionLimits(waiting_s=settings.provision_wait_timeout, installing_s=settings.provision_timeout)
    if limits != ProvisionLimits() or services.world.find(Provisions) is not None:
        services.world.use(Provisions).limits = limits
    return Provisioner(services, services.home.path / "provision")


FEATURE: Final = ManagerFeature(name="provisioning", make=_make)
