"""``python -m rota.runner --socket PATH --dir DIR [--log FILE] [--ticket FILE --linger S]``: run jobs for the
manager at PATH; with a ticket, as one of those that a delegated pool asked for."""

from __future__ import annotations

import gc
import sys

from rota.runner import log
from rota.runner.agent import Agent
from rota.runner.link import unix_dial

USAGE = "usage: python -m rota.runner --socket PATH --dir DIR [--log FILE] [--ticket FILE] [--linger S]"
_NEEDED = {"--socket", "--dir"}
_KNOWN = _NEEDED | {"--log", "--ticket", "--linger"}
#: How long a runner that was asked for stays without work.
_LINGER_S = 2.0


def options(words: list[str]) -> dict[str, str]:
    """The options; raises `ValueError`. (The usual parser takes longer to load than all the rest.)"""
    found = dict(zip(words[::2], words[1::2], strict=True))
    if not _NEEDED <= found.keys() <= _KNOWN:
        raise ValueError(USAGE)
    return found


def _read(path: str) -> str:
    """A ticket comes in a file: the arguments of a process are there for all to read."""
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def main() -> int:
    try:
        given = options(sys.argv[1:])
        linger_s = float(given.get("--linger", _LINGER_S)) if "--ticket" in given else None
    except ValueError:
        sys.stderr.write(USAGE + "\n")
        return 2
    if "--log" in given:
        log.open_log(given["--log"])
    try:
        ticket = _read(given["--ticket"]) if "--ticket" in given else ""
        agent = Agent(unix_dial(given["--socket"]), given["--dir"], ticket=ticket, linger_s=linger_s)
    except OSError:
        log.say_exception("cannot begin")
        return 1
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # what jobs leave behind has no cycles
    agent.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
