"""The deployment's own certificate authority, which may still have to be made."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Final

from rota.errors import EnvironmentFault

_TIMEOUT_S: Final = 30.0


class DeploymentCertificate:
    """Certificates are made in a quiet moment, or as soon as they are wanted."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.wanted = asyncio.Event()
        self.ready = asyncio.Event()

    async def certificate(self) -> str:
        """The certificate by which others know this deployment, as PEM. Raises `EnvironmentFault`."""
        self.wanted.set()
        try:
            await asyncio.wait_for(self.ready.wait(), _TIMEOUT_S)
            return self._file.read_text()
        except (TimeoutError, OSError):
            raise EnvironmentFault("there are no certificates yet", hint="see 'rota manager logs'") from None
