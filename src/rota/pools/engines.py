"""All engines, by their names in `rota.toml`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from rota.errors import BadInput
from rota.pools.base import Engine, EngineSetup
from rota.pools.command import CommandEngine

ENGINES: Final[Mapping[str, Callable[[EngineSetup], Engine]]] = {"command": CommandEngine}


def make_engine(kind: str, setup: EngineSetup) -> Engine:
    """The engine of one pool. Raises `BadInput` if there is none of this kind."""
    made = ENGINES.get(kind)
    if made is None:
        raise BadInput(
            f"pool '{setup.pool}': there is no engine '{kind}'", hint=f"use one of: {', '.join(ENGINES)}"
        )
    return made(setup)
