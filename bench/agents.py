"""Many agents in one process, as a manager sees them: a TLS connection each, heartbeats, a job now and then.

    python bench/agents.py --manager HOST:PORT --pass FILE --agents 2000 --seconds 60

They run nothing: a lease is reported as started and ended. Every second a line of JSON says how many have joined
and how many jobs they were given. When the manager goes away, they come back as real agents do.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import ssl
import sys
import time

import uvloop

from rota.core.attempts.leases import Finished, Started
from rota.core.jobs.outcome import Outcome
from rota.plan.site.node_facts import NodeFacts
from rota.runner.report.link import FIRST_DELAY_S, MAX_DELAY_S
from rota.wire import codec, node_pass
from rota.wire.greeting import PROTOCOL, Hello, Welcome
from rota.wire.orders import Ack, Rules, ToRunner, Work
from rota.wire.reports import Join, Report
from rota.wire.tls import SERVER_NAME


class Crowd:
    """What all agents share."""

    def __init__(self, host: str, port: int, token: str, authority: str) -> None:
        self.host, self.port, self.token = host, port, token
        self.context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self.context.minimum_version = ssl.TLSVersion.TLSv1_3
        self.context.load_verify_locations(cadata=authority)
        self.joined = 0
        self.jobs = 0


class Agent(asyncio.Protocol):
    """One of them; the connection is another object than who it is."""

    def __init__(self, number: int, crowd: Crowd) -> None:
        self._crowd = crowd
        self._name = f"sim{number:05d}"
        self._id = f"{self._name}-{number + 1}-{number:08x}"
        self._number = number
        self._delay_s = FIRST_DELAY_S
        self._seq = 0
        self._unacked: dict[int, bytes] = {}
        self._joined = False
        self._transport: asyncio.Transport | None = None
        self._touching: asyncio.TimerHandle | None = None

    async def connect(self) -> None:
        loop = asyncio.get_running_loop()
        crowd = self._crowd
        while True:
            try:
                await loop.create_connection(
                    lambda: self, crowd.host, crowd.port, ssl=crowd.context, server_hostname=SERVER_NAME
                )
            except (OSError, TimeoutError):
                await asyncio.sleep(self._delay_s * (0.5 + random.random() / 2))
                self._delay_s = min(MAX_DELAY_S, self._delay_s * 2)
            else:
                return

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport) or hasattr(transport, "write")
        self._transport = transport  # type: ignore[assignment]
        self._reader: codec.Reader[ToRunner] = codec.Reader(ToRunner)
        self._send(codec.frame(Hello(PROTOCOL, "runner", self._crowd.token, "bench", self._name)))

    def connection_lost(self, exc: Exception | None) -> None:
        if self._touching is not None:
            self._touching.cancel()
        if self._joined:
            self._joined = False
            self._crowd.joined -= 1
        loop = asyncio.get_running_loop()
        delay = self._delay_s * (0.5 + random.random() / 2)
        self._delay_s = min(MAX_DELAY_S, self._delay_s * 2)
        loop.call_later(delay, lambda: asyncio.ensure_future(self.connect()))

    def data_received(self, data: bytes) -> None:
        for message in self._reader.feed(data):
            match message:
                case Welcome():
                    facts = NodeFacts(cores=1, mem=1 << 30, disk=1 << 30, machine=self._name)
                    who = (self._id, self._name, "boot", self._number + 1, 1)
                    self._send(codec.frame(Join(*who, 1, 1 << 30, 1 << 30, node=facts)))
                case Rules(touch_s):
                    self._joined = True
                    self._crowd.joined += 1
                    self._delay_s = FIRST_DELAY_S
                    for frame in self._unacked.values():
                        self._send(frame)
                    self._touch_s = touch_s
                    self._later()
                case Work(grants):
                    self._work(message, grants)
                case Ack(seq):
                    self._unacked = {each: frame for each, frame in self._unacked.items() if each > seq}

    def _work(self, work: Work, grants: list) -> None:  # type: ignore[type-arg]
        now = time.time()
        seats = [seat.seat for seat in work.seats]
        started = [Started(g.job, g.attempt, g.token, seats[0] if seats else 1, now, 1) for g in grants]
        done = Outcome(exit_code=0, started_at=now, ended_at=now)
        ended = [Finished(g.job, g.attempt, g.token, seats[0] if seats else 1, done) for g in grants]
        self._crowd.jobs += len(grants)
        self._seq += 1
        frame = self._unacked[self._seq] = codec.frame(Report(self._seq, started, ended, [], seats))
        self._send(frame)

    def _later(self) -> None:
        self._touching = asyncio.get_running_loop().call_later(self._touch_s, self._touch)

    def _touch(self) -> None:
        self._send(codec.frame(Report(0)))
        self._later()

    def _send(self, frame: bytes) -> None:
        if self._transport is not None and not self._transport.is_closing():
            self._transport.write(frame)


async def crowd_of(options: argparse.Namespace) -> None:
    host, _, port = options.manager.rpartition(":")
    with open(getattr(options, "pass")) as file:
        token, authority = node_pass.parse(file.read())
    crowd = Crowd(host, int(port), token, authority)
    agents = [Agent(number, crowd) for number in range(options.agents)]

    async def slowly(some: list[Agent]) -> None:
        for agent in some:
            await agent.connect()

    tasks = [asyncio.ensure_future(slowly(agents[first::16])) for first in range(16)]
    end = time.monotonic() + options.seconds
    while time.monotonic() < end:
        print(json.dumps({"joined": crowd.joined, "jobs": crowd.jobs}), flush=True)
        await asyncio.sleep(0.25)
    for task in tasks:
        task.cancel()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--manager", required=True)
    parser.add_argument("--pass", required=True)
    parser.add_argument("--agents", type=int, default=2000)
    parser.add_argument("--seconds", type=float, default=60)
    uvloop.run(crowd_of(parser.parse_args()))
    return 0


if __name__ == "__main__":
    sys.exit(main())
