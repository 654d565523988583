"""`rota exec` and `rota connect`: a command or a shell inside a running job."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.input.selectors import one_job

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.client.channels import Opening

_NODE = click.option(
    "--node", default="", metavar="N", help="Host of the job to run on: a name, or a number counted from 0."
)
_KEY = click.option(
    "--job-key", metavar="FILE", help="Enter the job with its key (see 'rota add --job-key'); no token is needed."
)


@command("exec", takes_command=True)
@click.argument("id", metavar="ID")
@_NODE
@click.option("-t", "--tty", is_flag=True, help="Allocate a terminal, for programs that need one.")
@click.option("-n", "--no-stdin", is_flag=True, help="Do not pass stdin on.")
@click.option("--cwd", default="", metavar="DIR", help="Working directory (default: the job's).")
@click.option("--env", "variables", multiple=True, metavar="K=V", help="Add to the job's environment.")
@_KEY
def exec_(
    call: Invocation,
    id: str,
    command: list[str] | None,
    node: str,
    tty: bool,
    no_stdin: bool,
    cwd: str,
    variables: tuple[str, ...],
    job_key: str | None,
) -> int:
    """Run a command inside a running job.

    It runs on the job's first host, or on the one given by --node, with the job's environment, directory and
    resources. It is ended when the job ends. Stdin, stdout and stderr are passed on, and so are Ctrl-C and other
    signals. The exit status is that of the command, or 128 + N if signal N ended it.

    \b
    Examples:
      rota exec 17 -- ps -u me
      tar c data | rota exec 17 --node 1 -- tar x
      rota exec -t 17 -- top
      rota exec --job-key shared.key --address other:7000 17 -- hostname
    """
    from rota.client.channels import Opening
    from rota.errors import BadInput

    if not command:
        raise BadInput("there is no command after '--'", hint="for a shell use 'rota connect'")
    for entry in variables:
        if not entry.partition("=")[0] or "=" not in entry:
            raise BadInput(f"--env: '{entry[:40]}' is not NAME=VALUE", hint="write it like LANG=C")
    if tty and call.json:
        raise BadInput("--tty shows what comes, which is not one JSON value", hint="leave --json out")
    what = Opening(job=0, cmd=command, node=node, tty=tty, cwd=cwd, env=list(variables), key=_secret(job_key))
    if call.json:
        return _as_json(call, id, what, stdin=not no_stdin)
    return enter(call, id, what, stdin=not no_stdin)


@command("connect")
@click.argument("id", metavar="ID")
@_NODE
@_KEY
def connect(call: Invocation, id: str, node: str, job_key: str | None) -> int:
    """Open a shell with a terminal inside a running job.

    The same as 'rota exec -t' with your shell. Type ~. at the beginning of a line to hang up, which ends the
    shell.

    \b
    Examples:
      rota connect 17
      rota connect 17 --node n2
    """
    from rota.client.channels import Opening
    from rota.errors import BadInput

    if call.json:
        raise BadInput("a shell is not one JSON value", hint="leave --json out, or use 'rota exec --json'")
    if not os.isatty(0):
        raise BadInput("this is not a terminal", hint="for a command without one use 'rota exec ID -- CMD'")
    return enter(call, id, Opening(job=0, node=node, tty=True, key=_secret(job_key)))


def _secret(path: str | None) -> str:
    """The secret in the file of a key, if one was given."""
    if path is None:
        return ""
    from rota.client.job_keys import secret_in

    return secret_in(path)


def _connect(call: Invocation, key: str) -> Client:
    """The manager, by what we are or by the key of a job and nothing else."""
    if not key:
        return call.connect()
    import msgspec

    from rota.client.blocking import Client
    from rota.client.endpoint import find

    return Client(
        lambda: msgspec.structs.replace(find(call.home, address=call.address, token=key), role="key", token=key)
    )


def enter(call: Invocation, id: str, what: Opening, *, stdin: bool = True) -> int:
    """Open a channel, join it with our streams, and return what to exit with."""
    import msgspec

    from rota.cli.session.channel_bridge import ChannelBridge, HungUp, exit_status, window
    from rota.client.live_channel import LiveChannel

    with _connect(call, what.key) as client:
        rows, cols = window()
        job = _number(id) if what.key else one_job(client, id)
        what = msgspec.structs.replace(what, job=job, rows=rows, cols=cols, term=os.environ.get("TERM", ""))
        try:
            return exit_status(ChannelBridge(LiveChannel(client, what), tty=what.tty, stdin=stdin).run())
        except HungUp:
            return 255


def _number(id: str) -> int:
    """The id of the job. With only a job key, jobs cannot be looked up, so it must be a number."""
    from rota.errors import BadInput

    if not id.isascii() or not id.isdigit() or len(id) > 18:
        raise BadInput(f"'{id[:40]}' is not the id of a job", hint="with --job-key give a number")
    return int(id)


def _as_json(call: Invocation, id: str, what: Opening, *, stdin: bool) -> int:
    import sys

    data = sys.stdin.buffer.read() if stdin and not sys.stdin.isatty() else b""
    with _connect(call, what.key) as client:
        variables = dict(entry.split("=", 1) for entry in what.env)
        job = _number(id) if what.key else one_job(client, id)
        done = client.execute(job, what.cmd, input=data, node=what.node, env=variables, cwd=what.cwd, key=what.key)
    texts = {"stdout": done.stdout.decode("utf-8", "replace"), "stderr": done.stderr.decode("utf-8", "replace")}
    print_json({"id": job, "exit_code": done.exit_code, "signal": done.signal, "message": done.message, **texts})
    return done.exit_code if done.exit_code is not None else 128 + (done.signal or 0)
