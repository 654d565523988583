"""Dispatches the requests of clients to the modules of this package.

Answers are effects like any other: they leave after the commit of everything they may have seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from rota.manager.feature import Serve
from rota.manager.loop.turns import TurnLoop
from rota.manager.peers.peer import Peer
from rota.manager.requests.actions import Actions
from rota.manager.requests.control import ManagerControl
from rota.manager.requests.questions import Questions
from rota.manager.requests.watch_requests import WatchRequests
from rota.manager.submit.uploads import Uploads
from rota.manager.views import site_records
from rota.manager.watch.feed import Feeds
from rota.manager.watch.watches import Watches
from rota.wire import messages as m


class Requests:
    """Handles requests; those of one peer come in order."""

    def __init__(
        self,
        *,
        turns: TurnLoop,
        features: Mapping[type[Any], Serve],
        stopped: Callable[[Peer, int], None],
        uploads: Uploads,
        questions: Questions,
        actions: Actions,
        watching: WatchRequests,
        watches: Watches,
        feeds: Feeds,
        control: ManagerControl,
    ) -> None:
        self._turns = turns
        self._features = features  #: operations of features
        self._stopped = stopped  #: told when a client closes a stream that may be one of theirs
        self._uploads = uploads
        self._questions = questions
        self._actions = actions
        self._watching = watching
        self._watches = watches
        self._feeds = feeds
        self._control = control

    async def handle(self, peer: Peer, message: Any) -> None:
        """Take one request. Raises `RotaError` to refuse it."""
        if serve := self._features.get(type(message)):
            await serve(peer, message)
            return
        match message:
            case m.Add():
                await self._uploads.add(peer, message)
            case m.Drop(n, submission):
                self._uploads.drop(peer, submission)
                self._turns.acknowledge(peer.asker(n), None)
            case m.Act():
                await self._actions.act(peer, message)
            case m.ChangeWalltime():
                await self._actions.change_walltime(peer, message)
            case m.Modify():
                await self._actions.modify(peer, message)
            case m.SetLimit(n):
                self._actions.set_limit(peer.asker(n), message)
            case m.SetSite(n):
                self._turns.happened(site_records.changed(peer.asker(n), message))
            case m.Learned(n, name, True):
                self._actions.forget_learned(peer.asker(n), name)
            case m.Watch():
                await self._watching.open(peer, message)
            case m.Feed(n):
                await self._feeds.open(peer, n)
            case m.Stop(n, stream):
                self._watches.close(peer, stream)
                self._feeds.close(peer, stream)
                self._stopped(peer, stream)
                self._turns.acknowledge(peer.asker(n), None)
            case m.Control():
                await self._control.control(peer, message)
            case _:
                self._turns.answer(peer.asker(message.n), await self._questions.answer(peer, message))
