"""Makes the store of a URL: `sqlite:///home/ann/.rota/rota.db`, or `memory:` for tests and the simulator."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Final
from urllib.parse import parse_qsl, quote, unquote, urlsplit

from rota.errors import BadInput
from rota.store.base import Approve, Store
from rota.store.memory.store import MemoryStore
from rota.store.memory.tables import MemoryTables
from rota.store.sqlite.database import DATABASE
from rota.store.sqlite.keys import RUN
from rota.store.sqlite.store import RESERVE, SqliteStore

#: Tables of stores in memory that have a name, so that they can be opened again.
_NAMED: Final[dict[str, MemoryTables]] = {}
#: What may follow the path of a database, as in `?reserve=0&run=8`: bytes of disk kept free for work that was
#: accepted, and job ids in a run of keys.
_PARAMETERS: Final = {"reserve": RESERVE, "run": RUN}


def default_url(home: Path) -> str:
    """The store of a home."""
    return f"sqlite://{quote(str(home.absolute() / DATABASE))}"


def open_store(url: str, *, approve: Approve = lambda _deployment: None) -> Store:
    """Open the store at this URL. The caller holds the lock of the home, and closes the store.

    `approve` is called with the deployment to which the store belongs (empty: none yet) before anything is
    changed, and may raise.

    Raises `BadInput` for a URL of no store, and `StoreRefused` for a store that cannot be used.
    """
    opener = _OPENERS.get(url.partition(":")[0])
    if opener is None:
        raise BadInput(
            f"there is no store for the URL '{url[:200]}'", hint=f"use one of {', '.join(_FORMS.values())}"
        )
    return opener(url, approve)


def _open_sqlite(url: str, approve: Approve) -> Store:
    parts = urlsplit(url)
    path = Path(unquote(parts.path))
    if parts.netloc or parts.fragment or path.name != DATABASE:
        raise BadInput(
            f"'{url[:200]}' is not the URL of a database of Rota",
            hint=f"write {_FORMS['sqlite']}: three slashes, and an absolute path",
        )
    given = dict(_PARAMETERS)
    for name, value in parse_qsl(parts.query, keep_blank_values=True):
        if name not in given or not (value.isascii() and value.isdigit()):
            raise BadInput(
                f"'{name}={value}' in the URL of a database is unknown, or no number",
                hint=f"write {_FORMS['sqlite']} alone",
            )
        given[name] = int(value)
    return SqliteStore(path.parent, reserve=given["reserve"], run=given["run"], approve=approve)


def _open_memory(url: str, approve: Approve) -> Store:
    name = url.partition(":")[2]
    tables = _NAMED[name].copy() if name in _NAMED else MemoryTables()
    if name:
        _NAMED[name] = tables
    approve(tables.meta.get("deployment", ""))
    return MemoryStore(tables)


_FORMS: Final = {"sqlite": f"sqlite:///PATH/{DATABASE}", "memory": "memory: or memory:NAME"}
_OPENERS: Final[dict[str, Callable[[str, Approve], Store]]] = {"sqlite": _open_sqlite, "memory": _open_memory}
