"""The Python client: `connect` to a manager, then `add`, `jobs`, `wait`, `kill`…

    import rota

    with rota.connect() as manager:
        added = manager.add(["sleep 1", "sleep 2"], cpus=1, mem="200M")
        print(manager.wait(*added.ids).counts)

`connect_async` gives the same methods for asyncio. Nothing is loaded before it is asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rota.client.aio import AsyncClient, connect_async
    from rota.client.blocking import Client, connect
    from rota.client.executor import Executor
    from rota.client.functions import job

__all__ = ["AsyncClient", "Client", "Executor", "connect", "connect_async", "job"]


def __getattr__(name: str) -> Any:
    if name in {"Client", "connect"}:
        from rota.client import blocking

        return getattr(blocking, name)
    if name in {"AsyncClient", "connect_async"}:
        from rota.client import aio

        return getattr(aio, name)
    if name == "Executor":
        from rota.client.executor import Executor

        return Executor
    if name == "job":
        from rota.client.functions import job

        return job
    raise AttributeError(f"module 'rota.client' has no attribute {name!r}")
