"""How machines spent their time, as clients see it: seconds by condition, usage and state."""

from __future__ import annotations

from datetime import datetime

from msgspec import Struct, field


class MachineUsageRow(Struct, kw_only=True, gc=False):
    """Seconds that the machines of one key spent in one way, within one window."""

    host: str  #: the key: a host, a group or the value of a property
    condition: str  #: automated, manual, broken or removed; unknown: before the machine joined
    usage: str  #: idle, pending, scheduled, waiting, installing or running; unknown
    state: str  #: of the node: alive, drained, suspected, asleep, away; unknown: nothing was observed
    seconds: float
    at: datetime  #: start of the window


class MachineUsageView(Struct, kw_only=True, gc=False, rename={"since": "from", "until": "to"}):
    """`rota node usage`: for each key and window, the seconds add up to its length times its machines."""

    since: datetime
    until: datetime
    rows: list[MachineUsageRow]  #: by window, then key
    by: str = "host"
    machines: dict[str, int] = field(default_factory=dict)  #: key → number of machines
    edges: list[datetime] = field(default_factory=list)  #: starts of the windows, then the end of the last
