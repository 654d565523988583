"""Every error a person can see: one hierarchy, each with a stable code, a message and a hint.

Three branches: the user's mistake, the environment's fault, and our own bug. Errors are converted
to text once, at the boundary (the command line, the wire); nothing here prints.
"""

from __future__ import annotations


class RotaError(Exception):
    """Base of all errors that Rota raises on purpose."""

    code = "error"
    exit_status = 1

    def __init__(self, message: str, *, hint: str = "", code: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        if code:
            self.code = code

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


# The user's mistakes.


class UserError(RotaError):
    """Something the caller can correct."""

    code = "usage"
    exit_status = 2


class BadInput(UserError):
    """A value, line, flag or selector that cannot be understood or accepted."""

    code = "bad_input"


class NeverFits(UserError):
    """A job that no machine of this deployment could ever run."""

    code = "unsatisfiable"


class NotGranted(UserError):
    """A reservation that cannot be had."""

    code = "reservation"


class NotFound(UserError):
    """No such job, node, group…"""

    code = "not_found"
    exit_status = 3


class Denied(UserError):
    """The credential does not allow this."""

    code = "denied"
    exit_status = 5


class TimedOut(UserError):
    """The time the caller gave has passed."""

    code = "timed_out"
    exit_status = 6


# The environment's faults.


class EnvironmentFault(RotaError):
    """The machine, the disk or the network is not as it must be."""

    code = "environment"
    exit_status = 4


class NoManager(EnvironmentFault):
    """No manager is running, or it cannot be reached."""

    code = "no_manager"


class StoreRefused(EnvironmentFault):
    """The store cannot be used: foreign, damaged, locked, too new, or on a network file system."""

    code = "store"


class StoreFull(EnvironmentFault):
    """There is not enough free disk to accept more jobs."""

    code = "disk_full"
    exit_status = 4


class StoreFailed(EnvironmentFault):
    """A commit failed for a reason that is not a full disk: the manager must stop acknowledging."""

    code = "store_failed"


class WireError(EnvironmentFault):
    """Bytes that are not a valid frame or message of a protocol version we speak."""

    code = "protocol"


# Our own bugs.


class Bug(RotaError):
    """Something that cannot happen did. Carries the story of the job concerned."""

    code = "bug"


class IllegalTransition(Bug):
    """A state change that the table in `core.states` does not allow."""

    code = "illegal_transition"


_BY_CODE: dict[str, type[RotaError]] = {
    cls.code: cls
    for cls in (
        BadInput,
        NeverFits,
        NotGranted,
        NotFound,
        Denied,
        TimedOut,
        EnvironmentFault,
        NoManager,
        StoreRefused,
        StoreFull,
        StoreFailed,
        WireError,
        Bug,
        IllegalTransition,
        UserError,
    )
}


#: Codes that say more than their class does.
_BY_CODE |= dict.fromkeys(("locked", "damaged", "missing", "foreign", "newer", "copied"), StoreRefused)
_BY_CODE |= {
    "port": EnvironmentFault,
    "other_home": EnvironmentFault,
    "changed": BadInput,
    "not_running": BadInput,
}


def from_code(code: str, message: str, *, hint: str = "") -> RotaError:
    """The error that travelled over the wire as (code, message, hint)."""
    return _BY_CODE.get(code, RotaError)(message, hint=hint, code=code)
