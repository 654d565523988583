"""The report groups of a job, encoded in one text.

Nearly every job has one group, encoded as its name. Several names are joined by a separator that no name contains.
Counts and rows use the encoded text, so a job is never counted twice; only display and search decode it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

MOST: Final = 100
_BETWEEN: Final = "\n"


def joined(names: Iterable[str]) -> str:
    """Encode these names, each once. The first one is shown where there is room for one."""
    return _BETWEEN.join(dict.fromkeys(names))


def names_of(group: str) -> tuple[str, ...]:
    """Decode the names of a job's report groups."""
    return tuple(group.split(_BETWEEN)) if _BETWEEN in group else (group,)


def first_of(group: str) -> str:
    """The first of a job's report groups."""
    return group.partition(_BETWEEN)[0]


def is_in(name: str, group: str) -> bool:
    """Does this encoded text contain the group of this name?"""
    return name == group or (_BETWEEN in group and name in group.split(_BETWEEN))


def has_prefix(prefix: str, group: str) -> bool:
    """Does this encoded text contain a group whose name begins like this?"""
    return group.startswith(prefix) or f"{_BETWEEN}{prefix}" in group


def by_name(groups: Iterable[str]) -> Mapping[str, list[str]]:
    """Name → encoded texts that contain it."""
    found: dict[str, list[str]] = {}
    for group in groups:
        for name in names_of(group):
            found.setdefault(name, []).append(group)
    return found
