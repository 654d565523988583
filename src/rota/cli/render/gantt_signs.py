"""The signs of what lies behind the bars of a Gantt chart: states and conditions of hosts."""

from __future__ import annotations

from typing import Final

#: State of a host → code of the cell, sign, word in the legend. Unknown while no manager was running.
STATES: Final = {
    "drained": (-2, "d", "drained"),
    "draining": (-2, "d", "drained"),
    "closed": (-3, "c", "closed"),
    "asleep": (-4, "z", "asleep"),
    "away": (-5, "!", "down"),
    "suspected": (-5, "!", "down"),
    "gone": (-6, " ", "not known"),
    "unseen": (-6, " ", "not known"),
    "unknown": (-6, " ", "not known"),
    "manual": (-7, "m", "manual"),
    "broken": (-8, "b", "broken"),
    "removed": (-9, "-", "removed"),
}
#: Conditions that should catch the eye.
INKS: Final = {-7: "33", -8: "31"}
SIGNS: Final = {code: (sign, word) for code, sign, word in STATES.values()}
