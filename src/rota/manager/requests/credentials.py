"""Tokens, and the sessions of browsers: making, listing and removing them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from datetime import UTC, datetime

from rota.errors import BadInput, Denied
from rota.manager.loop import clock
from rota.manager.peers.certificate import DeploymentCertificate
from rota.manager.peers.logins import PREFIX, BrowserSession, Logins, SessionCreator
from rota.manager.peers.peer import Peer, hang_up, owner
from rota.plan.language.hostlist import check_name
from rota.wire.permissions import ADMIN, RUNNER
from rota.wire.tokens import TokenBook, TokenRecord
from rota.wire.views import NewSessionView, NewTokenView, TokenView

log = logging.getLogger("rota.manager")


class Credentials:
    """What gives access to this deployment."""

    def __init__(
        self, tokens: TokenBook, logins: Logins, authority: DeploymentCertificate, peers: Mapping[int, Peer]
    ) -> None:
        self._tokens = tokens
        self._logins = logins
        self._authority = authority
        self._peers = peers

    def is_valid(self, token: str) -> bool:
        """Is this a token, or that of a session?"""
        return (self._tokens.verify(token, clock.now()) or self._logins.verify(token)) is not None

    def views(self) -> list[TokenView]:
        """Tokens, then sessions."""
        return [
            *(_token_view(record) for record in self._tokens.list()),
            *(_session_view(session) for session in self._logins.list()),
        ]

    async def add(self, args: dict[str, str]) -> NewTokenView:
        """Make a token. Raises `BadInput`."""
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
            check_name(host)  # an empty name does not mean all nodes
        # The holder of a token comes by TLS. With that of a runner it needs the certificate to trust, too.
        certificate = await self._authority.certificate()
        token = self._tokens.create(name, role, expires_at, now=now, host=host, user=args.get("user"))
        expires = expires_on if expires_at is not None else None
        return NewTokenView(name, role, token, expires, certificate if role == RUNNER else "")

    def remove(self, name: str) -> None:
        """Remove a token or a session, and close what was opened with it."""
        if self._logins.end(name):
            return
        self._tokens.remove(name)
        self._logins.removed(name)
        hang_up(self._peers, name)

    # -- sessions of browsers

    def refuse_session(self, peer: Peer) -> None:
        """Raise `Denied` if this peer is a browser: a session cannot make another one."""
        if peer.session:
            raise Denied("a session cannot make another one", hint="run 'rota manager ui' in a terminal")

    def code(self, peer: Peer) -> str:
        """A one-time code with which a browser logs in as this peer."""
        return self._logins.code(peer.role, SessionCreator(peer.token, peer.user, peer.until))

    def redeem(self, code: str) -> NewSessionView:
        """The session that a code becomes. Raises `Denied`."""
        token, session = self._logins.redeem(code)
        creator = session.creator
        log.info("a browser of %s logged in as %s (%s)", creator.name, session.role, session.name)
        return NewSessionView(
            session.name,
            session.role,
            token,
            datetime.fromtimestamp(session.expires_at, UTC),
            expires_s=session.expires_at - session.created_at,
            user=creator.user,
            own_only=session.role != ADMIN and not creator.is_owner(owner()),
        )

    def log_out(self, peer: Peer) -> None:
        """End the session of this peer, if it is one."""
        if peer.session:
            self._logins.end(peer.token)


def _session_view(session: BrowserSession) -> TokenView:
    return TokenView(
        name=session.name,
        role=session.role,
        created_at=datetime.fromtimestamp(session.created_at, UTC),
        expires_at=datetime.fromtimestamp(session.expires_at, UTC),
        of=session.creator.name,
    )


def _token_view(record: TokenRecord) -> TokenView:
    expires = record.expires_at
    return TokenView(
        name=record.name,
        role=record.role,
        created_at=datetime.fromtimestamp(record.created_at, UTC),
        expires_at=datetime.fromtimestamp(expires, UTC) if expires else None,
        host=record.host,
        user=record.user,
    )
