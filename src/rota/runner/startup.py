"""``python -m rota.runner --socket PATH --dir DIR [--log FILE]``: run jobs for the manager at PATH, on its host.

``python -m rota.runner --manager HOST:PORT --pass FILE --dir DIR [--log FILE] [--node JSON]``: be the agent of a
node, for the manager at that address (`rota node run`).

``python -m rota.runner --ticket FILE --dir DIR [--manager HOST:PORT] [--log FILE] [--linger S] [--until TIME]``:
run jobs for the manager that the ticket names, or that is at this address, on a host that shares nothing with it.
A delegated pool has runners started so. ``--until SECONDS`` from now, or ``--until @SECONDS`` since the epoch:
when this runner will be ended, so that it takes no job that would take longer.
"""

from __future__ import annotations

import contextlib
import gc
import os
import sys
from typing import TYPE_CHECKING

from rota.errors import RotaError
from rota.runner import log
from rota.runner.agent import Agent
from rota.runner.identity import name_of
from rota.runner.report.journal import lock_file
from rota.runner.report.link import Dial, unix_dial

if TYPE_CHECKING:
    from rota.runner.ticket_runner import TicketRunner

USAGE = (
    "usage: python -m rota.runner --socket PATH --dir DIR [--log FILE] [--lasting yes]\n"
    "       python -m rota.runner --manager HOST:PORT --pass FILE --dir DIR [--log FILE] [--node JSON]\n"
    "       python -m rota.runner --ticket FILE --dir DIR [--manager HOST:PORT] [--log FILE] [--linger S]\n"
    "                             [--until SECONDS|@EPOCH]"
)
_NEEDED = ({"--socket", "--dir"}, {"--manager", "--pass", "--dir"}, {"--ticket", "--dir"})
_KNOWN = (
    {"--log", "--lasting"},
    {"--log", "--node"},
    {"--manager", "--log", "--linger", "--until"},
)
#: How long a runner with a ticket stays without work.
_LINGER_S = 2.0


def options(words: list[str]) -> dict[str, str]:
    """The options; raises `ValueError`. (`argparse` takes longer to load than all the rest.)"""
    found = dict(zip(words[::2], words[1::2], strict=True))
    for needed, known in zip(_NEEDED, _KNOWN, strict=True):
        if needed <= found.keys() <= needed | known:
            return found
    raise ValueError(USAGE)


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
    return Agent(dial, root, node=node, lasting=True)


def _ticket_runner(given: dict[str, str]) -> tuple[TicketRunner, Dial]:
    """Raises `OSError`, `ValueError` or `RotaError` if an option or the ticket cannot be used."""
    from pathlib import Path

    from rota.runner.node import tls_dial
    from rota.runner.ticket_runner import TicketRunner, moment
    from rota.wire import ticket_file

    until = moment(given["--until"]) if "--until" in given else None
    ticket = ticket_file.read(Path(given["--ticket"]))
    host, port = ticket_file.address(given.get("--manager", ticket.manager))
    dial = tls_dial(host, port, ticket.authority)
    return TicketRunner(ticket, Path(given["--dir"]), until=until), dial


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
        linger_s = float(given.get("--linger", _LINGER_S))
    except ValueError:
        sys.stderr.write(USAGE + "\n")
        return 2
    if "--log" in given:
        log.open_log(given["--log"])
    guest: TicketRunner | None = None
    try:
        if "--pass" in given:
            agent = _node_agent(given)
        elif "--socket" not in given:
            guest, dial = _ticket_runner(given)
            agent = Agent(dial, guest.root, node=guest, linger_s=linger_s)
        else:
            lasting = given.get("--lasting") == "yes"
            agent = Agent(unix_dial(given["--socket"]), given["--dir"], lasting=lasting)
    except (OSError, ValueError, RotaError) as error:
        log.say(f"cannot start: {error}")
        return 1
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)  # jobs leave no reference cycles behind
    agent.run()
    if guest is not None:
        try:
            guest.clean_up()
        except OSError as error:
            log.say(f"cannot remove {guest.directory}: {error}")
    return 1 if agent.failed else 0
