"""Sample values of any type that is sent or stored, the same in every run, and their plain form with names.

A full sample has something in every field, a short one only in those without a default.
"""

from __future__ import annotations

import base64
import itertools
from datetime import UTC, datetime
from enum import Enum
from typing import Any

import msgspec
from msgspec import inspect as mi

from tests.golden.names import name_of

_WHEN = datetime(2026, 1, 2, 3, 4, 5, 678000, tzinfo=UTC)


def plain(value: Any) -> Any:
    """As JSON: structs by the names of their fields, bytes and times marked."""
    match value:
        case msgspec.Struct():
            names = type(value).__struct_fields__
            found = {name: plain(one) for name in names if (one := getattr(value, name)) is not msgspec.UNSET}
            return {"is": name_of(type(value)), **found}
        case msgspec.Raw():
            return {"raw": plain(msgspec.msgpack.decode(value))}
        case bytes() | bytearray() | memoryview():
            return {"bytes": base64.b64encode(value).decode()}
        case datetime():
            return {"time": value.isoformat()}
        case Enum():
            return plain(value.value)
        case dict():
            return {"dict": [[plain(key), plain(one)] for key, one in value.items()]}
        case set() | frozenset():
            return sorted(map(plain, value))
        case list() | tuple():
            return [plain(one) for one in value]
    return value


class Sampler:
    def __init__(self, *, full: bool) -> None:
        self._full = full
        self._numbers = itertools.count(1)

    def of(self, kind: Any) -> Any:
        """One value of a type."""
        return self._of(mi.type_info(kind))

    def _of(self, kind: mi.Type) -> Any:
        n = next(self._numbers)
        match kind:
            case mi.StructType():
                return self._struct(kind)
            case mi.UnionType():
                return self._union(kind)
            case mi.IntType(gt=gt, le=le):
                return max(n if le is None else n % (le + 1), 0 if gt is None else gt + 1)
            case mi.FloatType():
                return n + 0.25
            case mi.StrType():
                return f"text {n} ü\x1b"
            case mi.BytesType():
                return b"bytes %d\0\xff" % n
            case mi.BoolType():
                return True
            case mi.NoneType():
                return None
            case mi.AnyType():
                return {"any": [n, None, "x"]}
            case mi.DateTimeType():
                return _WHEN
            case mi.EnumType(cls=cls):
                return list(cls)[n % len(cls)]
            case mi.LiteralType(values=values):
                return values[n % len(values)]
            case mi.RawType():
                return msgspec.Raw(msgspec.msgpack.encode({"raw": [n, "x", b"y"]}))
            case mi.ListType(item_type=item):
                return [self._of(item), self._of(item)]
            case mi.VarTupleType(item_type=item):
                return (self._of(item), self._of(item))
            case mi.TupleType(item_types=items):
                return tuple(self._of(item) for item in items)
            case mi.SetType(item_type=item):
                return {self._of(item)}
            case mi.FrozenSetType(item_type=item):
                return frozenset({self._of(item)})
            case mi.DictType(key_type=key, value_type=one):
                return {self._of(key): self._of(one)}
            case mi.Metadata(type=inner):
                return self._of(inner)
        raise TypeError(f"no sample of {kind}")

    def _union(self, kind: mi.UnionType) -> Any:
        empty = (mi.NoneType,)
        real = [one for one in kind.types if not isinstance(one, empty)]
        if not self._full and len(real) < len(kind.types):
            return None
        return self._of(real[next(self._numbers) % len(real)])

    def _struct(self, kind: mi.StructType) -> Any:
        values = {field.name: self._of(field.type) for field in kind.fields if self._full or field.required}
        return kind.cls(**values)


def samples(kind: Any) -> list[Any]:
    """Full ones, with every member of the unions in it in turn as far as five go, and a short one."""
    sampler = Sampler(full=True)
    found = [sampler.of(kind) for _ in range(5)]
    return [*found, Sampler(full=False).of(kind)]
