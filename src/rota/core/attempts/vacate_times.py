"""How long a job may take to vacate its resources once it is told to make room."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from rota.plan.ask import Request

#: Allowance for messages and a busy machine.
_MARGIN_S: Final = 1.0
#: Behaviours of a job that is being ended get the grace once more, at most this long.
_BEHAVIOURS_S: Final = 5.0


class VacateTimes(Struct, frozen=True, kw_only=True):
    """The manager's settings for jobs that are being ended."""

    checkpoint_s: float = 0.0  #: to write a checkpoint, for jobs that asked for one
    grace_s: float = 0.0  #: between TERM and KILL
    epilogue_s: float = 0.0  #: for the epilogue on a node; 0: there is none

    def leave_s(self, spec: Request) -> float:
        """Seconds after which a job of this specification is gone at the latest."""
        if self == _AT_ONCE:
            return 0.0
        asks = spec.checkpoint_s is not None or bool(spec.signal)
        needed = self.grace_s + self.epilogue_s + _MARGIN_S
        if asks:
            needed += self.checkpoint_s
        if spec.on_success or spec.on_failure or spec.on_exit:
            needed += min(self.grace_s, _BEHAVIOURS_S)
        if spec.request:
            needed += self.grace_s  # its parts on other hosts end after it, the same way
        return needed


_AT_ONCE: Final = VacateTimes()
