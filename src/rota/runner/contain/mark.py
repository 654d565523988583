"""The mark that every process of a lease carries in its environment, for whoever looks for survivors.

It names the node too: two agents may run on one machine, and have one job between them.
"""

from __future__ import annotations

VARIABLE = b"ROTA_LEASE"

_node = b""


def set_node(name: str) -> None:
    """From now on this process marks what it starts as being of this node."""
    global _node
    _node = name.encode()


def value(token: int, node: str | None = None) -> bytes:
    """What processes of a lease have; `node`: where, if not here."""
    return b"%x@%s" % (token, _node if node is None else node.encode())


def entry(token: int) -> bytes:
    return VARIABLE + b"=" + value(token)
