"""Users and their groups, as the machine says."""

from __future__ import annotations

import grp
import os
import pwd

import pytest

from rota.users import groups_of, user_name


def test_a_user_has_a_name_or_its_number() -> None:
    assert user_name(os.getuid()) == pwd.getpwuid(os.getuid()).pw_name
    assert user_name(2**31 - 7) == str(2**31 - 7)


def test_a_user_is_in_the_groups_that_the_machine_says() -> None:
    me = pwd.getpwuid(os.getuid())
    assert grp.getgrgid(me.pw_gid).gr_name in groups_of(me.pw_name)


@pytest.mark.parametrize("user", ["nobody-of-this-name", "", "a\0b", "ü" * 500, "../root"])
def test_a_user_that_the_machine_does_not_know_is_in_none(user: str) -> None:
    assert groups_of(user) == ()
