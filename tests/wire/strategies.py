"""Hypothesis strategies for every message, made from the types of its fields."""

from __future__ import annotations

import functools
import types
import typing
from typing import Any

import msgspec
from hypothesis import strategies as st

from rota.wire import codec, messages

#: Integers that msgpack can carry.
INTEGERS = st.integers(min_value=-(2**63), max_value=2**64 - 1)
TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=40)
_VALUES = st.recursive(
    st.none() | st.booleans() | INTEGERS | TEXT, lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
_PLAIN: dict[Any, st.SearchStrategy[Any]] = {
    Any: _VALUES,
    int: INTEGERS,
    str: TEXT,
    bool: st.booleans(),
    float: st.floats(allow_nan=False),
    bytes: st.binary(max_size=40),
    type(None): st.none(),
    msgspec.UnsetType: st.just(msgspec.UNSET),
    msgspec.Raw: _VALUES.map(codec.body),
}

TAGGED: list[type[messages.Message]] = sorted(
    {
        *typing.get_args(messages.FromClient),
        *typing.get_args(messages.ToClient),
        *typing.get_args(messages.FromRunner),
        *typing.get_args(messages.ToRunner),
    },
    key=lambda cls: cls.__name__,
)
#: Accepts every message there is.
ANY = typing.Union[tuple(TAGGED)]  # noqa: UP007


@functools.cache
def of(kind: Any) -> st.SearchStrategy[Any]:
    """Values of a type that occurs in messages."""
    if kind in _PLAIN:
        return _PLAIN[kind]
    origin, args = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return st.integers(min_value=args[1].ge, max_value=args[1].le)
    if origin in (types.UnionType, typing.Union):
        return st.one_of([of(arg) for arg in args])
    if origin is list:
        return st.lists(of(args[0]), max_size=3)
    if origin is tuple:
        if args[-1:] == (Ellipsis,):
            return st.lists(of(args[0]), max_size=3).map(tuple)
        return st.tuples(*[of(arg) for arg in args])
    if origin is dict:
        return st.dictionaries(of(args[0]), of(args[1]), max_size=3)
    if isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        fields = typing.get_type_hints(kind, include_extras=True)
        return st.builds(kind, **{name: of(fields[name]) for name in kind.__struct_fields__})
    raise NotImplementedError(f"no strategy for {kind}")


def messages_of(*kinds: type[messages.Message]) -> st.SearchStrategy[Any]:
    """Messages of these types, or of all."""
    return st.sampled_from(kinds or tuple(TAGGED)).flatmap(of)


def comparable(message: Any) -> Any:
    """Raw bodies compare by identity; their bytes do not."""
    return [
        (type(message)),
        *(bytes(v) if isinstance(v, msgspec.Raw) else v for v in msgspec.structs.astuple(message)),
    ]
