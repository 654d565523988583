"""The client for asyncio, and the source of the blocking one.

`jobs`, `watching`, `site` and `manager` have the operations by subject, `connection` drives them, `client` puts
them together. `make client` derives the modules of the same names in `rota.client.blocking`; only `transport`, the
part that moves bytes, is written for each. An operation is added here, as one method over a function of
`rota.client.calls`.
"""

from __future__ import annotations

from rota.client.aio.client import AsyncClient, connect_async
from rota.client.aio.watching import AsyncWatching

__all__ = ["AsyncClient", "AsyncWatching", "connect_async"]
