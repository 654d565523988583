"""The tables `[pools.NAME]` of `rota.toml`: delegated pools, whose machines belong to another engine.

All pools have the same keys and, besides them, those of their engine. A new engine is one entry in `ENGINES`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from msgspec import Struct

from rota.errors import BadInput
from rota.pool_names import NAME_HINT, NO_POOL, PLANNED, is_pool_name

_MOST_RUNNERS: Final = 1_000_000
_MOST_ARGUMENTS: Final = 1000
_LONGEST: Final = 4096
_LONGEST_IDLE_S: Final = 7 * 86400.0


class PoolSettings(Struct, frozen=True, kw_only=True):
    """One delegated pool, as configured."""

    name: str
    engine: str
    max_runners: int | None = None  #: None: the setting `max_runners`
    idle_s: float = 2.0  #: a runner leaves after so long without work
    options: tuple[str, ...] = ()  #: passed through to the engine, one argument each
    address: str = ""  #: where its runners reach the manager; empty: its own host and port
    rota: str = ""  #: how runners are started there; empty: the same path as here
    timeout_s: float = 60.0  #: how long one call of the engine may take
    #: A requested runner that the engine does not show for this long does not exist.
    settle_s: float = 60.0
    extra: dict[str, Any] = {}  #: keys of the engine itself, checked by `ENGINES`

    def most_runners(self, usual: int) -> int:
        """How many runners it may have at most. `usual`: for pools without the key."""
        return usual if self.max_runners is None else self.max_runners


#: Reads the value of a key. Raises `BadInput` that says what it must be, or, after a colon, what it is not.
Reader = Callable[[object], Any]


class EngineKeys(Struct, frozen=True, kw_only=True):
    """The keys of one engine, besides those of all pools."""

    required: Mapping[str, Reader] = {}
    optional: Mapping[str, Reader] = {}
    idle_s: float = 2.0  #: unless the pool says something else


def _text(value: object) -> str:
    if not isinstance(value, str) or not value or not value.isprintable() or len(value) > _LONGEST:
        raise BadInput("must be a text", hint='write it in quotes, like "value"')
    return value


def _is_texts(value: object) -> bool:
    return (
        isinstance(value, list) and len(value) <= _MOST_ARGUMENTS and all(isinstance(each, str) for each in value)
    )


def _texts(value: object) -> tuple[str, ...]:
    if not isinstance(value, list) or not _is_texts(value):
        raise BadInput(
            "must be a list of texts", hint='write one argument each: ["--partition=short", "--account=lab"]'
        )
    return tuple(_text(each) for each in value)


def _command(value: object) -> tuple[str, ...]:
    """A program with its arguments, one text each."""
    if not value or not _is_texts(value):
        raise BadInput(
            "must be a program and its arguments", hint='write it like ["/usr/local/bin/start", "--fast"]'
        )
    words = _texts(value)
    _path(words[0])
    return words


def _number(value: object) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= _MOST_RUNNERS:
        raise BadInput("must be a whole number", hint=f"give from 0 to {_MOST_RUNNERS:,}")
    return value


def _seconds(value: object, least: float = 0.0) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not least <= value <= _LONGEST_IDLE_S:
        raise BadInput("must be a number of seconds", hint=f"give from {least:g} to {_LONGEST_IDLE_S:.0f}")
    return float(value)


def _some_seconds(value: object) -> float:
    """A time in which something must be able to happen."""
    return _seconds(value, least=1.0)


def _address(value: object) -> str:
    text = _text(value)
    host, _colon, port = text.rpartition(":")
    if not host or not (port.isascii() and port.isdigit() and 0 < int(port[:6]) < 65536) or set(text) & set(" /"):
        raise BadInput(f": '{text[:100]}' is not an address", hint='write host and port, like "192.0.2.1:7000"')
    return text


def _path(value: object) -> str:
    text = _text(value)
    if not text.startswith("/"):
        raise BadInput(f": '{text[:100]}' is not an absolute path", hint="begin it with /")
    return text


#: Keys of every pool besides `engine`.
COMMON: Final[Mapping[str, Reader]] = {
    "max_runners": _number,
    "idle_s": _seconds,
    "options": _texts,
    "address": _address,
    "rota": _path,
    "timeout_s": _some_seconds,
    "settle_s": _some_seconds,
}
#: All engines.
ENGINES: Final[Mapping[str, EngineKeys]] = {
    # A site's own programs start, stop and list runners.
    "command": EngineKeys(required={"start": _command, "stop": _command, "list": _command}),
}


def check_address(pool: PoolSettings, host: str) -> str:
    """A warning if only runners on the manager's own machine reach it, else an empty text.

    `host`: the setting, which tickets name unless the pool has an address. Raises `BadInput` if that is of no use.
    """
    if pool.address:
        return ""
    import ipaddress

    hint = (
        f'give address = "NAME:PORT" there, as machines of the pool reach the manager, or set host ({host}) to it'
    )
    try:
        address = ipaddress.ip_address(host or "0.0.0.0")
    except ValueError:
        near = host == "localhost"
    else:
        if address.is_unspecified:
            raise BadInput(
                f"[pools.{pool.name}]: 'address' is missing, and {host or 'an empty host'} is no address that a "
                "runner can connect to",
                hint=hint,
            )
        near = address.is_loopback
    return f"[pools.{pool.name}]: only runners on this machine reach {host}: {hint}" if near else ""


def read_pools(value: object) -> dict[str, PoolSettings]:
    """The pools of a file by name, in its order. Raises `BadInput` that names the pool and the key."""
    if not isinstance(value, dict):
        raise BadInput("'pools' must be tables", hint="write [pools.NAME] and its keys on the lines below")
    return {name: _pool(name, table) for name, table in value.items()}


def _pool(name: str, table: object) -> PoolSettings:
    where = f"[pools.{name[:64]}]"
    if not is_pool_name(name):
        raise BadInput(f"{where}: '{name[:64]}' is no name of a pool", hint=NAME_HINT)
    if name == NO_POOL:
        raise BadInput(f"{where}: '{name}' means no pool, as in --pool none", hint="use another name")
    if name in PLANNED:
        raise BadInput(f"{where}: every deployment has the pool '{name}'", hint="use another name")
    if not isinstance(table, dict):
        raise BadInput(f"{where}: must be a table", hint=f"write {where} and its keys on the lines below")
    engine = table.get("engine")
    if engine is None:
        raise BadInput(f"{where}: 'engine' is missing", hint=f"give one of: {', '.join(ENGINES)}")
    if not isinstance(engine, str) or engine not in ENGINES:
        raise BadInput(f"{where}: unknown engine '{str(engine)[:64]}'", hint=f"use one of: {', '.join(ENGINES)}")
    own = ENGINES[engine]
    known = {**COMMON, **own.required, **own.optional}
    values: dict[str, Any] = {}
    for key, each in table.items():
        if key == "engine":
            continue
        if key not in known:
            import difflib

            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean '{close[0]}'?" if close else f"engine '{engine}' knows: {', '.join(known)}"
            raise BadInput(f"{where}: unknown key '{key[:64]}'", hint=hint)
        try:
            values[key] = known[key](each)
        except BadInput as error:
            said = error.message if error.message.startswith(":") else f" {error.message}"
            raise BadInput(f"{where}: '{key}'{said}", hint=error.hint) from None
    for key in own.required:
        if key not in values:
            raise BadInput(f"{where}: '{key}' is missing", hint=f"engine '{engine}' cannot work without it")
    common = {key: each for key, each in values.items() if key in COMMON}
    extra = {key: each for key, each in values.items() if key not in COMMON}
    return PoolSettings(**{"idle_s": own.idle_s, **common}, name=name, engine=engine, extra=extra)
