"""`rota version`."""

from __future__ import annotations

import sys

from rota import __version__
from rota.cli.command import Invocation, command
from rota.cli.render.printing import say


@command("version")
def version(call: Invocation) -> None:
    """Print the version."""
    if call.json:
        import json

        say(json.dumps({"version": __version__, "python": sys.version.split()[0]}))
    else:
        say(f"rota {__version__}")
