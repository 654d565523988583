"""What identifies a manager, and how it was started."""

from __future__ import annotations

from rota.home import Home
from rota.manager.loop import clock
from rota.settings import Settings


class Deployment:
    """The facts about this manager that several components need."""

    def __init__(
        self,
        home: Home,
        settings: Settings,
        *,
        id: str,
        generation: int,
        idle_stop_s: float | None,
        again: bool = False,
    ) -> None:
        self.home = home
        self.settings = settings
        self.id = id
        self.generation = generation
        self.started_at = clock.now()
        self.address: str | None = None  #: of the TLS port, once it is bound
        self.idle_stop_s = idle_stop_s  #: stop after so much idle time; None: never
        self.stopped_idle = False  #: the manager stops for that reason
        self.again = again  #: this process was a manager before, which started anew because of a bug
