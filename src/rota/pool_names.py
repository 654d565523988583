"""Names of pools. Every deployment has the planned ones; all others are delegated, and configured by the site."""

from __future__ import annotations

import re
from typing import Final

LOCAL: Final = "local"  #: the manager's own host
NODES: Final = "nodes"  #: hosts with an agent
#: Pools whose hosts belong to the deployment, in the order in which they are tried.
PLANNED: Final = (LOCAL, NODES)
NO_POOL: Final = "none"  #: what users write to name no pool
#: What names of pools look like, in words.
NAME_HINT: Final = "begin it with a lower-case letter; then letters, digits and dashes, 32 characters at most"
_NAME: Final = re.compile(r"[a-z][a-z0-9-]{0,31}")
#: Unique names of runners: the deployment, the pool, and a random number.
_RUNNER: Final = re.compile(r"rota-[0-9a-f]{8}-([a-z][a-z0-9-]{0,31})-[0-9a-f]{16}")


def is_pool_name(name: str) -> bool:
    """Could a pool have this name?"""
    return _NAME.fullmatch(name) is not None


def pool_of_runner(name: str) -> str:
    """The delegated pool of a runner, from its unique name; empty: it is none of such a pool."""
    found = _RUNNER.fullmatch(name)
    return found[1] if found is not None else ""


def runners_like(pool: str) -> str:
    """A pattern, as shells have them, of names of runners of this pool; empty: no pool can be called so."""
    hexadecimal = "[0-9a-f]"
    return f"rota-{hexadecimal * 8}-{pool}-{hexadecimal * 16}" if is_pool_name(pool) else ""


def is_delegated(pool: str) -> bool:
    """Is this the name of a pool whose machines belong to another engine? An empty name is none."""
    return bool(pool) and pool not in PLANNED
