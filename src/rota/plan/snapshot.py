"""Snapshots of changing state: independent copies whose independence follows from the declared types.

A class whose objects change is a `@state`: it declares all its fields with their types and can have no others. The
types say how a snapshot is taken: what can change is copied, what cannot is shared. So a new field is part of
every snapshot, and a field that could be neither copied nor shared safely is refused, whatever its value.

Copying is eager: state is flat (lists of numbers, records without nesting), which C code copies faster than any
write could check whether its target is shared, and a snapshot may be used in another thread.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, fields, is_dataclass
from datetime import date, timedelta, tzinfo
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Final, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from msgspec import Struct

from rota.errors import Bug

T = TypeVar("T")

#: A record, or the id of any other object → its copy. What is referred to twice is one object in the snapshot.
_Copies = dict[object, Any]
_Copier = Callable[[Any, _Copies], Any]

_PLAIN: Final = (int, float, str, bytes, NoneType, date, timedelta, tzinfo, Enum)
#: Read-only: nothing can be changed through these types, and whoever makes such a value keeps no other access.
_READ_ONLY: Final = (frozenset, Mapping, Sequence, AbstractSet)


class Unchanging:
    """Base class of objects that never change once they are made, except for caches. They are shared."""

    __slots__ = ()


class _Mark(Enum):
    """What the type of a field does not say, as in `Annotated[dict[str, int], CACHE]`."""

    AT_REST = "None whenever a snapshot is taken"
    CACHE = "a container that can be filled again from the rest: empty in a snapshot"


AT_REST: Final = _Mark.AT_REST
CACHE: Final = _Mark.CACHE


def state(cls: type[T]) -> type[T]:
    """Declare a class of changing objects. It has exactly the fields that its body annotates."""
    return dataclass(init=False, eq=False, repr=False, slots=True)(cls)


def snapshot(root: T) -> T:
    """An independent copy: no change of the one is ever seen in the other."""
    copier = _of(type(root))
    found = root if copier is None else copier(root, {})
    assert type(found) is type(root)
    return found


# ------------------------------------------------------------------ from types to copiers

_made: dict[object, _Copier | None] = {}
_being_judged: dict[object, bool] = {}  #: has it been met within itself?


def _of(kind: Any) -> _Copier | None:
    """How values of a declared type are copied; None: they are shared. Raises `Bug` if they can be neither."""
    if kind not in _made:
        if kind in _being_judged:
            _being_judged[kind] = True
            return None  # if the rest of it cannot change, it cannot either
        _being_judged[kind] = False
        try:
            _made[kind] = _not_in_itself(kind, _judge(kind))
        except BaseException:
            _made.clear()  # parts of it may have been judged as if it could be shared
            raise
        finally:
            del _being_judged[kind]
    return _made[kind]


def _not_in_itself(kind: Any, copier: _Copier | None) -> _Copier | None:
    if copier is not None and _being_judged[kind]:
        raise _unsafe(kind, "which can change and contains itself")
    return copier


def _judge(kind: Any) -> _Copier | None:
    origin, args = get_origin(kind), get_args(kind)
    if origin is Annotated:
        return {AT_REST: _absent, CACHE: _emptied}[args[1]]
    if origin is Final:
        return _of(args[0])
    if origin in (Union, UnionType):
        return _either(args)
    if origin is Literal:
        return None
    if origin is tuple:
        return _tuple([_of(each) for each in args if each is not ...], tuple, endless=... in args)
    if origin in (list, set, dict):
        return _container(kind, origin, args)
    if origin in _READ_ONLY:
        _refuse_changing(kind, args)
        return None
    if isinstance(kind, type):
        return _of_class(kind)
    raise _unsafe(kind)


def _unsafe(kind: Any, why: str = "which can be neither copied nor shared safely") -> Bug:
    return Bug(f"state is declared with type {getattr(kind, '__qualname__', kind)}, {why}")


def _of_class(kind: type[Any]) -> _Copier | None:
    if issubclass(kind, (*_PLAIN, Unchanging)):
        return None
    hints = get_type_hints(kind, include_extras=True)
    if issubclass(kind, tuple):
        return _tuple([_of(hint) for hint in hints.values()], lambda parts: kind(*parts))
    if issubclass(kind, Struct):
        _refuse_changing(kind, [hints[name] for name in kind.__struct_fields__])
        return None if kind.__struct_config__.frozen else _Records(kind)
    if is_dataclass(kind) and "__slots__" in vars(kind):
        return _Objects([(each.name, _of(hints[each.name])) for each in fields(kind)])
    raise _unsafe(kind)


def _refuse_changing(kind: Any, parts: Iterable[Any]) -> None:
    """No part of a read-only value or of a record may change. Those of a record are replaced."""
    for part in parts:
        if part is not ... and _of(part) is not None:
            raise _unsafe(kind, f"which contains {part}, which can change")


# ------------------------------------------------------------------ copiers


def _absent(value: Any, _copies: _Copies) -> None:
    if value is not None:
        raise Bug(f"a snapshot was taken while there was a {type(value).__name__}")


def _emptied(value: Any, _copies: _Copies) -> Any:
    return type(value)()


def _flat(value: Any, copies: _Copies) -> Any:
    """A container of what cannot change."""
    new = copies.get(id(value))
    if new is None:
        new = copies[id(value)] = value.copy()
    return new


def _container(kind: Any, origin: Any, args: tuple[Any, ...]) -> _Copier:
    copiers = [_of(each) for each in args]
    if origin is not list and copiers[0] is not None:
        raise _unsafe(kind, "whose keys can change")
    item = copiers[-1]
    if item is None:
        return _flat
    many = item.many if isinstance(item, _Records) else _one_by_one(item)

    def copied_list(value: Any, copies: _Copies) -> Any:
        new = copies.get(id(value))
        if new is None:
            new = copies[id(value)] = []
            new += many(value, copies)
        return new

    def copied_dict(value: Any, copies: _Copies) -> Any:
        new = copies.get(id(value))
        if new is None:
            new = copies[id(value)] = value.copy()
            new.update(zip(value, many(list(value.values()), copies), strict=True))
        return new

    return copied_list if origin is list else copied_dict


def _one_by_one(item: _Copier) -> Callable[[list[Any], _Copies], list[Any]]:
    return lambda values, copies: [item(value, copies) for value in values]


def _tuple(
    parts: list[_Copier | None], make: Callable[[Iterable[Any]], Any], *, endless: bool = False
) -> _Copier | None:
    """A tuple, named or not. `endless`: it has any number of items of one type."""
    if not any(parts):
        return None

    def copied(value: Any, copies: _Copies) -> Any:
        new = copies.get(id(value))
        if new is None:
            copiers = parts * len(value) if endless else parts
            found = [
                each if copier is None else copier(each, copies)
                for each, copier in zip(value, copiers, strict=True)
            ]
            new = copies[id(value)] = make(found)
        return new

    return copied


def _either(kinds: tuple[Any, ...]) -> _Copier | None:
    """One of several types, told apart by their classes."""
    changing = [(get_origin(kind) or kind, copier) for kind in kinds if (copier := _of(kind)) is not None]
    if not changing:
        return None
    if len(kinds) == 2 and NoneType in kinds:
        present = changing[0][1]
        return lambda value, copies: None if value is None else present(value, copies)

    def copied(value: Any, copies: _Copies) -> Any:
        for kind, copier in changing:
            if isinstance(value, kind):
                return copier(value, copies)
        return value

    return copied


class _Objects:
    """Copies objects of a `@state` class, or of a subclass, which may have more fields."""

    def __init__(self, parts: list[tuple[str, _Copier | None]]) -> None:
        self._parts = parts

    def __call__(self, value: Any, copies: _Copies) -> Any:
        new = copies.get(id(value))
        if new is None:
            own = _of(type(value))
            assert isinstance(own, _Objects)
            new = copies[id(value)] = object.__new__(type(value))
            for name, copier in own._parts:
                part = getattr(value, name)
                setattr(new, name, part if copier is None else copier(part, copies))
        return new


class _Records:
    """Copies records, structs that change. There may be many of them: they are copied in bulk, by C code."""

    def __init__(self, kind: type[Any]) -> None:
        if kind.__struct_config__.eq:
            raise _unsafe(kind, "whose objects are not told apart by identity")
        self._copy: Callable[[Any], Any] = kind.__copy__

    def __call__(self, value: Any, copies: _Copies) -> Any:
        return self.many([value], copies)[0]

    def many(self, values: list[Any], copies: _Copies) -> list[Any]:
        """The copies of these records, in order."""
        try:
            return list(map(copies.__getitem__, values))
        except KeyError:
            new = values if copies.keys().isdisjoint(values) else [each for each in values if each not in copies]
        known, made = len(copies), list(map(self._copy, new))
        copies.update(zip(new, made, strict=True))
        each_once = len(copies) - known == len(values)
        return made if each_once else list(map(copies.__getitem__, values))
