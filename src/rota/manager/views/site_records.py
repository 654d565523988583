"""Records of the site as clients send and see them: JSON becomes values, and values JSON."""

from __future__ import annotations

import msgspec

from rota.core.events import Asker, SiteChanged
from rota.core.machines.hosts import own_resources, shared_hosts
from rota.core.world import World
from rota.errors import BadInput
from rota.plan.site.records import KINDS
from rota.wire import messages as m
from rota.wire.views import SiteHostView, SiteView

_ABOUT_MAX = 1000


def changed(by: Asker, ask: m.SetSite) -> SiteChanged:
    """What a client asks for, as an event. Raises `BadInput` for what is not JSON."""
    changes = []
    for kind, name, text in ask.changes:
        try:
            value = None if text is None else msgspec.json.decode(text)
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadInput(f"the value of {kind[:40]} '{name[:80]}' is not JSON: {error}") from None
        if value is None and text is not None:
            raise BadInput(f"the value of {kind[:40]} '{name[:80]}' is null", hint="remove it instead")
        changes.append((kind, name, value))
    about = " ".join(ask.about[:_ABOUT_MAX].split())
    return SiteChanged(by=by, changes=changes, about=about, base=None if ask.base < 0 else ask.base)


def view(world: World, kinds: list[str]) -> SiteView:
    """The records of these kinds, or of all, and the hosts."""
    for kind in kinds:
        if kind not in KINDS:
            raise BadInput(f"there is no kind '{kind[:40]}' of records", hint=f"use one of {', '.join(KINDS)}")
    encode = msgspec.json.Encoder().encode
    connected = {runner.host for runner in world.runners.values() if runner.connected}
    own = own_resources(world)
    return SiteView(
        version=world.site_version,
        records=[
            (kind, name, encode(value).decode())
            for kind in dict.fromkeys(kinds or KINDS)  # each once, however often it is named
            for name, value in world.site[kind].items()
        ],
        hosts={
            host: SiteHostView(
                cores=its.cpus // 100,
                mem_bytes=its.mem,
                disk_bytes=its.disk,
                gpus=its.gpus,
                connected=host in connected,
                ids=own.get(host, []),
            )
            for host, its in shared_hosts(world).items()
        },
    )
