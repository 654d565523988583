"""``python -m rota.runner --socket PATH --dir DIR [--log FILE]``: run jobs for the manager at PATH."""

from __future__ import annotations

import gc
import sys

from rota.runner import log
from rota.runner.agent import Agent
from rota.runner.link import unix_dial

USAGE = "usage: python -m rota.runner --socket PATH --dir DIR [--log FILE]"


def options(words: list[str]) -> dict[str, str]:
    """The options; raises `ValueError`. (The usual parser takes longer to load than all the rest.)"""
    found = dict(zip(words[::2], words[1::2], strict=True))
    if not {"--socket", "--dir"} <= found.keys() <= {"--socket", "--dir", "--log"}:
        raise ValueError(USAGE)
    return found


def main() -> int:
    try:
        given = options(sys.argv[1:])
    except ValueError:
        sys.stderr.write(USAGE + "\n")
        return 2
    if "--log" in given:
        log.open_log(given["--log"])
    try:
        agent = Agent(unix_dial(given["--socket"]), given["--dir"])
    except OSError:
        log.say_exception("cannot begin")
        return 1
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # what jobs leave behind has no cycles
    agent.run()
    return 0


if __name__ == "__main__":
    sys.exit(main())
