"""What is asked of the manager itself: how it is, that it pause, stop or copy its database, and its tokens."""

from __future__ import annotations

import asyncio
import logging
import os
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec

from rota.core import events
from rota.core.events import Asker
from rota.core.site.manager_pause import leased, starts_nothing, unstarted
from rota.errors import BadInput, Denied, EnvironmentFault
from rota.manager.loop import clock
from rota.manager.metrics.figures import metrics_view
from rota.manager.peers.logins import PREFIX, Maker, Session
from rota.manager.peers.peer import owner
from rota.manager.views.status import manager_view
from rota.plan.language.hostlist import check_name
from rota.store.home.backup import back_up
from rota.wire import codec
from rota.wire import messages as m
from rota.wire.tokens import ADMIN, RUNNER
from rota.wire.views import BackupView, NewSessionView, NewTokenView, PauseView, SettingsView, TokenView, UiLink

if TYPE_CHECKING:
    from rota.manager.loop.service import Manager
    from rota.manager.peers.peer import Peer

log = logging.getLogger("rota.manager")

#: How long runners that are connected get to hand back what has not started.
_RECALL_S = 10.0
_LOOK_AGAIN_S = 0.01
_CERTIFICATES_S = 30.0


async def control(manager: Manager, peer: Peer, ask: m.Control) -> None:
    """Do what an administrator asks of the manager. Raises `RotaError` to refuse it."""
    by = Asker(peer.id, ask.n, peer.user)
    match ask.verb:
        case "status":
            manager.tell(by, manager_view(manager))
        case "doctor":
            manager.tell(by, await manager.checkup.result())
        case "ping":
            manager.tell(by, None)
        case "metrics":
            manager.tell(by, await metrics_view(manager))
        case "settings":
            manager.tell(by, SettingsView(os.getpid(), msgspec.structs.asdict(manager.settings)))
        case "ui-link":
            if peer.session:
                raise Denied("a session cannot make another one", hint="run 'rota manager ui' in a terminal")
            manager.idle_stop_s = None  # who looks at the page wants it to stay
            url = manager.gateway.start()
            maker = Maker(peer.token, peer.user, peer.until)
            manager.answer(by, UiLink(url, manager.logins.code(peer.role, maker)))
        case "ui-redeem":
            token, session = manager.logins.redeem(ask.args.get("code", ""))
            log.info("a browser of %s logged in as %s (%s)", session.maker.name, session.role, session.name)
            until = datetime.fromtimestamp(session.expires_at, UTC)
            left_s = session.expires_at - session.created_at
            maker, own = session.maker, session.role != ADMIN and not session.maker.is_owner(owner())
            made = NewSessionView(
                session.name, session.role, token, until, expires_s=left_s, user=maker.user, own_only=own
            )
            manager.answer(by, made)
        case "ui-leave":
            manager.answer(by, None)
            if peer.session:
                manager.logins.end(peer.token)
        case "stop":
            log.info("told to stop by %s", peer.user)
            manager.tell(by, None)
            manager.stop(kill=ask.args.get("kill") == "true")
        case "pause" | "drain" | "resume":
            manager.answer(by, await _pause_or_resume(manager, ask.verb, peer.user))
        case "backup":
            manager.answer(by, await _back_up(manager, peer, ask))
        case "token-add":
            manager.answer(by, await _new_token(manager, ask.args))
        case "token-check":
            token = ask.args.get("token", "")
            known = manager.tokens.verify(token, clock.now()) or manager.logins.verify(token)
            manager.tell(by, known is not None)
        case "token-list":
            tokens = [_token_view(record) for record in manager.tokens.list()]
            manager.tell(by, tokens + [_session_view(session) for session in manager.logins.list()])
        case "token-remove":
            _remove_token(manager, ask.args.get("name", ""))
            manager.answer(by, None)
        case _:
            raise BadInput(f"the manager does not know '{ask.verb}'")


# ------------------------------------------------------------------ pause, drain, resume

_HAPPENS = {"pause": events.ManagerPaused, "drain": events.ManagerDrained, "resume": events.ManagerResumed}


