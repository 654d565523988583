"""Bugs in a real manager: tests put this directory on the path of its interpreter and say which bugs it has.

Each line of the file `ROTA_TEST_BUGS` is one bug that is met once: the name of a place, and `before` or `after`
its work. A place is a kind of event, a function, an effect or `commit`. `version` stands for another version that
is installed meanwhile. A line that was met is removed, so that a
new image of the manager does not meet it again.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

FILE = os.environ.get("ROTA_TEST_BUGS", "")


def _met(place: str, when: str) -> bool:
    """Is this bug in the file? If so, it is met now."""
    return _met_line(f"{place} {when}")


def _met_line(line: str) -> bool:
    file = Path(FILE)
    try:
        lines = file.read_text().splitlines()
    except OSError:
        return False
    if line not in lines:
        return False
    lines.remove(line)
    file.write_text("".join(f"{each}\n" for each in lines))
    return True


def _with_bugs(place: str, work: Callable[..., Any], kind: type[Exception] = RuntimeError) -> Callable[..., Any]:
    def wrapped(*args: Any, **options: Any) -> Any:
        if _met(place, "before"):
            raise kind(f"injected before {place}")
        result = work(*args, **options)
        if _met(place, "after"):
            raise kind(f"injected after {place}")
        return result

    return wrapped


def _install() -> None:
    from rota.core.machines import runners

    # Before the features are registered with it.
    for name in ("check_silence", "end_attempt", "start_attempt"):
        setattr(runners, name, _with_bugs(name, getattr(runners, name)))

    from rota.core import engine
    from rota.core.features import BUILT_IN
    from rota.errors import Bug
    from rota.manager.features import ManagerFeatures
    from rota.manager.loop import reexecution, startup
    from rota.manager.loop.perform import Performer
    from rota.manager.requests.actions import Actions
    from rota.manager.requests.questions import Questions
    from rota.store.sqlite.store import SqliteStore

    engine.grant_leases = _with_bugs("grant_leases", engine.grant_leases)
    startup.recover = _with_bugs("recover", startup.recover)
    for kind, handler in list(BUILT_IN.handlers.items()):
        BUILT_IN.handlers[kind] = _with_bugs(kind.__name__, handler)
    for kind, name in (Actions, "act"), (Questions, "answer"), (ManagerFeatures, "tick"):
        setattr(kind, name, _with_bugs(name, getattr(kind, name)))
    installed = reexecution.installed_version
    reexecution.installed_version = lambda: "0.0.1" if _met_line("version") else installed()
    perform = Performer._perform

    def performed(self: Performer, effect: Any) -> None:
        if _met(type(effect).__name__, "before"):
            raise RuntimeError(f"injected before {type(effect).__name__}")
        perform(self, effect)

    Performer._perform = performed  # type: ignore[method-assign]
    SqliteStore._write = _with_bugs("commit", SqliteStore._write, Bug)  # type: ignore[method-assign]


if FILE and "rota.manager" in sys.orig_argv:
    _install()
