"""`rota node run`: become the agent of this host."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any, NoReturn

import click

from rota.cli.command import Command, Invocation
from rota.cli.render.printing import print_out

_MAKE = "rota manager token add NAME --role runner --out FILE"

_UNIT = """\
[Unit]
Description=Rota node agent
Wants=network-online.target
After=network-online.target

[Service]
ExecStart={command}
# The agent leaves at once, and its jobs go on: the next agent takes them over.
KillMode=process
KillSignal=SIGUSR1
Delegate=yes
DelegateSubgroup=agent
Restart=always
RestartSec=5
TimeoutStopSec=90

[Install]
WantedBy=multi-user.target
"""


@click.command("run", cls=Command)
@click.option(
    "--manager",
    metavar="HOST:PORT",
    required=True,
    help="Address of the manager (its settings `host` and `port`).",
)
@click.option(
    "--token", "token_file", metavar="FILE", required=True,
    help="Token file, from 'rota manager token add --role runner --out FILE'.",
)  # fmt: skip
@click.option("--name", metavar="NAME", help="The node's name (default: that of this host).")
@click.option("--dir", "directory", metavar="DIR", help="Directory for the agent's files.")
@click.option("--cores", type=click.IntRange(1, 65_536), help="Cores that jobs may use (default: all).")
@click.option("--mem", metavar="SIZE", help="Memory that jobs may use (default: what there is).")
@click.option("--disk", metavar="SIZE", help="Disk that jobs may use (default: what is free).")
@click.option("--gpus", type=click.IntRange(0, 100_000), help="GPUs (default: those found in /dev).")
@click.option(
    "--property", "properties", metavar="NAME=VALUE", multiple=True, help="Announce a property; repeat it."
)
@click.option(
    "--hours",
    metavar="HOURS",
    help="Hours in which jobs may run here, such as '20:00-07:00 mon-fri' (default: always).",
)
@click.option("--log", metavar="FILE", help="Write the log to this file instead of stderr.")
@click.option("--print-unit", is_flag=True, help="Print a systemd unit for this agent and exit.")
def run(
    call: Invocation, manager: str, token_file: str, name: str | None, directory: str | None, cores: int | None,
    mem: str | None, disk: str | None, gpus: int | None, properties: tuple[str, ...], hours: str | None,
    log: str | None, print_unit: bool,
) -> int:  # fmt: skip
    """Run an agent on this host: register its resources with a manager and run jobs until stopped.

    The agent only ever connects outwards. It and its jobs survive restarts of the manager. On the first SIGTERM
    it leaves when its jobs have ended; on the second it kills them. Jobs run as the user of the agent.

    \b
    Examples:
      rota node run --manager head:7000 --token node7.token
      rota node run --manager head:7000 --token desk.token --hours "20:00-07:00 mon-fri, * sat,sun"
      rota node run --manager head:7000 --token /etc/rota/pass --print-unit > rota-node.service
    """
    import msgspec

    from rota.client.endpoint import parse_address
    from rota.home import node_home
    from rota.runner.node import NodeOptions

    parse_address(manager)
    _check_own_name(name)
    _check_pass(token_file)
    options = NodeOptions(
        name=name or "",
        cores=cores,
        mem=_size("mem", mem),
        disk=_size("disk", disk),
        gpus=gpus,
        properties=_properties(properties),
        hours=_hours(hours),
    )
    root = Path(directory) if directory else node_home(options.name)
    argv = [
        sys.executable, "-P", "-m", "rota.runner", "--manager", manager, "--pass", os.path.abspath(token_file),
        "--dir", str(root.absolute() / "runners"), "--node", msgspec.json.encode(options).decode(),
    ]  # fmt: skip
    if log:
        argv += ["--log", os.path.abspath(log)]
    if print_unit:
        print_out(*_UNIT.format(command=" ".join(_quoted(word) for word in argv)).splitlines())
        return 0
    return _become(root, argv)


def _become(root: Path, argv: list[str]) -> NoReturn:
    from rota.errors import EnvironmentFault
    from rota.pools.local import runner_lives

    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFault(f"cannot use {root}: {error.strerror}", hint="give another --dir") from None
    if runner_lives(root / "runners"):
        raise EnvironmentFault(
            f"an agent runs here already: {root} is in use", hint="stop it first, or give another --dir and --name"
        )
    os.execv(sys.executable, argv)


def _check_pass(path: str) -> None:
    from rota.errors import BadInput
    from rota.wire import node_pass, private_files

    try:
        node_pass.parse(private_files.read(Path(path)).decode("ascii"))
    except FileNotFoundError:
        raise BadInput(f"--token: there is no file {path}", hint=f"make one: {_MAKE}") from None
    except (ValueError, OSError) as error:
        raise BadInput(
            f"--token: {path} cannot be used: {error}",
            hint=f"it must be what '{_MAKE}' wrote",
        ) from None


def _check_own_name(given: str | None) -> None:
    from rota.plan.language.hostlist import check_name

    if given is not None:
        check_name(given, "a node")
        return
    import socket

    from rota.errors import BadInput

    own = socket.gethostname() or "localhost"
    try:
        check_name(own, "a node")
    except BadInput as error:
        raise BadInput(f"this host is called {own!r}: {error.message}", hint="give the node a --name") from None


def _size(name: str, text: str | None) -> int | None:
    from rota.errors import BadInput
    from rota.units import parse_size

    if text is None:
        return None
    try:
        return parse_size(text)
    except BadInput as error:
        raise error.at(field=name, label=f"--{name}") from None


def _properties(words: tuple[str, ...]) -> dict[str, str | int | bool]:
    from rota.errors import BadInput
    from rota.plan.site.inventory import guess_kind
    from rota.plan.site.records import read_value

    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name or not text:
            raise BadInput(f"--property: '{word[:80]}' sets nothing", hint="write NAME=VALUE")
        if name in found:
            raise BadInput(f"--property: '{name}' is given twice", hint="give it once")
        found[name] = read_value(name, text, guess_kind(text))
    return found


def _hours(text: str | None) -> str:
    if not text:
        return ""
    from rota.plan.site.availability import parse_hours

    parse_hours(text)
    return text


def _quoted(word: str) -> str:
    """As systemd reads it. A line that ends early would begin another directive."""
    from rota.errors import BadInput

    if not word.isprintable():
        raise BadInput(f"{word[:80]!r} cannot stand in a unit", hint="use a name without control characters")
    plain = word.replace("%", "%%").replace("\\", "\\\\").replace("$", "$$")
    return plain if plain and not set(plain) & set(" \t'\"") else '"' + plain.replace('"', '\\"') + '"'
