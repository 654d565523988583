"""Questions about sums and machines: each is answered by its own module, beside the loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from rota.errors import NotFound
from rota.manager.accounts import accounts, usage
from rota.manager.views import learning, nodes
from rota.wire import messages as m
from rota.wire.sums import NodeDetailView, NodeView
from rota.wire.views import LearnedGroupView

if TYPE_CHECKING:
    from rota.manager.loop.service import Manager

#: So many attempts of a learning group are told.
_POINTS: Final = 1000


async def answer(manager: Manager, message: m.AskSums) -> Any:
    """What is asked for. Raises `RotaError`."""
    store = manager.store
    match message:
        case m.GetAccounts():
            return await manager.read(lambda: accounts.accounting(store, manager.library.specs, message))
        case m.GetUsage():
            return await manager.read(lambda: usage.usage(store, message))
        case m.GetHistory():
            return await manager.read(lambda: accounts.history(store, message))
        case m.ListNodes():
            return await _nodes(manager)
        case m.GetNode(_n, host):
            node = next((each for each in await _nodes(manager) if each.host == host), None)
            if node is None:
                raise NotFound(f"there is no host '{host[:255]}'", hint="list them with 'rota node list'")
            spans = await manager.read(lambda: usage.history(store, host))
            return NodeDetailView(**structs.asdict(node), history=spans)


async def _nodes(manager: Manager) -> list[NodeView]:
    found = nodes.snapshot(manager.world)
    return await manager.read(lambda: nodes.view(found))


async def learned(manager: Manager, name: str, *, apart: bool) -> list[LearnedGroupView]:
    """What is known about learning groups; about one that is named, also what it is known from."""
    groups = learning.view(manager.world, name)
    if name:
        found = await manager.read(lambda: manager.store.points(name, limit=_POINTS))
        groups[0].points = learning.points(found, apart=apart)
    return groups
