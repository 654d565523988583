"""`rota-rsh`: for programs that start others with `ssh HOST COMMAND`, inside a job on several nodes.

It connects to the job's own runner, so it needs neither a token nor a route to the manager.
"""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Final, NamedTuple, NoReturn

import click

from rota.cli.command import Invocation, command
from rota.cli.render.printing import print_err
from rota.errors import BadInput, Denied, NoManager, RotaError

if TYPE_CHECKING:
    from rota.client.blocking import Client

#: Options of ssh that have a value.
_VALUED: Final = "BbcDEeFIiJLlmOopQRSWw"
#: What ssh exits with when it, and not the command, has failed.
_FAILED: Final = 255
_HINT: Final = "it is meant for launchers such as mpirun, inside a job"


class SshRequest(NamedTuple):
    """A command line of ssh, parsed."""

    host: str
    text: str  #: for a shell; empty: an interactive one
    stdin: bool
    tty: bool


def parse(words: list[str]) -> SshRequest:
    """Read `[OPTIONS] [USER@]HOST [COMMAND…]`. Raises `BadInput`."""
    rest = list(words)
    stdin, tty = True, False
    while rest and rest[0].startswith("-") and len(rest[0]) > 1:
        word = rest.pop(0)
        if word == "--":
            break
        for place, letter in enumerate(word[1:], 1):
            if letter in _VALUED:
                if place == len(word) - 1 and rest:
                    rest.pop(0)
                break
            stdin = stdin and letter != "n"
            tty = tty or letter == "t"
    if not rest:
        raise BadInput("no host is given", hint=_HINT)
    host = rest.pop(0).rpartition("@")[2]
    return SshRequest(host, " ".join(rest), stdin, tty or (not rest and os.isatty(0)))


def run(words: list[str]) -> int:
    """Run the command as ssh would; returns the exit status."""
    from rota.cli.session.channel_bridge import ChannelBridge, HungUp, exit_status, window
    from rota.client.channels import Opening
    from rota.client.live_channel import LiveChannel

    asked = parse(words)
    job = os.environ.get("ROTA_JOB_ID", "")
    if not job.isascii() or not job.isdigit():
        raise BadInput("this is not inside a job: ROTA_JOB_ID is not set", hint=_HINT)
    rows, cols = window()
    what = Opening(
        job=int(job),
        node=asked.host,
        cmd=["sh", "-c", asked.text] if asked.text else [],
        tty=asked.tty,
        rows=rows,
        cols=cols,
        term=os.environ.get("TERM", ""),
    )
    with call_runner() as client:
        try:
            return exit_status(ChannelBridge(LiveChannel(client, what), tty=asked.tty, stdin=asked.stdin).run())
        except HungUp:
            return _FAILED


def call_runner() -> Client:
    """A connection to the runner that this process runs under."""
    from rota.client.blocking import Client
    from rota.client.endpoint import Endpoint

    path = os.environ.get("ROTA_RELAY", "")
    if not path:
        raise Denied("the runner of this job offers no way to its nodes: ROTA_RELAY is not set", hint=_HINT)
    try:
        # By its directory's descriptor: the path of a socket must be short.
        place = os.open(os.path.dirname(path), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise NoManager(f"the runner of this job is gone: {error.strerror}") from None
    socket = f"/proc/self/fd/{place}/{os.path.basename(path)}"
    return Client(lambda: Endpoint(socket=socket, role="lease"))


def main() -> NoReturn:
    """The program `rota-rsh`."""
    from rota.cli.render.errors import explain

    try:
        status = run(sys.argv[1:])
    except KeyboardInterrupt:
        status = 130
    except BrokenPipeError:
        status = 141
    except (RotaError, OSError) as error:
        print_err(f"rota-rsh: {explain(error)}")
        status = _FAILED
    sys.exit(status)


@command("rsh", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})
@click.argument("words", nargs=-1, required=True, type=click.UNPROCESSED, metavar="HOST [CMD…]")
def rsh(_call: Invocation, words: tuple[str, ...]) -> int:
    """Start a command on another node of the job that this runs in, as 'ssh HOST CMD' would.

    For launchers such as mpirun, also as the program rota-rsh; in a job on several nodes Open MPI and MPICH find
    it by themselves. Options of ssh are accepted, and ignored where they have no meaning.

    \b
    Examples:
      mpirun --mca plm_rsh_agent rota-rsh --hostfile $ROTA_NODEFILE ./program
      rota rsh n2 hostname
    """
    return run(list(words))
