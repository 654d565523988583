"""The network of a cluster: a bridge at the head, a cable to each host, and what may happen to them.

It lives in namespaces only, so any number of clusters may have the same addresses, and nothing of it is left
when their processes are gone.
"""

from __future__ import annotations

import contextlib
import subprocess

HEAD = "10.77.0.1"
#: The bridge's own: else it is that of a cable, changes with that host, and all others lose sight of the head.
_BRIDGE = "02:00:00:00:00:01"
#: A hardware address that nobody has: what is sent there is lost without a word.
_NOBODY = "02:00:00:00:00:fe"


class Network:
    """Cables between the head, a process in the namespace of the bridge, and hosts."""

    def __init__(self, head: int) -> None:
        self._head = head
        _ip(
            head,
            "link set lo up",
            f"link add br0 address {_BRIDGE} type bridge",
            f"addr add {HEAD}/24 dev br0",
            "link set br0 up",
        )

    def plug(self, number: int, pid: int) -> None:
        """A cable to host `number`, whose first process this is."""
        add = f"link add v{number} type veth peer name eth0 netns {pid}"
        _ip(self._head, add, f"link set v{number} master br0 up")
        _ip(pid, "link set lo up", f"addr add {address(number)}/24 dev eth0", "link set eth0 up")

    def unplug(self, number: int) -> None:
        """The host is gone: the kernel will take its cable away at some time, or it is done here."""
        with contextlib.suppress(AssertionError):
            _ip(self._head, f"link delete v{number}")

    def cut(self, number: int) -> None:
        """Nothing passes, and both ends can see it."""
        _ip(self._head, f"link set v{number} down")

    def lose_what_it_hears(self, number: int) -> None:
        """The host speaks and is heard; answers get lost on the way."""
        _ip(self._head, f"neigh replace {address(number)} lladdr {_NOBODY} dev br0 nud permanent")

    def lose_what_it_says(self, number: int, pid: int) -> None:
        """The host hears and answers in vain."""
        _ip(pid, f"neigh replace {HEAD} lladdr {_NOBODY} dev eth0 nud permanent")

    def heal(self, number: int, pid: int) -> None:
        _ip(self._head, f"link set v{number} up", f"neigh flush to {address(number)} nud permanent")
        _ip(pid, f"neigh flush to {HEAD} nud permanent")


def address(number: int) -> str:
    return f"10.77.0.{10 + number}"


def _ip(pid: int, *commands: str) -> None:
    """`ip` in the network of this process."""
    argv = ["nsenter", "--target", str(pid), "--net", "ip", "-batch", "-"]
    done = subprocess.run(argv, input="\n".join(commands).encode() + b"\n", capture_output=True, check=False)
    assert done.returncode == 0, f"ip {commands}: {done.stderr.decode()}"
