"""The report groups of a job: one name, or several in one text.

Nearly all jobs are in one group, which is its name and costs nothing more. Several are joined by a character that
no name has. What is counted or stored by group goes by that text, so no job is counted twice; only whoever shows
groups, or looks for one, takes it apart.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

MOST: Final = 100
_BETWEEN: Final = "\n"


def joined(names: Iterable[str]) -> str:
    """The groups with these names, each once; the first stands for all where there is room for one."""
    return _BETWEEN.join(dict.fromkeys(names))


def names_of(group: str) -> tuple[str, ...]:
    return tuple(group.split(_BETWEEN)) if _BETWEEN in group else (group,)


def first_of(group: str) -> str:
    return group.partition(_BETWEEN)[0]


def is_in(name: str, group: str) -> bool:
    """Is a job of these groups in the one with this name?"""
    return name == group or (_BETWEEN in group and name in group.split(_BETWEEN))


def by_name(groups: Iterable[str]) -> Mapping[str, list[str]]:
    """Name → the texts that have it."""
    found: dict[str, list[str]] = {}
    for group in groups:
        for name in names_of(group):
            found.setdefault(name, []).append(group)
    return found