async def _pause_or_resume(manager: Manager, verb: str, user: str) -> PauseView:
    world = manager.world
    if world.stopping:
        raise EnvironmentFault("the manager is stopping", hint="start it again with 'rota manager start'")
    log.info("told to %s by %s", verb, user)
    manager.happened(_HAPPENS[verb]())
    await manager.committed()
    if verb != "resume":
        await _handed_back(manager)
    return PauseView(
        paused=world.paused,
        draining=world.draining,
        running=leased(world),
        unreachable=sum(len(unstarted(world, runner)) for runner in world.runners.values()),
    )


async def _handed_back(manager: Manager) -> None:
    """Wait until runners have said of everything that was sent to them that it has started or never will.

    Of those that do not answer nothing can be promised: they are asked again when they come back.
    """
    limit = time.monotonic() + _RECALL_S
    while manager.runners.hold_leases(unstarted_only=True) and starts_nothing(manager.world):
        if time.monotonic() > limit:
            return
        await asyncio.sleep(_LOOK_AGAIN_S)


# ------------------------------------------------------------------ backup


async def _back_up(manager: Manager, peer: Peer, ask: m.Control) -> BackupView:
    """Copy the database in a thread of its own, telling the asker how far it is."""

    def progress(share: float) -> None:
        if manager.world.stopping or peer.closed:
            raise EnvironmentFault("the manager stopped before the backup was done", hint="make it again")
        manager.loop.call_soon_threadsafe(peer.send, m.Item(ask.n, codec.body(share)))

    path, force = ask.args.get("path", ""), ask.args.get("force") == "true"
    # Not one of the readers: a large copy takes long, and they are few.
    made = await manager.loop.run_in_executor(
        None, lambda: back_up(manager.home.path, path, force=force, in_use=True, progress=progress)
    )
    log.info("%s backed up %d jobs to %s", peer.user, made.jobs, made.path)
    return BackupView(made.path, made.bytes, made.jobs, made.generation)


# ------------------------------------------------------------------ tokens


async def _authority(manager: Manager) -> str:
    """The certificate by which others know this deployment, as PEM."""
    manager.tls_wanted.set()
    try:
        await asyncio.wait_for(manager.tls_ready.wait(), _CERTIFICATES_S)
        return manager.home.ca.read_text()
    except (TimeoutError, OSError):
        raise EnvironmentFault("there are no certificates yet", hint="see 'rota manager logs'") from None


async def _new_token(manager: Manager, args: dict[str, str]) -> NewTokenView:
    now = clock.now()
    expires_at = None
    if text := args.get("expires_s"):
        try:
            expires_at = now + float(text)
            expires_on = datetime.fromtimestamp(expires_at, UTC)
        except (ValueError, OverflowError, OSError):
            raise BadInput(f"a token cannot expire in '{text}' seconds") from None
    name, role = args.get("name", ""), args.get("role", "user")
    if name.startswith(PREFIX):
        raise BadInput(f"names that begin with {PREFIX} are those of sessions", hint="choose another name")
    host = args.get("host")
    if host is not None:
        check_name(host)  # an empty one is no word for all of them
    # Whoever gets a token comes by TLS, and with that of a runner needs to be told whom to trust.
    authority = await _authority(manager)
    token = manager.tokens.create(name, role, expires_at, now=now, host=host, user=args.get("user"))
    expires = expires_on if expires_at is not None else None
    return NewTokenView(name, role, token, expires, authority if role == RUNNER else "")


def _remove_token(manager: Manager, name: str) -> None:
    """Make a token, or a session, worthless, with all that was opened and made with it."""
    if manager.logins.end(name):
        return
    manager.tokens.remove(name)
    manager.logins.removed(name)
    manager.connections.hang_up(name)


def _session_view(session: Session) -> TokenView:
    return TokenView(
        name=session.name,
        role=session.role,
        created_at=datetime.fromtimestamp(session.created_at, UTC),
        expires_at=datetime.fromtimestamp(session.expires_at, UTC),
        of=session.maker.name,
    )


def _token_view(record: Any) -> TokenView:
    expires = record.expires_at
    return TokenView(
        name=record.name,
        role=record.role,
        created_at=datetime.fromtimestamp(record.created_at, UTC),
        expires_at=datetime.fromtimestamp(expires, UTC) if expires else None,
        host=record.host,
        user=record.user,
    )
