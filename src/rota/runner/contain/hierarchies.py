"""Where control groups can be made on this host, and what they can do there, found by trying.

A hierarchy is one mounted tree of groups: version 2 has one for everything, version 1 one for each controller
(or a few together), and a host may have both (hybrid). Groups serve three purposes:

- `hold`: freeze and kill everything inside,
- `cores`: confine everything inside to some cores,
- `memory`: limit the memory of everything inside.

Nothing is written to a group that was not made here, with one exception: in a version 2 group that was delegated
to us, controllers are switched on for its children.
"""

from __future__ import annotations

import os
from typing import NamedTuple

from rota.runner.contain.cgroup import LIMIT_FILES, ControlGroup, read, write

HOLD, CORES, MEMORY = "hold", "cores", "memory"
#: The file that a group must have for each purpose, by version.
_FILES = {
    HOLD: {1: "freezer.state", 2: "cgroup.freeze"},
    CORES: {1: "cpuset.cpus", 2: "cpuset.cpus"},
    MEMORY: LIMIT_FILES,
}
#: The controller of version 1 that has that file; version 2 holds without any.
_CONTROLLERS = {HOLD: "freezer", CORES: "cpuset", MEMORY: "memory"}
_DELEGATED = ("trusted.delegate", "user.delegate")


class CgroupTree:
    """How control groups are made and removed: by the kernel, or by a test."""

    proc = "/proc/self"  #: has the mounted trees, and the groups of this process

    def make(self, path: str) -> None:
        """Raises `OSError`."""
        os.mkdir(path, 0o755)

    def remove(self, path: str) -> None:
        """Raises `OSError`: something is inside."""
        os.rmdir(path)


KERNEL_TREE = CgroupTree()


class CgroupPlace(NamedTuple):
    """A directory in which groups can be made."""

    version: int
    parent: str
    offers: frozenset[str]


class Hierarchies:
    """The best place for each purpose."""

    def __init__(self, probe: str, tree: CgroupTree = KERNEL_TREE) -> None:
        self._probe = probe  #: the name of the group that is made for trying
        self._tree = tree
        self._found: dict[str, CgroupPlace] | None = None

    def place(self, purpose: str) -> CgroupPlace | None:
        """Where groups can serve this purpose, or None."""
        return self.found().get(purpose)

    def found(self) -> dict[str, CgroupPlace]:
        if self._found is None:
            self._found = self._look()
        return self._found

    def _look(self) -> dict[str, CgroupPlace]:
        places = [place for version, parent in parents(self._tree) if (place := self._try(version, parent))]
        # One group for everything is cheapest; version 2 also kills and freezes better.
        places.sort(key=lambda place: (place.version, len(place.offers)), reverse=True)
        found: dict[str, CgroupPlace] = {}
        newer = [place for place in places if place.version == 2][:1]  # a process is in one group of a hierarchy
        for place in newer + [place for place in places if place.version == 1]:
            for purpose in place.offers:
                found.setdefault(purpose, place)
        return found

    def _try(self, version: int, parent: str) -> CgroupPlace | None:
        if version == 2:
            _switch_on(parent)
        group = ControlGroup(f"{parent}/{self._probe}", version, self._tree)
        try:
            self._tree.make(group.path)
        except OSError:
            return None
        offers = set(purposes_of(group)) if os.access(f"{group.path}/cgroup.procs", os.W_OK) else set()
        if CORES in offers and not group.keep_to(os.sched_getaffinity(0)):
            offers.discard(CORES)
        group.remove()
        return CgroupPlace(version, parent, frozenset(offers)) if offers else None


def parents(tree: CgroupTree = KERNEL_TREE) -> list[tuple[int, str]]:
    """(version, directory) in which groups may be made: below the groups of this process and, in version 2, beside
    its group. A version 2 group with processes cannot pass controllers on, so beside it is the better place, if
    this process may move others there."""
    below = [place for controller in _CONTROLLERS.values() for place in candidates(controller, tree.proc)]
    around = [os.path.dirname(path) for version, path in below if version == 2]
    beside = [(2, path) for path in around if os.access(f"{path}/cgroup.procs", os.W_OK)]
    return list(dict.fromkeys([*below, *beside]))


def purposes_of(group: ControlGroup) -> list[str]:
    """The purposes that a group can serve, by the files it has."""
    return [what for what, files in _FILES.items() if os.access(f"{group.path}/{files[group.version]}", os.W_OK)]


def _switch_on(parent: str) -> None:
    """Use the controllers of a group that an administrator (or systemd, with `Delegate=yes`) delegated to us."""
    control = f"{parent}/cgroup.subtree_control"
    if not any(_attribute(parent, name) == b"1" for name in _DELEGATED):
        return
    there, on = read(f"{parent}/cgroup.controllers").split(), read(control).split()
    for name in ("cpuset", "memory"):
        if name in there and name not in on:
            write(control, f"+{name}")


def _attribute(path: str, name: str) -> bytes:
    try:
        return os.getxattr(path, name)
    except OSError:
        return b""


def candidates(controller: str, proc: str = KERNEL_TREE.proc) -> list[tuple[int, str]]:
    """(version, directory of this process's own group), best first; in version 1 of this controller."""
    own: dict[str, str] = {}
    for line in read(f"{proc}/cgroup").splitlines():
        _, names, path = line.split(":", 2)
        for name in names.split(","):
            own[name] = path
    found = []
    for line in read(f"{proc}/mountinfo").splitlines():
        fields, _, rest = line.partition(" - ")
        root, mount = (name.encode().decode("unicode_escape") for name in fields.split()[3:5])
        kind, _, options = rest.partition(" ")
        if kind == "cgroup2" and "" in own:
            found.append((2, _inside(mount, root, own[""])))
        elif kind == "cgroup" and controller in own and controller in options.split(" ")[-1].split(","):
            found.append((1, _inside(mount, root, own[controller])))
    return sorted(found, reverse=True)


def _inside(mount: str, root: str, path: str) -> str:
    """The directory of a group, if only the subtree `root` of its hierarchy is mounted."""
    root = root.rstrip("/")
    if path == root or path.startswith(f"{root}/"):
        path = path[len(root) :]
    return mount + path.rstrip("/")
