"""`rota node add`: start the agents of other hosts over the system's ssh."""

from __future__ import annotations

import contextlib
import secrets
import shlex
import subprocess
import time
from typing import TYPE_CHECKING, NamedTuple

import click

from rota.cli.command import Command, Invocation, print_json
from rota.cli.render.printing import print_err, print_out
from rota.errors import BadInput, NotFound

if TYPE_CHECKING:
    from rota.client.blocking import Client

_AT_ONCE = 16
_SSH_S = 60.0
_JOIN_S = 30.0
_CONNECTED = "its agent is connected already; to start another one all the same, give --again"

#: Read by the shell of the other host. The pass comes on its standard input: no list of processes shows it.
#: Should the agent not start, the pass that was there is put back: another agent may be started with it again.
_SCRIPT = """\
set -eu
umask 077
rota={rota}
dir={directory}
command -v "$rota" >/dev/null || {{ echo "there is no $rota on this host" >&2; exit 127; }}
mkdir -p "$dir"
cat > "$dir/pass.new"
rm -f "$dir/pass.old"
[ ! -e "$dir/pass" ] || cp -p "$dir/pass" "$dir/pass.old"
mv "$dir/pass.new" "$dir/pass"
nohup setsid "$rota" node run --manager {manager} --token "$dir/pass" --dir "$dir" --name {name} {more} \
    --log "$dir/agent.log" </dev/null >"$dir/agent.out" 2>&1 &
agent=$!
sleep 1
if kill -0 "$agent" 2>/dev/null; then rm -f "$dir/pass.old"; exit 0; fi
[ ! -e "$dir/pass.old" ] || mv "$dir/pass.old" "$dir/pass"
cat "$dir/agent.out" >&2
exit 1
"""


class StartedAgent(NamedTuple):
    """What became of one host."""

    host: str
    error: str  #: empty: its agent was started


class _Token(NamedTuple):
    """The token made for one host."""

    name: str
    text: str  #: of its pass


@click.command("add", cls=Command)
@click.argument("hosts", metavar="HOST…", nargs=-1, required=True)
@click.option("--manager", metavar="HOST:PORT", help="Where agents find the manager (default: where it listens).")
@click.option(
    "--ssh", "ssh", metavar="COMMAND", default="ssh", show_default=True, help="Command that reaches a host."
)
@click.option(
    "--rota",
    "rota",
    metavar="PATH",
    default="rota",
    show_default=True,
    help="Path of the program rota on the hosts.",
)
@click.option(
    "--dir",
    "directory",
    metavar="DIR",
    default="",
    help="Directory for the agents' files (default: below ~/.local/state/rota).",
)
@click.option(
    "--option", "more", metavar="WORDS", multiple=True, help="Options passed on to 'rota node run'; repeatable."
)
@click.option("--again", is_flag=True, help="Start an agent even where one is connected.")
@click.option("--no-wait", is_flag=True, help="Do not wait until the nodes have joined.")
def add(
    call: Invocation, hosts: tuple[str, ...], manager: str | None, ssh: str, rota: str, directory: str,
    more: tuple[str, ...], again: bool, no_wait: bool,
) -> int:  # fmt: skip
    """Start an agent on each of these hosts, over ssh, and wait until they have joined.

    Each host gets its own token, valid only there, which replaces earlier ones. Rota must be installed on the
    hosts.

    \b
    Examples:
      rota node add n[1-8]
      rota node add desk4 --manager head.lab:7000 --option "--hours '20:00-07:00 mon-fri'"
      rota node add n9 --ssh "ssh -p 2222 -i key" --rota /opt/rota/bin/rota
    """
    from concurrent.futures import ThreadPoolExecutor

    from rota.client.endpoint import parse_address
    from rota.plan.language.hostlist import check_name, expand

    names = expand(",".join(hosts))
    for name in names:
        check_name(name, "a host")
    words = [word for text in more for word in _words("--option", text)]
    program = _words("--ssh", ssh)
    if not program:
        raise BadInput("--ssh: there is no command", hint='leave it out, or write it like "ssh -p 2222"')
    with call.connect() as client:
        address = manager or _address(client)
        parse_address(address)
        before = _agents(client)
        refused = [] if again else [StartedAgent(name, _CONNECTED) for name in names if name in before]
        names = [name for name in names if again or name not in before]
        made = {name: _token(client, name) for name in names}

        def start(name: str) -> StartedAgent:
            # Hosts may share a file system: each has a directory of its own.
            parent = shlex.quote(directory) if directory else '"$HOME"/.local/state/rota/nodes'
            where = f"{parent}/{shlex.quote(name)}"
            script = _SCRIPT.format(
                directory=where,
                rota=shlex.quote(rota),
                manager=shlex.quote(address),
                name=shlex.quote(name),
                more=shlex.join(words),
            )
            return _over_ssh(program, name, script, made[name].text)

        with ThreadPoolExecutor(max_workers=_AT_ONCE) as threads:
            done = list(threads.map(start, names))
        started = {each.host for each in done if not each.error}
        joined = started if no_wait else _wait(client, started, before)
        _remove_tokens(client, made, started=started, joined=joined)
    return _tell(call, refused + done, joined, "started" if no_wait else "joined")


