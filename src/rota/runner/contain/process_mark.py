"""The mark that every process of a lease carries in its environment, so that survivors can be found.

It names the node too: two agents may run on one machine and share a job.
"""

from __future__ import annotations

VARIABLE = b"ROTA_LEASE"

_node = b""


def set_node(name: str) -> None:
    """Mark what this process starts with this node from now on."""
    global _node
    _node = name.encode()


def value(token: int, node: str | None = None) -> bytes:
    """The mark of a lease on this node, or on another `node`."""
    return b"%x@%s" % (token, _node if node is None else node.encode())


def entry(token: int) -> bytes:
    return VARIABLE + b"=" + value(token)
