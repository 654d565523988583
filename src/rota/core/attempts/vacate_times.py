"""How long a job may take to be gone once it is told to make room for another."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.core.jobs.job import Spec

#: For messages on their way, and whatever is slow on a busy machine.
_MARGIN_S: Final = 1.0
#: Behaviours of a job that is being ended may take so much of the grace once more.
_BEHAVIOURS_S: Final = 5.0


class VacateTimes(Struct, frozen=True, kw_only=True):
    """What the settings of the manager give to jobs that are being ended."""

    checkpoint_s: float = 0.0  #: to write a checkpoint, for those that asked for one
    grace_s: float = 0.0  #: between TERM and KILL
    epilogue_s: float = 0.0  #: for the epilogue of a node; 0: there is none

    def leave_s(self, spec: Spec) -> float:
        """So long after it is told to, a job with this specification is gone, at the latest."""
        if self == _AT_ONCE:
            return 0.0
        asks = spec.checkpoint_s is not None or bool(spec.signal)
        needed = self.grace_s + self.epilogue_s + _MARGIN_S
        if asks:
            needed += self.checkpoint_s
        if spec.on_success or spec.on_failure or spec.on_exit:
            needed += min(self.grace_s, _BEHAVIOURS_S)
        if spec.request:
            needed += self.grace_s  # its parts on other hosts end after it, in the same way
        return needed


_AT_ONCE: Final = VacateTimes()
