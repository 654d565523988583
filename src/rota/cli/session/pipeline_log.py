"""Everything that a job of a pipeline printed, byte for byte as `rota logs` prints it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from rota.cli.render.pipeline_text import title
from rota.cli.render.printing import print_out
from rota.cli.render.text import harmless, literal
from rota.errors import NoManager, RotaError

if TYPE_CHECKING:
    from rota.client.blocking import Client


def print_log(client: Client, job: int) -> None:
    """Print it on stdout. Raises `NoManager`."""
    print_out(title(f"output of job {job}"))
    sys.stdout.flush()
    last = b"\n"
    try:
        for err in (False, True):
            for part in client.output_parts(job, err=err):
                sys.stdout.buffer.write(part)
                last = part[-1:] or last
    except NoManager:
        raise
    except RotaError as error:
        print_out(harmless(error.message))
    sys.stdout.buffer.flush()
    # The job may have left a line open, or a colour on.
    print_out(*([] if last == b"\n" else [""]), literal("\x1b[0m") + title("end of the output"))
    sys.stdout.flush()
