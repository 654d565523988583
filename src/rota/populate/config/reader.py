"""From a document to a configuration. All that is wrong is said with its place."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from typing import Any, Final, TypeVar

from rota.core.fields.values import shown
from rota.documents import yaml_file
from rota.documents.tree import At, Form, Node, Scalar
from rota.errors import BadInput, BadTables
from rota.populate.config.configuration import (
    DEFAULT_QUEUE,
    MARKS,
    ON_TIMEOUT,
    ROTA,
    RQ,
    TRANSPORTS,
    Bin,
    Configuration,
    ManagerSettings,
    PlainQuery,
    Queue,
    Table,
)
from rota.units import parse_duration

FORM: Final = Form(BadTables, "a configuration", "several configurations", "tables")
T = TypeVar("T")

_TOP: Final = ("manager", "database", "transport", "redis", "queues", "tables")
_MANAGER: Final = ("target_cycle_time", "api.run", "api.port", "api.host")
_DATABASE: Final = ("host", "port", "user", "password", "use_tls", "backend", "name")
_TABLE: Final = (
    "ttl", "job_timeout", "serial", "parallel", "queue", "tokens", "bins", "python", "on_timeout", "attempts",
    "mark", "sql",
)  # fmt: skip
_BIN: Final = ("where", "queue", "tokens")
_SQL: Final = ("connect", "keys", "key", "target")
_NAME: Final = re.compile(r"[^\W\d]\w*(?:\.[^\W\d]\w*)+")
_QUEUE: Final = re.compile(r"[\w.-]{1,64}")
#: Keys of one table and cycle.
MAX_KEYS: Final = 1_000_000


def load(path: str | os.PathLike[str]) -> Configuration:
    """The configuration in this file. Raises `BadInput`; about what is wrong in it, with line and column."""
    return yaml_file.load(path, FORM, read_configuration)


def from_bytes(data: bytes, *, source: str) -> Configuration:
    """The configuration that these bytes say. Raises `BadInput` as above."""
    return yaml_file.from_bytes(data, FORM, read_configuration, source=source)


def read_configuration(root: Node) -> Configuration:
    """The configuration that a document says. Raises `BadTables`, whose path leads to the place."""
    given = At(root, (), FORM)
    top = given.fields(_TOP)
    if "tables" not in top:
        given.at("tables").refuse(
            "is missing", hint="write it like tables: {lab.Trace: {ttl: 1h, job_timeout: 2h}}"
        )
    transport = _one_of(top["transport"], TRANSPORTS) if "transport" in top else ROTA
    tables = top["tables"].members("an object of tables")
    if not tables:
        top["tables"].refuse("has no table", hint="write it like lab.Trace: {ttl: 1h, job_timeout: 2h}")
    queues = top["queues"].members("an object of queues") if "queues" in top else {}
    found = Configuration(
        manager=_manager(top["manager"]) if "manager" in top else ManagerSettings(),
        database=_database(top["database"]) if "database" in top else {},
        transport=transport,
        redis_url=_redis(top["redis"]) if "redis" in top else "",
        queues={_queue_name(at, name): _queue(at) for name, at in queues.items()},
        tables=tuple(_table(name, at, transport) for name, at in tables.items()),
    )
    if transport == RQ:
        if not found.redis_url:
            given.at("redis").refuse("is missing", hint="write it like redis: {url: 'redis://127.0.0.1:6379/0'}")
        if "queues" in top:
            top["queues"].refuse("cannot be declared with rq", hint="workers say in which order they serve queues")
    elif "redis" in top:
        top["redis"].refuse("is only for the transport rq", hint="write transport: rq, or leave it out")
    return found


def _manager(given: At) -> ManagerSettings:
    fields = given.fields(_MANAGER)
    said: dict[str, Any] = {}
    if "target_cycle_time" in fields:
        said["target_cycle_s"] = _seconds(fields["target_cycle_time"])
    if "api.run" in fields:
        said["api_run"] = fields["api.run"].flag()
    if "api.port" in fields:
        said["api_port"] = _whole(fields["api.port"], 1, 65535)
    if "api.host" in fields:
        said["api_host"] = fields["api.host"].word()
    return ManagerSettings(**said)


def _seconds(given: At) -> float:
    """A number of seconds, or a duration."""
    if (
        isinstance(given.node, Scalar)
        and isinstance(given.node.value, int)
        and not isinstance(given.node.value, bool)
    ):
        return float(_whole(given, 0, 86400))
    return _duration(given)


def _database(given: At) -> dict[str, str | int | bool]:
    found: dict[str, str | int | bool] = {}
    for name, value in given.fields(_DATABASE).items():
        if name == "port":
            found[name] = _whole(value, 1, 65535)
        elif name == "use_tls":
            found[name] = value.flag()
        elif name == "backend":
            found[name] = _one_of(value, ("mysql", "postgresql"))
        else:
            found[name] = value.word()
    return found


def _redis(given: At) -> str:
    fields = given.fields(("url",))
    if "url" not in fields:
        given.at("url").refuse("is missing", hint="write it like redis://127.0.0.1:6379/0")
    url = fields["url"].string()
    if not url.startswith(("redis://", "rediss://", "unix://")):
        fields["url"].refuse("is not the address of a Redis", hint="write it like redis://127.0.0.1:6379/0")
    return url


def _queue(given: At) -> Queue:
    fields = given.fields(("priority", "limit"))
    said = {name: _whole(value, 0 if name == "priority" else 1, 1_000_000) for name, value in fields.items()}
    return Queue(**said)


def _table(name: str, given: At, transport: str) -> Table:
    given = given.called(f"table '{shown(name, 80)}'")
    if not _NAME.fullmatch(name):
        given.refuse("is not a dotted name", hint="write it like package.module.Table")
    fields = given.fields(_TABLE)
    for wanted in ("ttl", "job_timeout"):
        if wanted not in fields:
            given.at(wanted).refuse("is missing", hint="a table has ttl and job_timeout, such as 1h")
    said: dict[str, Any] = {
        "ttl_s": _positive(fields["ttl"]),
        "job_timeout_s": _positive(fields["job_timeout"]),
        "bins": _bins(fields, transport),
    }
    for number, most in (("serial", MAX_KEYS), ("parallel", MAX_KEYS), ("attempts", 100)):
        if number in fields:
            said[number] = _whole(fields[number], 1, most)
    if said.get("serial", 1) * said.get("parallel", 1) > MAX_KEYS:
        fields["serial"].refuse(f"and parallel are more than {MAX_KEYS} keys a cycle", hint="make them smaller")
    if "python" in fields:
        said["python"] = fields["python"].string()
    if "on_timeout" in fields:
        said["on_timeout"] = _one_of(fields["on_timeout"], ON_TIMEOUT)
    if "mark" in fields:
        said["mark"] = _one_of(fields["mark"], MARKS)
    if "sql" in fields:
        said["sql"] = _sql(fields["sql"])
    return Table(name=name, **said)


def _bins(fields: dict[str, At], transport: str) -> tuple[Bin, ...]:
    """Those of a table; what the table says of queue and tokens holds for bins that say nothing."""
    queue = _queue_of(fields, DEFAULT_QUEUE)
    tokens = _tokens(fields["tokens"], transport) if "tokens" in fields else ()
    if "bins" not in fields:
        return (Bin(queue=queue, tokens=tokens),)
    found: list[Bin] = []
    items = fields["bins"].items("write it like - {where: 'hours <= 1', queue: high-mem}")
    for at, item in enumerate(items):
        inside = item.fields(_BIN)
        where = inside["where"].string().strip() if "where" in inside else None
        if where is None and at < len(items) - 1:
            item.refuse("has no condition, so later bins get nothing", hint="give it 'where', or put it last")
        if where == "":
            inside["where"].refuse("is empty", hint="leave it out: the last bin takes what is left")
        own = _tokens(inside["tokens"], transport) if "tokens" in inside else tokens
        found.append(Bin(where=where, queue=_queue_of(inside, queue), tokens=own))
    if not found:
        fields["bins"].refuse("has no bin", hint="leave it out")
    return tuple(found)


def _queue_of(fields: dict[str, At], default: str) -> str:
    return _queue_name(fields["queue"], fields["queue"].word()) if "queue" in fields else default


def _queue_name(given: At, name: str) -> str:
    if not _QUEUE.fullmatch(name):
        given.refuse("is not the name of a queue", hint="use letters, digits, '-', '_' and '.', at most 64")
    return name


def _tokens(given: At, transport: str) -> tuple[tuple[str, int], ...]:
    if transport == RQ:
        given.refuse(
            "cannot be kept with rq", hint="workers of rq know nothing of each other; use transport: rota"
        )
    members = given.members("an object of tokens with their number")
    return tuple((name, _whole(value, 1, 1_000_000)) for name, value in members.items())


def _sql(given: At) -> PlainQuery:
    fields = given.fields(_SQL)
    for wanted in _SQL:
        if wanted not in fields:
            given.at(wanted).refuse("is missing", hint=f"sql has {', '.join(_SQL)}")
    if not _NAME.fullmatch(fields["connect"].string()):
        fields["connect"].refuse("is not a dotted name", hint="write it like package.module.connect")
    key = fields["key"]
    names = (
        [key.word()]
        if isinstance(key.node, Scalar)
        else [each.word() for each in key.items("write it like [a, b]")]
    )
    if not names or len(set(names)) < len(names):
        key.refuse("must name each column of the key once", hint="write it like [session, recording]")
    query = fields["keys"].string().strip().rstrip(";")
    return PlainQuery(
        connect=fields["connect"].string(), keys=query, key=tuple(names), target=fields["target"].word()
    )


# ------------------------------------------------------------------ values


def _one_of(given: At, words: tuple[str, ...]) -> str:
    word = given.string(f"write {' or '.join(words)}")
    if word not in words:
        given.refuse(f"must be {' or '.join(words)}, not '{shown(word)}'", hint=f"write {words[0]}")
    return word


def _whole(given: At, least: int, most: int) -> int:
    number = given.number()
    if not least <= number <= most:
        given.refuse(f"must be from {least} to {most}", hint=f"{number} is not")
    return number


def _duration(given: At) -> float:
    return _checked(given, parse_duration)


def _positive(given: At) -> float:
    seconds = _duration(given)
    if seconds < 1:
        given.refuse("must be at least 1s", hint="write it like 30m")
    return seconds


def _checked(given: At, parse: Callable[[str], T]) -> T:
    try:
        return parse(given.word())
    except BadTables:
        raise
    except BadInput as error:
        given.refuse(error.text, hint=error.hint)
