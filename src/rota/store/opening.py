"""Makes the store of a URL: `sqlite:///home/ann/.rota/rota.db`, or `memory:` for tests and the simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from rota.errors import BadInput
from rota.store.base import Approve, ClosedStore, Store
from rota.store.sqlite.closed import ClosedSqlite
from rota.store.sqlite.database import DATABASE, is_ours
from rota.store.sqlite.keys import RUN
from rota.store.sqlite.store import RESERVE, SqliteStore

#: What may follow the path of a database, as in `?reserve=0&run=8`: bytes of disk kept free for work that was
#: accepted, and job ids in a run of keys.
_PARAMETERS: Final = {"reserve": RESERVE, "run": RUN}
_SQLITE_FORM: Final = f"sqlite:///PATH/{DATABASE}"


def default_url(home: Path) -> str:
    """The store of a home."""
    return f"sqlite://{quote(str(home.absolute() / DATABASE))}"


def open_store(url: str, *, approve: Approve = lambda _deployment: None) -> Store:
    """Open the store at this URL. The caller holds the lock of the home, and closes the store.

    `approve` is called with the deployment to which the store belongs (empty: none yet) before anything is
    changed, and may raise.

    Raises `BadInput` for a URL of no store, and `StoreRefused` for a store that cannot be used.
    """
    return _kind(url).open(url, approve)


def closed_store(url: str) -> ClosedStore:
    """The store at this URL, which need not exist, to be backed up or restored while nothing has it open.

    Raises `BadInput` for a URL of no store.
    """
    return _kind(url).closed(url)


def is_backup(head: bytes) -> bool:
    """Is this the beginning of a backup of any store? The first hundred bytes tell."""
    return any(kind.is_backup(head) for kind in _KINDS.values())


class _Kind(NamedTuple):
    """How stores of a scheme are made."""

    form: str  #: of their URLs
    open: Callable[[str, Approve], Store]
    closed: Callable[[str], ClosedStore]
    is_backup: Callable[[bytes], bool]


def _kind(url: str) -> _Kind:
    kind = _KINDS.get(url.partition(":")[0])
    if kind is None:
        forms = ", ".join(each.form for each in _KINDS.values())
        raise BadInput(f"there is no store for the URL '{url[:200]}'", hint=f"use one of {forms}")
    return kind


def _open_sqlite(url: str, approve: Approve) -> Store:
    home, given = _parsed(url)
    return SqliteStore(home, reserve=given["reserve"], run=given["run"], approve=approve)


def _parsed(url: str) -> tuple[Path, dict[str, int]]:
    """The home and the parameters in the URL of a database."""
    parts = urlsplit(url)
    path = Path(unquote(parts.path))
    if parts.netloc or parts.fragment or path.name != DATABASE:
        raise BadInput(
            f"'{url[:200]}' is not the URL of a database of Rota",
            hint=f"write {_SQLITE_FORM}: three slashes, and an absolute path",
        )
    given = dict(_PARAMETERS)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in given or not (value.isascii() and value.isdigit()):
            raise BadInput(
                f"'{name}={value}' in the URL of a database is unknown, or no number",
                hint=f"write {_SQLITE_FORM} alone",
            )
        given[name] = int(value)
    return path.parent, given


# Stores in memory are loaded only where they are used: a manager must start quickly.


def _open_memory(url: str, approve: Approve) -> Store:
    from rota.store.memory.opening import open_memory

    return open_memory(url.partition(":")[2], approve)


def _closed_memory(url: str) -> ClosedStore:
    from rota.store.memory.opening import closed_memory

    return closed_memory(url.partition(":")[2])


def _is_backup_of_memory(head: bytes) -> bool:
    from rota.store.memory.backup import is_backup

    return is_backup(head)


_KINDS: Final = {
    "sqlite": _Kind(_SQLITE_FORM, _open_sqlite, lambda url: ClosedSqlite(_parsed(url)[0]), is_ours),
    "memory": _Kind("memory: or memory:NAME", _open_memory, _closed_memory, _is_backup_of_memory),
}
