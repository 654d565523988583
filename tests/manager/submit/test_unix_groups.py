"""Unix groups of users: asked of the machine, kept for a while, and nothing for whom it does not know."""

from __future__ import annotations

import grp
import os
import pwd

import pytest

from rota.manager.submit.unix_groups import UnixGroups, groups_of


def test_a_user_is_in_the_groups_that_the_machine_says() -> None:
    me = pwd.getpwuid(os.getuid())
    assert grp.getgrgid(me.pw_gid).gr_name in groups_of(me.pw_name)


@pytest.mark.parametrize("user", ["nobody-of-this-name", "", "a\0b", "ü" * 500, "../root"])
def test_a_user_that_the_machine_does_not_know_is_in_none(user: str) -> None:
    assert groups_of(user) == ()


def test_what_the_machine_said_is_kept_for_a_while() -> None:
    asked: list[str] = []
    now = [0.0]

    def find(user: str) -> tuple[str, ...]:
        asked.append(user)
        return ("staff",)

    groups = UnixGroups(find, lambda: now[0])
    assert not groups.is_fresh("ann")
    assert groups.of("ann") == groups.of("ann") == ("staff",)
    assert groups.is_fresh("ann")
    now[0] = 61.0
    assert not groups.is_fresh("ann")
    assert groups.of("ann") == ("staff",), "an old answer is better than a loop that waits"
    groups.look_up("ann")
    assert groups.is_fresh("ann")
    assert asked == ["ann", "ann"]
