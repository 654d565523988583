"""From a configuration to its transport."""

from __future__ import annotations

from rota.populate.config.configuration import RQ, Configuration
from rota.populate.transport.base import Transport, TransportFailed


def open_transport(configuration: Configuration) -> Transport:
    """Raises `TransportFailed`."""
    if configuration.transport == RQ:
        from rota.populate.transport.rq import RqTransport

        return RqTransport(configuration.redis_url)
    raise TransportFailed("the transport 'rota' is not built yet", hint="use transport: rq")
