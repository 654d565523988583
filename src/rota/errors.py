"""Every error that a user can see: one hierarchy, each with a stable code, a message and a hint.

It has three branches: user errors, environment faults and bugs. Errors become text once, at the boundary (the
command line, the wire); nothing here prints.
"""

from __future__ import annotations

from typing import Self


class RotaError(Exception):
    """Base class of all errors that Rota raises on purpose.

    Its place (line, field) is data, which outer layers complete with `at`; `message` puts it before the text.
    """

    code = "error"
    exit_status = 1

    def __init__(self, text: str, *, hint: str = "", code: str = "", field: str = "", line: int = 0) -> None:
        super().__init__(text)
        self.text = text  #: without its place
        self.hint = hint
        if code:
            self.code = code
        self.field = field  #: the field of a job that it is about; empty: none, or several
        self.label = f"field '{field}'" if field else ""  #: how the message calls the field; empty: the text does
        self.line = line  #: of the input; 0: none
        self.column = 0  #: in that line, from 1; 0: unknown
        self.entry = 0  #: of a list of jobs, from 1; 0: none
        self.source = ""  #: name of the input

    def at(self, *, field: str = "", label: str = "", line: int = 0, entry: int = 0, source: str = "") -> Self:
        """This error, with its place as far as that was not known: what is inside knows it better.

        `label`: how the message calls the field, if not by its name.
        """
        if field and not self.field:
            self.field = field
            self.label = label or f"field '{field}'"
        if not (self.line or self.entry):
            self.line, self.entry = line, entry
        self.source = self.source or source
        return self

    def of(self, whole: str) -> Self:
        """This error, of a part of something larger, which the text names before the field."""
        self.text = f"{', '.join(part for part in (whole, self.label) if part)}: {self.text}"
        self.label = ""
        return self

    def without_line(self) -> Self:
        """This error, of an input that has only one line."""
        self.line = self.entry = 0
        return self

    def called(self, field: str) -> Self:
        """This error, with another name of its field."""
        self.field, self.label = field, f"field '{field}'"
        return self

    def about(self, field: str) -> Self:
        """This error, whose text names this field."""
        self.field = field
        return self

    @property
    def message(self) -> str:
        """What is wrong, after the place."""
        numbers = [f"line {self.line}"] if self.line else []
        if self.line and self.column:
            numbers = [f"line {self.line}, column {self.column}"]
        if self.entry:
            numbers.append(f"(entry {self.entry})" if self.line else f"entry {self.entry}")
        place = " ".join([self.source, *numbers] if self.source else numbers)
        return ": ".join(part for part in (place, self.label, self.text) if part)

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


class BadDocument(BadInput):
    """Something in a document. Its path leads there from the top: names of fields, and positions in lists.

    The message calls what has a name (`of`) by that, and a field by its own.
    """

    def __init__(self, text: str, *, path: tuple[str | int, ...], hint: str, of: str = "") -> None:
        names = [step for step in path if isinstance(step, str)]
        names = names[self.above(path) :] if of else names
        super().__init__(text, hint=hint, field=".".join(names))
        self.label = ", ".join(part for part in (of, self.label) if part)
        self.path = path

    def above(self, path: tuple[str | int, ...]) -> int:
        """How many names of the path lead to what has a name."""
        return 2


class BadPipeline(BadDocument):
    """A pipeline that is not as pipelines are."""

    code = "bad_pipeline"

    def __init__(self, text: str, *, path: tuple[str | int, ...], hint: str, of: str = "") -> None:
        super().__init__(text, path=path, hint=hint, of=of)
        self.cycle: tuple[str, ...] = ()  #: elements, each of which depends on the next, the last on the first

    def above(self, path: tuple[str | int, ...]) -> int:
        return 1 if path[0] == "stages" else 2


class BadTables(BadDocument):
    """A configuration of table population that is not as they are."""

    code = "bad_tables"


class NeverFits(UserError):
    """No machine of this deployment could ever run the job."""

    code = "unsatisfiable"


class GangConflict(UserError):
    """No set of machines could ever run all members of a gang together."""

    code = "gang_conflict"


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


class CallFailed(UserError):
    """The call of a function that was waited for has no result. Its cause, where there is one, is an exception of
    the function's own type."""

    code = "call_failed"
    exit_status = 1

    def __init__(self, message: str, *, job: int, type: str, traceback: str = "") -> None:
        super().__init__(message, hint=f"see 'rota show {job}'")
        self.job = job
        self.type = type  #: of the exception, or a reason code
        self.traceback = traceback


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
    job = 0  #: whose it is; the ledger of bugs gets its story


_BY_CODE: dict[str, type[RotaError]] = {
    cls.code: cls
    for cls in (
        BadInput,
        NeverFits,
        GangConflict,
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
    "bad_pipeline": BadInput,
    "bad_tables": BadInput,
    "internal": Bug,
}


def from_code(code: str, message: str, *, hint: str = "") -> RotaError:
    """Rebuild an error that was sent over the wire as (code, message, hint)."""
    return _BY_CODE.get(code, RotaError)(message, hint=hint, code=code)
