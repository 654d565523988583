"""A delegated pool over `tests.pools.engine`, and a manager that uses it (``python -m tests.pools.slow …``)."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import msgspec

from rota.core.events import HostAppeared
from rota.home import Home
from rota.manager.host import demand
from rota.manager.loop import startup
from rota.plan.need import Need
from rota.settings import Settings


class SlowPool:
    """Asks the engine for runners: an array of elements for each need of which some are missing."""

    name = "slow"

    def __init__(self, home: Home, settings: Settings) -> None:
        self._spool = home.path / "spool"
        for part in ("pending", "running", "tickets"):
            (self._spool / part).mkdir(parents=True, exist_ok=True)

    def hosts(self) -> list[HostAppeared]:
        return []

    def start(self) -> None:
        pass

    def check(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def want(self, runners: dict[Need, int]) -> None:
        with open(self._spool / "stated", "a") as file:
            file.write(f"{sum(runners.values())}\n")
        exist: dict[Need, list[str]] = {need: [] for need in runners}
        pending = set(os.listdir(self._spool / "pending"))
        for element in [*os.listdir(self._spool / "running"), *pending]:
            need = self.made_for(self._secret(element))
            if need is not None:
                exist.setdefault(need, []).append(element)
        for need, elements in exist.items():
            missing = runners.get(need, 0) - len(elements)
            if missing > 0:
                self._submit_array(need, missing)
            for element in [each for each in elements if each in pending][: max(0, -missing)]:
                (self._spool / "pending" / element).unlink(missing_ok=True)

    def _submit_array(self, need: Need, number: int) -> None:
        array = os.urandom(4).hex()
        with open(self._spool / "arrays", "a") as file:
            file.write(f"{number}\n")
        for index in range(number):
            element = f"{array}-{index:05}"
            secret = os.urandom(16).hex()
            (self._spool / "tickets" / element).write_text(secret)
            (self._spool / "tickets" / secret).write_bytes(msgspec.json.encode(need))
            (self._spool / "pending" / element).touch()

    def _secret(self, element: str) -> str:
        return (self._spool / "tickets" / element).read_text()

    def made_for(self, ticket: str) -> Need | None:
        path = Path(self._spool / "tickets" / ticket)
        if not ticket.isalnum() or not path.exists():
            return None
        return msgspec.json.decode(path.read_bytes(), type=Need)

    def gone(self, ticket: str) -> None:
        (self._spool / "tickets" / ticket).unlink(missing_ok=True)


if __name__ == "__main__":
    demand.RESTATE_S = float(os.environ.get("RESTATE_S", "60"))
    sys.exit(startup.main(make_pool=SlowPool))
