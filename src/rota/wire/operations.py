"""The operations that a manager offers: every message that it takes, and the roles that may send it.

Features add theirs (`manager.feature`); those of `permissions` are always there.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import or_
from typing import Any, NamedTuple

from rota.errors import Bug
from rota.wire import messages as m
from rota.wire.permissions import MAY_SEND, allowed


class Operation(NamedTuple):
    """A message of a client, with its number `n` and a tag of its own, and the roles that may send it."""

    message: type[m.Message]
    roles: frozenset[str]


class Operations:
    """All operations of one manager."""

    def __init__(self, added: Iterable[Operation] = ()) -> None:
        """Raises `Bug` if an operation exists already, or is for a role that does not exist."""
        self.accepts: Any = m.FromClient | m.FromRunner  #: union of all messages, for decoding
        self._may_send: dict[str, set[type[m.Message]]] = {role: set() for role in MAY_SEND}
        known = set().union(*MAY_SEND.values())
        added = tuple(added)
        for operation in added:
            if operation.message in known or not operation.roles <= MAY_SEND.keys():
                raise Bug(f"{operation.message.__name__} is an operation already, or for nobody")
            known.add(operation.message)
            for role in operation.roles:
                self._may_send[role].add(operation.message)
        if added:
            self.accepts = reduce(or_, (each.message for each in added), self.accepts)

    def allowed(self, role: str, message: m.Message) -> bool:
        """May a peer that was welcomed as `role` send this message?"""
        return allowed(role, message) or type(message) in self._may_send.get(role, ())
