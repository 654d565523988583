"""Users and their groups, as this machine knows them."""

from __future__ import annotations

import grp
import os
import pwd


def user_name(uid: int) -> str:
    """The name of a user, or the number of one without a name."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def groups_of(user: str) -> tuple[str, ...]:
    """Names of the groups that this user is in, in order; none for a user that this machine does not know."""
    try:
        gids = os.getgrouplist(user, pwd.getpwnam(user).pw_gid)
    except (KeyError, OSError, ValueError):  # unknown, no answer, or no name at all
        return ()
    names = set()
    for gid in gids:
        try:
            names.add(grp.getgrgid(gid).gr_name)
        except (KeyError, OSError):
            continue  # a number without a name
    return tuple(sorted(names))
