"""`rota version`."""

from __future__ import annotations

import sys

from rota import __version__
from rota.cli.command import Invocation, command
from rota.cli.render.printing import print_out


@command("version")
def version(call: Invocation) -> None:
    """Print the version."""
    if call.json:
        import json

        print_out(json.dumps({"version": __version__, "python": sys.version.split()[0]}))
    else:
        print_out(f"rota {__version__}")
