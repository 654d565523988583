"""``python -m rota.runner --socket PATH --dir DIR [--log FILE] [--ticket FILE --linger S]``: run jobs for the
manager at PATH. A runner that a delegated pool asked for has a ticket.

``python -m rota.runner --manager HOST:PORT --pass FILE --dir DIR [--log FILE] [--node JSON]``: be the agent of a
node, for the manager at that address (`rota node run`).
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys

from rota.runner import log
from rota.runner.agent import Agent
from rota.runner.identity import name_of
from rota.runner.report.journal import lock_file
from rota.runner.report.link import unix_dial

USAGE = (
    "usage: python -m rota.runner --socket PATH --dir DIR [--log FILE] [--ticket FILE] [--linger S]\n"
    "       python -m rota.runner --manager HOST:PORT --pass FILE --dir DIR [--log FILE] [--node JSON]"
)
_NEEDED = ({"--socket", "--dir"}, {"--manager", "--pass", "--dir"})
_KNOWN = ({"--log", "--ticket", "--linger"}, {"--log", "--node"})
#: How long a runner with a ticket stays without work.
_LINGER_S = 2.0


def options(words: list[str]) -> dict[str, str]:
    """The options; raises `ValueError`. (`argparse` takes longer to load than all the rest.)"""
    found = dict(zip(words[::2], words[1::2], strict=True))
    for needed, known in zip(_NEEDED, _KNOWN, strict=True):
        if needed <= found.keys() <= needed | known:
            return found
    raise ValueError(USAGE)


def _read(path: str) -> str:
    """A ticket comes in a file: every user can read the arguments of a process."""
    with open(path, encoding="ascii") as file:
        return file.read().strip()


def _node_agent(given: dict[str, str]) -> Agent:
    """Raises `OSError` or `ValueError` if an option or the pass cannot be used."""
    import msgspec

    from rota.runner.node import Node, NodeOptions, tls_dial
    from rota.wire.node_pass import parse

    host, _, port = given["--manager"].rpartition(":")
    with open(given["--pass"], encoding="ascii") as file:
        token, authority = parse(file.read())
    options = msgspec.json.decode(given.get("--node", "{}"), type=NodeOptions)
    root = given["--dir"]
    os.makedirs(root, mode=0o700, exist_ok=True)
    node = Node(options, token, root)
    if lock_file(f"{root}/{name_of(node.name)}.lock", create=True) is None:  # held as long as we live
        raise ValueError(f"an agent of {node.name} runs here already: {root} is in use")
    dial = tls_dial(host.removeprefix("[").removesuffix("]"), int(port), authority)
    return Agent(dial, root, node=node)


def _keep_to_ourselves() -> None:
    """Let jobs inherit no descriptor that the parent of this process left open."""
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            with contextlib.suppress(OSError):  # the descriptor of the listing itself is closed by now
                os.set_inheritable(int(name), False)


def main() -> int:
    _keep_to_ourselves()
    try:
        given = options(sys.argv[1:])
        linger_s = float(given.get("--linger", _LINGER_S)) if "--ticket" in given else None
    except ValueError:
        sys.stderr.write(USAGE + "\n")
        return 2
    if "--log" in given:
        log.open_log(given["--log"])
    try:
        if "--manager" in given:
            agent = _node_agent(given)
        else:
            ticket = _read(given["--ticket"]) if "--ticket" in given else ""
            agent = Agent(unix_dial(given["--socket"]), given["--dir"], ticket=ticket, linger_s=linger_s)
    except (OSError, ValueError) as error:
        log.say(f"cannot start: {error}")
        return 1
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # jobs leave no reference cycles behind
    agent.run()
    return 1 if agent.failed else 0


if __name__ == "__main__":
    sys.exit(main())
