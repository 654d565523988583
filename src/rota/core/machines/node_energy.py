"""The energy state of nodes. Data only; `core.machines.sleep_and_wake` decides."""

from __future__ import annotations

from rota.core.machines.energy_rules import EnergyRules


class NodeEnergy:
    """State of the feature `energy`: in use if nodes may sleep, or if one sleeps from earlier."""

    __slots__ = ("doubt", "idle_since", "rules", "since")

    def __init__(self) -> None:
        self.rules = EnergyRules()  #: when nodes may sleep
        #: node → monotonic time since when it has been idle, or in the energy state of its record
        self.idle_since: dict[str, float] = {}
        self.since: dict[str, float] = {}
        self.doubt = ""  #: the last reported mistake in `keep_alive`
