"""Takes the place of a dead agent whose launchers live: its name, its directory and its jobs.

An agent is dead when its lock can be taken. If none of its launchers lives there is no place to take, and it is
settled like any dead runner.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

import msgspec

from rota.boot import boot_id
from rota.launcher.client.processes import Adopted, CannotAttach, attach
from rota.launcher.client.remote import RemoteLauncher
from rota.runner.launch.launched import EPOCH, directories, left_alone
from rota.runner.log import say
from rota.runner.report import journal
from rota.wire.orders import Rules

_RULES = "rules"


class Predecessor(msgspec.Struct, frozen=True):
    """A dead agent, whose lock we hold and whose launchers are ours now."""

    id: str
    directory: str
    lock: int
    story: journal.Story
    launchers: Sequence[tuple[RemoteLauncher, list[Adopted]]]
    dead: Sequence[str]  #: directories of launchers that are dead
    epoch: int
    rules: Rules | None  #: that it followed


def take_place(root: str, *, prefix: str, machine: str) -> Predecessor | None:
    """The place of a dead agent with such a name, if there is one whose launchers live."""
    try:
        names = sorted(os.listdir(root))
    except FileNotFoundError:
        return None
    for name in names:
        if re.fullmatch(rf"{re.escape(prefix)}-\d+-[0-9a-f]{{8}}", name) and os.path.isdir(f"{root}/{name}"):
            found = _take(f"{root}/{name}", machine)
            if found is not None:
                return found
    return None


def _take(directory: str, machine: str) -> Predecessor | None:
    if not directories(directory):
        return None
    lock = journal.take_lock(directory)
    if lock is None:
        return None
    try:
        if why := left_alone(directory):
            say(why)
            os.close(lock)
            return None
        story = journal.read(f"{directory}/journal")
        began = story.began
        if began is not None and began.machine == machine and began.boot_id == boot_id():
            epoch = next_epoch(directory)
            launchers, dead = _attach_all(directory, epoch)
            if launchers:
                name = os.path.basename(directory)
                return Predecessor(name, directory, lock, story, launchers, dead, epoch, _rules(directory))
    except OSError as error:
        say(f"the place of {os.path.basename(directory)} cannot be taken: {error}")
    os.close(lock)
    return None


def _attach_all(directory: str, epoch: int) -> tuple[list[tuple[RemoteLauncher, list[Adopted]]], list[str]]:
    launchers, dead = [], []
    for path in directories(directory):
        try:
            launchers.append(attach(path, epoch))
        except CannotAttach as why:
            say(f"{os.path.basename(path)} is gone: {why}")
            dead.append(path)
    return launchers, dead


def save_rules(directory: str, rules: Rules) -> None:
    """Keep the rules of the manager for the next agent. Raises `OSError`."""
    _replace(f"{directory}/{_RULES}", msgspec.msgpack.encode(msgspec.structs.replace(rules, forget=[])))


def _rules(directory: str) -> Rules | None:
    try:
        with open(f"{directory}/{_RULES}", "rb") as file:
            return msgspec.msgpack.decode(file.read(), type=Rules)
    except (OSError, msgspec.MsgspecError):
        return None


def _replace(path: str, data: bytes) -> None:
    fresh = f"{path}.new"
    with open(fresh, "wb") as file:
        file.write(data)
    os.rename(fresh, path)


def next_epoch(directory: str) -> int:
    """One more than any agent of this directory has had; its lock is held. Raises `OSError`."""
    path = f"{directory}/{EPOCH}"
    try:
        with open(path, encoding="ascii") as file:
            last = int(file.read())
    except (FileNotFoundError, ValueError):
        last = 0
    _replace(path, b"%d" % (last + 1))
    return last + 1
