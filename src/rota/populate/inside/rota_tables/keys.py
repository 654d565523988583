"""Keys as JSON, without loss: a date comes back as a date."""

from __future__ import annotations

import datetime
import decimal
import json
import uuid
from typing import Any

#: A key as JSON text, the same for equal keys.
Text = str


def text_of(key: dict[str, Any]) -> Text:
    return json.dumps(plain(key), sort_keys=True, separators=(",", ":"))


def plain(key: dict[str, Any]) -> dict[str, Any]:
    """The key in JSON's types. Raises `TypeError` for a value that no key has."""
    return {name: _plain(value) for name, value in key.items()}


def key_of(given: dict[str, Any]) -> dict[str, Any]:
    """The key that `plain` wrote."""
    return {name: _value(value) for name, value in given.items()}


def _plain(value: Any) -> Any:
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, datetime.datetime):
        return {"datetime": value.isoformat()}
    if isinstance(value, datetime.date):
        return {"date": value.isoformat()}
    if isinstance(value, datetime.time):
        return {"time": value.isoformat()}
    if isinstance(value, datetime.timedelta):
        return {"timedelta": [value.days, value.seconds, value.microseconds]}
    if isinstance(value, decimal.Decimal):
        return {"decimal": str(value)}
    if isinstance(value, uuid.UUID):
        return {"uuid": str(value)}
    if isinstance(value, (bytes, bytearray, memoryview)):
        return {"bytes": bytes(value).hex()}
    raise TypeError(f"a key cannot have a value of type {type(value).__name__}")


def _value(given: Any) -> Any:
    if not isinstance(given, dict):
        return given
    ((kind, value),) = given.items()
    if kind == "datetime":
        return datetime.datetime.fromisoformat(value)
    if kind == "date":
        return datetime.date.fromisoformat(value)
    if kind == "time":
        return datetime.time.fromisoformat(value)
    if kind == "timedelta":
        return datetime.timedelta(*value)
    if kind == "decimal":
        return decimal.Decimal(value)
    if kind == "uuid":
        return uuid.UUID(value)
    return bytes.fromhex(value)
