"""Requests about machines: their condition, use by hand, and which of them need attention."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from rota.core.machines.machine_events import MachineReserved, MachineReturned, MachineSet
from rota.manager.feature import FeatureService, ManagerFeature, Serve, Services
from rota.manager.peers.ownership import restricted
from rota.manager.peers.peer import Peer
from rota.plan.site.site_builder import host_record
from rota.wire import messages as m
from rota.wire.views import AttentionView


class Machines(FeatureService):
    """Turns requests into events. The engine decides, also about permissions."""

    def __init__(self, services: Services) -> None:
        self._world = services.world
        self._turns = services.turns

    def requests(self) -> Mapping[type[Any], Serve]:
        return {m.SetMachine: self._set, m.ReserveMachine: self._reserve, m.ReturnMachine: self._return}

    def attention(self) -> list[AttentionView]:
        """Broken machines, each with its owner."""
        found = []
        for host, value in sorted(self._world.site["host"].items()):
            if value.get("condition") == "broken":
                record = host_record(self._world.site, host)
                whose = f" (owner: {record.owner})" if record.owner else ""
                why = f": {record.condition_reason}" if record.condition_reason else ""
                found.append(AttentionView("broken", [], 1, f"machine {host}{whose} is broken{why}"))
        return found

    async def _set(self, peer: Peer, ask: m.SetMachine) -> None:
        self._turns.happened(
            MachineSet(
                by=peer.asker(ask.n),
                operator=not restricted(peer),
                hosts=ask.hosts,
                condition=ask.condition,
                reason=ask.reason,
                owner=ask.owner,
                groups=ask.groups,
                provision_cmd=ask.provision_cmd,
                now=ask.now,
            )
        )

    async def _reserve(self, peer: Peer, ask: m.ReserveMachine) -> None:
        self._turns.happened(
            MachineReserved(
                by=peer.asker(ask.n),
                operator=not restricted(peer),
                host=ask.host,
                seconds=ask.seconds,
                when_free=ask.when_free,
            )
        )

    async def _return(self, peer: Peer, ask: m.ReturnMachine) -> None:
        self._turns.happened(MachineReturned(by=peer.asker(ask.n), operator=not restricted(peer), host=ask.host))


FEATURE: Final = ManagerFeature(name="machine conditions", make=Machines)
