"""`rota modify`: change jobs that exist, with the options of `add`."""

from __future__ import annotations

from typing import Any, Final

import click

from rota.cli.command import Invocation, command
from rota.cli.commands.jobs.kill_retry_hold import MODIFIED, tell
from rota.cli.input.job_options import NAMES, given, options_for
from rota.cli.input.selectors import selectors
from rota.core.fields.table import CHANGEABLE

#: Options of `add` that are parsed here to be refused, with a hint what to do instead.
_REFUSED: Final = frozenset(NAMES) - frozenset(CHANGEABLE)


@command("modify")
@selectors(required=True)
@options_for(CHANGEABLE, hidden=_REFUSED)
@click.option("--cmd", metavar="TEXT", help="Another command, for the shell.")
@click.option("--dry-run", is_flag=True, hidden=True)
def modify(call: Invocation, selectors: tuple[str, ...], cmd: str | None, dry_run: bool, **options: Any) -> int:
    """Change jobs that are not running: their sizes, limits, retries, names and what is done after them.

    The options are those of 'rota add', and what is given replaces what was there: --limit, --on-success
    and the like replace the whole list, and 'none' empties it. 'none' also takes away --walltime and
    --no-retry-over. Jobs that run are left as they are.

    What a job is, --cmd, --cwd, --env and --after, can be changed until it is started for the first time. --env
    adds to its variables, --after replaces all that it waits for. It is refused if another job has this command
    in this directory already, or if jobs would wait for each other.

    \b
    Examples:
      rota modify 12 --mem 8G
      rota modify @work,state=failed --time 4h --retries 5
      rota modify @work --limit none --priority 9
      rota modify 12 --cmd 'make report' --after 10,@data
    """
    from rota.client.fields.modification import spec_change

    fields = given(options)
    if cmd is not None:
        fields["cmd"] = cmd
    if dry_run:
        fields["dry_run"] = True
    change = spec_change(fields, text=True)
    with call.connect() as client:
        acted = client.change(change, *selectors)
    return tell(call, acted, done=MODIFIED)
