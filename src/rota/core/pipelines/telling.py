"""Effects for those who watch a session. They hold the session itself: when they are carried out, a later one may
have taken its place.
"""

from __future__ import annotations

from rota.core.effects import Effect
from rota.core.events import Asker
from rota.core.pipelines.session import Session
from rota.core.pipelines.session_records import SessionNews


class FollowSession(Effect, frozen=True):
    """Tell a client from now on what happens in a session."""

    to: Asker
    session: Session


class TellSession(Effect, frozen=True):
    """Tell the watchers of a session what happened."""

    session: Session
    news: list[SessionNews]
    over: bool = False
