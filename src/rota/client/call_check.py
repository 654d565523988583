"""Checks a call where it is added: its own interpreter imports the function and binds the arguments."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Final

import msgspec

from rota.core.jobs.command import Call
from rota.errors import BadInput

_PATIENCE_S: Final = 60.0
#: What executes calls (which is never imported here).
_TEMPLATE: Final = Path(__file__).parents[1] / "launcher" / "template.py"


class _Told(msgspec.Struct):
    reason: str = ""
    error: tuple[str, str, str] | None = None


def check_here(call: Call) -> None:
    """Raise `BadInput` if the function cannot be imported here, or does not take these arguments."""
    python = call.python or "python3"
    request = msgspec.json.encode(call)
    with _file(request) as file:
        try:
            done = subprocess.run(
                [python, str(_TEMPLATE), "check", str(file.fileno())],
                pass_fds=[file.fileno()],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                timeout=_PATIENCE_S,
                check=False,
            )
        except OSError as error:
            raise BadInput(f"{python} cannot be executed: {error.strerror}").at(field="python") from None
        except subprocess.TimeoutExpired:
            raise BadInput(f"{call.call} was not imported within {_PATIENCE_S:g} s").at(field="call") from None
        file.seek(len(request))
        told = file.readline()
    if not told:
        words_of_it = done.stderr.decode("utf-8", "replace").strip().splitlines()
        why = words_of_it[-1] if words_of_it else f"{python} ended with exit status {done.returncode}"
        raise BadInput(f"{call.call} cannot be checked: {why}", hint="see --python").at(field="call")
    found = msgspec.json.decode(told, type=_Told)
    if found.error is not None:
        kind, message, _ = found.error
        what = "cannot be imported" if found.reason == "import" else "does not take these arguments"
        hint = "the module must be installed for this interpreter, or lie in the working directory"
        refused = BadInput(f"{call.call} {what}: {kind}: {message}", hint=hint if found.reason == "import" else "")
        raise refused.at(field="call" if found.reason == "import" else "args")


def _file(request: bytes):  # type: ignore[no-untyped-def]
    file = open(os.memfd_create("call"), "r+b")  # noqa: SIM115, closed by the caller's `with`
    file.write(request)
    file.flush()
    return file
