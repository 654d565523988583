"""`rota top`: a full-screen view of the jobs. Only starts it: the screens are in `rota.cli.screen`."""

from __future__ import annotations

import sys

from rota.cli.command import Invocation, command
from rota.cli.input.selectors import selectors


@command("top")
@selectors(required=False)
def top(call: Invocation, selectors: tuple[str, ...]) -> int:
    """Watch running, waiting and failed jobs on a full screen, and act on them.

    Press ? there for the keys. It needs textual in the environment of rota: pip install textual.

    \b
    Examples:
      rota top
      rota top @work
    """
    from rota.cli.render.text import is_terminal
    from rota.errors import UserError

    if call.json or call.quiet:
        raise UserError("rota top is for people", hint="use 'rota status --json' or 'rota jobs --json'")
    if not (is_terminal(sys.stdin) and is_terminal(sys.stdout)):
        raise UserError("rota top needs a terminal", hint="use 'rota status --watch' in a pipe")
    try:
        from rota.cli.screen.app import TopApp
    except ModuleNotFoundError as missing:
        if (missing.name or "").partition(".")[0] != "textual":
            raise
        raise UserError("rota top needs textual", hint="install it with: pip install textual") from None
    with call.connect_to_read() as client:
        client.status(*selectors)  # a selector that is not understood is refused here, in one line
        app = TopApp(call.connect, client, filter=" ".join(selectors))
        app.run()
    return app.return_code or 0
