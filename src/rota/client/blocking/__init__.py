"""The blocking client: one socket, no threads, no asyncio.

All but `transport` is derived from `rota.client.aio` by `make client`: change it there.
"""

from __future__ import annotations

from rota.client.blocking.client import Client, connect
from rota.client.blocking.watching import Watching

__all__ = ["Client", "Watching", "connect"]
