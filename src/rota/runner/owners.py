"""As whom the jobs of a runner run: as its own user, or each as the user who added it."""

from __future__ import annotations

import os
import pwd
import time
from typing import TYPE_CHECKING

from rota.runner.log import say
from rota.runner.owner import Owner
from rota.runner.process import CannotRun

if TYPE_CHECKING:
    from rota.runner.agent import Agent

#: A user that is changed or removed is known to have been after this long.
_TRUSTED_S = 60.0


class Owners:
    """The users of this host."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._known: dict[str, tuple[float, Owner]] = {}
        self.apart = False  #: does each job run as its own user?

    def obey(self, run_as: str) -> None:
        """What the site wants."""
        self.apart = run_as == "user"
        if self.apart and not os.geteuid():
            self._open_ways()

    def of(self, user: str) -> Owner | None:
        """As whom the jobs of a user run; None: as this process does. Raises `CannotRun`."""
        if not self.apart:
            return None
        now = time.monotonic()
        found = self._known.get(user)
        if found is None or found[0] < now:
            found = self._known[user] = (now + _TRUSTED_S, self._looked_up(user))
        owner = found[1]
        if owner.uid == os.geteuid() != 0:
            return None
        if os.geteuid():
            raise _cannot(f"the agent on {self._agent.identity.host} is not root and cannot run jobs of {user}")
        if not owner.uid:
            raise _cannot("no job runs as root where jobs run as their users")
        return owner

    def _looked_up(self, user: str) -> Owner:
        try:
            entry = pwd.getpwnam(user)
            groups = os.getgrouplist(entry.pw_name, entry.pw_gid)
        except (KeyError, ValueError, OSError):
            raise _cannot(f"there is no user '{user}' on {self._agent.identity.host}") from None
        return Owner(entry.pw_name, entry.pw_uid, entry.pw_gid, tuple(groups))

    def _open_ways(self) -> None:
        """Users must get to their scratch directories and to the relay, and see nothing on the way."""
        agent = self._agent
        os.makedirs(agent.scratch_root, mode=0o711, exist_ok=True)
        ways = (
            os.path.dirname(agent.scratch_root),
            agent.scratch_root,
            agent.identity.root,
            agent.identity.directory,
        )
        try:
            for path in ways:
                os.chmod(path, 0o711)
            if os.path.exists(agent.relay.path):
                os.chmod(agent.relay.path, 0o666)  # who calls there is known from the kernel
        except OSError as error:
            say(f"users may not get to their scratch directories: {error}")


def _cannot(why: str) -> CannotRun:
    return CannotRun(None, why, permanent=False)
