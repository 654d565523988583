"""What an exception says about its key: that it failed, or only that this was a bad moment."""

from __future__ import annotations

from collections.abc import Iterator

TIMEOUT = "timeout"
TRANSIENT = "transient"
DUPLICATE = "duplicate"
FAILED = "failed"

#: Deadlock, lock timeout, lost connection, and the server that goes down or comes up.
_NUMBERS = frozenset({1213, 1205, 2006, 2013, 2055, 1053})
_STATES = frozenset({"40001", "40P01", "55P03", "57P01", "57P02", "57P03"})
_DUPLICATE_NUMBER = 1062
_DUPLICATE_STATE = "23505"


class Killed(SystemExit):
    """The batch was told to end. An exit, because a populate step lets no other exception through."""


def kind_of(error: BaseException) -> str:
    """`TIMEOUT`, `TRANSIENT`, `DUPLICATE` or `FAILED`, after the error and what caused it."""
    for each in _causes(error):
        names = {cls.__name__ for cls in type(each).__mro__}
        if isinstance(each, Killed) or "BaseTimeoutException" in names:
            return TIMEOUT
        number = each.args[0] if each.args and isinstance(each.args[0], int) else 0
        state = str(getattr(each, "sqlstate", None) or getattr(each, "pgcode", None) or "")
        # Lost in the middle of a statement, psycopg knows no state.
        if number in _NUMBERS or state in _STATES or state.startswith("08") or "LostConnectionError" in names:
            return TRANSIENT
        if "OperationalError" in names and _is_postgresql(each) and not state:
            return TRANSIENT
        if number == _DUPLICATE_NUMBER or state == _DUPLICATE_STATE or "DuplicateError" in names:
            return DUPLICATE
    return FAILED


def _is_postgresql(error: BaseException) -> bool:
    return type(error).__module__.startswith(("psycopg", "psycopg2"))


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    each: BaseException | None = error
    while each is not None and id(each) not in seen:
        seen.add(id(each))
        yield each
        # What was handled before is another story, if the author says so.
        each = each.__cause__ or (None if each.__suppress_context__ else each.__context__)
