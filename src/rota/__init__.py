"""Rota: one job scheduler, from a single command on a laptop to a shared cluster.

``rota.connect()`` gives the Python client; everything else is reached through it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"
__all__ = ["AsyncClient", "Client", "RotaError", "__version__", "connect", "connect_async"]

if TYPE_CHECKING:
    from rota.client import AsyncClient, Client, connect, connect_async
    from rota.errors import RotaError


def __dir__() -> list[str]:
    """What completion offers before it is loaded."""
    return __all__


def __getattr__(name: str) -> Any:
    """Load the client on first use, because the runner must start fast."""
    if name in {"AsyncClient", "Client", "connect", "connect_async"}:
        from rota import client

        return getattr(client, name)
    if name == "RotaError":
        from rota.errors import RotaError

        return RotaError
    raise AttributeError(f"module 'rota' has no attribute {name!r}")
