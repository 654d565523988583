"""Rota: one job scheduler, from a single command on a laptop to a shared cluster.

``rota.connect()`` gives the Python client; everything else is reached through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = [
    "AsyncClient",
    "CallFailed",
    "Client",
    "Executor",
    "RotaError",
    "__version__",
    "connect",
    "connect_async",
    "job",
]

if TYPE_CHECKING:
    from rota.client import AsyncClient, Client, Executor, connect, connect_async, job
    from rota.errors import CallFailed, RotaError


def __dir__() -> list[str]:
    """What completion offers before it is loaded."""
    return __all__


def __getattr__(name: str) -> Any:
    """Load the client on first use, because the runner must start fast."""
    if name in {"AsyncClient", "Client", "Executor", "connect", "connect_async", "job"}:
        from rota import client

        return getattr(client, name)
    if name in {"CallFailed", "RotaError"}:
        from rota import errors

        return getattr(errors, name)
    raise AttributeError(f"module 'rota' has no attribute {name!r}")