def _words(option: str, text: str) -> list[str]:
    try:
        return shlex.split(text)
    except ValueError as error:
        raise BadInput(
            f"{option}: '{text[:80]}' cannot be read: {str(error).lower()}", hint="close the quotes"
        ) from None


def _address(client: Client) -> str:
    import ipaddress

    from rota.client.endpoint import parse_address

    text = client.manager_status().address or ""
    host = parse_address(text)[0] if text else ""
    try:
        loopback = not host or ipaddress.ip_address(host).is_loopback
        anywhere = bool(host) and ipaddress.ip_address(host).is_unspecified
    except ValueError:
        loopback = anywhere = False
    if loopback:
        raise BadInput(
            "the manager listens on loopback only, where no other host can reach it",
            hint="set 'host' (and 'port') in rota.toml, start it again, and open the port",
        )
    if anywhere:
        raise BadInput("the manager listens on all addresses", hint="say which one: --manager HOST:PORT")
    return text


def _token(client: Client, host: str) -> _Token:
    """A new token for this host. Its other tokens stay, in case the new agent does not start."""
    from rota.wire.node_pass import compose

    made = client.add_token(f"node-{host[:40]}-{secrets.token_hex(4)}", "runner", host=host)
    return _Token(made.name, compose(made.token, made.authority))


def _remove_tokens(client: Client, made: dict[str, _Token], *, started: set[str], joined: set[str]) -> None:
    """Remove the old tokens of hosts whose new agent has joined, and the new tokens of hosts where it did not
    start."""
    ours = {token.name: host for host, token in made.items()}
    for each in client.tokens():
        if each.role != "runner" or each.host is None:
            continue
        useless = ours[each.name] not in started if each.name in ours else each.host in joined
        if useless:
            with contextlib.suppress(NotFound):  # it is removed already
                client.remove_token(each.name)


def _over_ssh(program: list[str], host: str, script: str, text: str) -> StartedAgent:
    argv = [*program, "--", host, f"sh -c {shlex.quote(script)}"]
    try:
        done = subprocess.run(argv, input=text.encode("ascii"), capture_output=True, timeout=_SSH_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        why = f"cannot run {argv[0]}: {error.strerror}" if isinstance(error, OSError) else "no answer"
        return StartedAgent(host, why)
    if done.returncode == 0:
        return StartedAgent(host, "")
    lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
    return StartedAgent(host, lines[-1] if lines else f"exit status {done.returncode}")


def _agents(client: Client) -> dict[str, tuple[str | None, int | None]]:
    """The agents that are connected, by their hosts."""
    return {each.host: (each.runner, each.pid) for each in client.nodes() if each.connected}


def _wait(client: Client, hosts: set[str], before: dict[str, tuple[str | None, int | None]]) -> set[str]:
    """The hosts whose new agent has joined."""
    deadline = time.monotonic() + _JOIN_S
    while True:
        joined = {host for host, agent in _agents(client).items() if before.get(host) != agent} & hosts
        if joined == hosts or time.monotonic() > deadline:
            return joined
        time.sleep(0.2)


def _tell(call: Invocation, done: list[StartedAgent], joined: set[str], how: str) -> int:
    from rota.cli.render.text import harmless

    missing = [each.host for each in done if not each.error and each.host not in joined]
    failed = [each for each in done if each.error]
    if call.json:
        print_json(
            {"added": sorted(joined), "missing": missing, "failed": {each.host: each.error for each in failed}}
        )
    elif call.quiet:
        print_out(*sorted(joined))
    elif joined:
        print_out(f"{', '.join(sorted(joined))}: {how}")
    for each in failed:
        print_err(f"rota: {each.host}: {harmless(each.error)}")
    for host in missing:
        print_err(f"rota: {host}: started, but has not joined yet; see its agent.log")
    return 1 if failed or missing else 0
