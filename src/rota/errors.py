"""Every error that a user can see: one hierarchy, each with a stable code, a message and a hint.

It has three branches: user errors, environment faults and bugs. Errors become text once, at the boundary (the
command line, the wire); nothing here prints.
"""

from __future__ import annotations


class RotaError(Exception):
    """Base class of all errors that Rota raises on purpose."""

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


# User errors.


class UserError(RotaError):
    """Something the caller can correct."""

    code = "usage"
    exit_status = 2


class BadInput(UserError):
    """A value, line, flag or selector that cannot be understood or accepted."""

    code = "bad_input"


class NeverFits(UserError):
    """No machine of this deployment could ever run the job."""

    code = "unsatisfiable"


class NotGranted(UserError):
    """The reservation cannot be granted."""

    code = "reservation"


class NotFound(UserError):
    """There is no such job, node, group or other object."""

    code = "not_found"
    exit_status = 3


class Denied(UserError):
    """The credential does not allow this."""

    code = "denied"
    exit_status = 5


class TimedOut(UserError):
    """The caller's timeout has passed."""

    code = "timed_out"
    exit_status = 6


# Environment faults.


class EnvironmentFault(RotaError):
    """The machine, the disk or the network does not provide what Rota needs."""

    code = "environment"
    exit_status = 4


class NoManager(EnvironmentFault):
    """No manager is running, or it cannot be reached."""

    code = "no_manager"


class NotDone(NoManager):
    """Nothing of the request was done: the manager dropped it and starts anew. It may be sent again."""

    code = "not_done"

    def __init__(
        self,
        message: str = "the manager starts anew because of a bug; nothing was done",
        *,
        hint: str = "try again",
        code: str = "",
    ) -> None:
        super().__init__(message, hint=hint, code=code)


class StoreRefused(EnvironmentFault):
    """The store cannot be used: foreign, damaged, locked, too new, or on a network file system."""

    code = "store"


class StoreFull(EnvironmentFault):
    """There is not enough free disk to accept more jobs."""

    code = "disk_full"
    exit_status = 4


class StoreFailed(EnvironmentFault):
    """A commit failed for a reason other than a full disk: the manager must stop acknowledging."""

    code = "store_failed"


class WireError(EnvironmentFault):
    """The bytes are not a valid frame or message of a supported protocol version."""

    code = "protocol"


# Bugs.


class Bug(RotaError):
    """An invariant of Rota was violated. The message has the history of the job concerned."""

    code = "bug"


class IllegalTransition(Bug):
    """A state transition that the table in `core.states` does not allow."""

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
        NotDone,
        StoreRefused,
        StoreFull,
        StoreFailed,
        WireError,
        Bug,
        IllegalTransition,
        UserError,
    )
}


#: Codes that are more specific than their class.
_BY_CODE |= dict.fromkeys(("locked", "damaged", "missing", "foreign", "newer", "copied"), StoreRefused)
_BY_CODE |= {
    "port": EnvironmentFault,
    "other_home": EnvironmentFault,
    "changed": BadInput,
    "not_running": BadInput,
    "internal": Bug,
}


def from_code(code: str, message: str, *, hint: str = "") -> RotaError:
    """Rebuild an error that was sent over the wire as (code, message, hint)."""
    return _BY_CODE.get(code, RotaError)(message, hint=hint, code=code)
