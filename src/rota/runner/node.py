"""The agent of a node: a runner that reaches its manager by address and token, and stays when it is idle.

The facts about its host are found here, unless they are given as options.
"""

from __future__ import annotations

import os
import re
import socket

import msgspec

from rota.boot import machine_id
from rota.host import usable_memory
from rota.plan.site.node_facts import NodeFacts
from rota.runner.report.link import ByteStream, Dial

_GPU = re.compile(r"nvidia\d+")


class NodeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How an agent was started. Facts that are not given are found on the host."""

    name: str = ""  #: of the node; empty: the host's
    cores: int | None = None
    mem: int | None = None
    disk: int | None = None
    gpus: int | None = None
    properties: dict[str, str | int | bool] = {}
    hours: str = ""


class Node:
    """The name of a node, the token that proves it, and the facts about its host."""

    stays = True  #: does it wait for more work, and for the next manager, however long that takes?
    alone = True  #: is it the only one here that gives cores to jobs?
    key = ""  #: by which the manager knows a runner with a ticket again
    machine = ""  #: where it is, if the name is not that of its machine

    def __init__(self, options: NodeOptions, token: str, root: str) -> None:
        self.name = options.name or socket.gethostname() or "localhost"
        self.token = token
        self._options = options
        self._root = root

    @property
    def left_s(self) -> float | None:
        """Seconds until it must end; None: there is no such time."""
        return None

    def facts(self) -> NodeFacts | None:
        given = self._options
        room = os.statvfs(self._root)
        return NodeFacts(
            cores=given.cores or len(os.sched_getaffinity(0)),
            mem=usable_memory() if given.mem is None else given.mem,
            disk=room.f_bavail * room.f_frsize if given.disk is None else given.disk,
            gpus=_gpus() if given.gpus is None else given.gpus,
            machine=machine_id(self.name),
            properties=given.properties,
            hours=given.hours,
        )


def _gpus() -> int:
    try:
        return sum(1 for name in os.listdir("/dev") if _GPU.fullmatch(name))
    except OSError:
        return 0


def tls_dial(host: str, port: int, authority: str) -> Dial:
    """TLS connections to a manager. Raises `OSError` if this authority cannot be used."""
    from rota.runner.report.tls_stream import Resolver, TlsStream, context_for

    context = context_for(authority)
    resolver = Resolver(host, port)

    def dial() -> ByteStream:
        return TlsStream(*resolver.next(), context)

    return dial
