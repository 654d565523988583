"""`rota manager pause`, `resume` and `drain`."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Final

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.render.printing import print_err, print_out, redraw, wipe

if TYPE_CHECKING:
    from rota.client.blocking import Client
    from rota.wire.views import ManagerView, PauseView

_LOOK_AGAIN_S: Final = 0.2
_STOPPING_S: Final = 60.0


@command("pause")
def pause(call: Invocation) -> int:
    """Start no more jobs until 'rota manager resume', also after a restart of the manager.

    Running jobs continue, and jobs can be added. No job starts after this command has returned.

    \b
    Examples:
      rota manager pause
    """
    with call.connect() as client:
        view = client.pause_manager()
    return _tell(call, view, "the manager is paused")


@command("resume")
def resume(call: Invocation) -> int:
    """Let jobs start again, after 'pause', during 'drain', or after bugs; what met a bug is tried again.

    \b
    Examples:
      rota manager resume
    """
    with call.connect() as client:
        view = client.resume_manager()
    return _tell(call, view, "jobs may start")


def _tell(call: Invocation, view: PauseView, what: str) -> int:
    if call.json:
        print_json(view)
    elif not call.quiet:
        from rota.cli.render.text import count

        going_on = f"; {count(view.running, 'job')} may still run" if view.running and view.paused else ""
        print_out(what + going_on)
        _warn(view)
    return 0


def _warn(view: PauseView) -> None:
    if view.unreachable and (view.paused or view.draining):
        from rota.cli.render.text import count

        print_err(
            f"rota: {count(view.unreachable, 'job')} may still start at runners that do not answer; "
            "see 'rota manager status'"
        )


@command("drain")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Return when the manager has stopped.")
def drain(call: Invocation, wait: bool) -> int:
    """Start no more jobs, let the running ones end, then stop the manager.

    Jobs can be added meanwhile; they run when the manager is started again. Ctrl-C leaves it draining;
    'rota manager resume' ends that. Lost jobs are waited for, too: see 'rota confirm-dead'.

    \b
    Examples:
      rota manager drain
      rota manager drain --no-wait
    """
    from rota.errors import NoManager

    with call.connect() as client:
        view = client.manager_status()
        try:
            answer = client.drain_manager()
            if not call.json and not call.quiet:
                _warn(answer)
            if wait:
                _wait(client, call)
        except NoManager:
            pass  # it has stopped
        except KeyboardInterrupt:
            print_err("", "rota: the manager goes on draining; 'rota manager resume' ends that")
            raise
    if wait and not (call.address or os.environ.get("ROTA_MANAGER")):
        wait_for_end(view.pid)
    if call.json:
        print_json({"pid": view.pid, "stopped": wait})
    elif not call.quiet:
        print_out("nothing runs any more, and the manager has stopped" if wait else "the manager is draining")
    return 0


def _wait(client: Client, call: Invocation) -> None:
    """Watch the manager until it stops (`NoManager`).

    On a terminal the line is redrawn in place; elsewhere only changes are printed.
    """
    from rota.cli.render.text import is_terminal
    from rota.errors import UserError

    on_terminal = is_terminal(sys.stderr)
    said = ""
    try:
        while True:
            view = client.manager_status()
            if not view.draining:
                raise UserError("the manager was resumed", hint="to go on, drain it again")
            line = _progress(view)
            if line != said and not call.json and not call.quiet:
                said = line
                if on_terminal:
                    redraw(line)
                else:
                    print_err(f"rota: {line}")
            time.sleep(_LOOK_AGAIN_S)
    finally:
        if on_terminal and said:
            wipe()


def _progress(view: ManagerView) -> str:
    from rota.core.states import LEASED, State

    left = [(state.label, view.counts.get(state.label, 0)) for state in State if state in LEASED]
    parts = [f"{number:,} {label}" for label, number in left if number]
    waiting = view.counts.get("ready", 0)
    return f"draining: {', '.join(parts) or 'nothing'} left; {waiting:,} ready for the next start"


def wait_for_end(pid: int) -> None:
    """Wait until the manager's process has ended."""
    from rota.errors import TimedOut

    limit = time.monotonic() + _STOPPING_S
    while _alive(pid):
        if time.monotonic() > limit:
            raise TimedOut(f"the manager (pid {pid}) has not ended yet", hint="see 'rota manager logs'")
        time.sleep(0.02)


def _alive(pid: int) -> bool:
    """Does the process run? A zombie does not."""
    try:
        with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as file:
            return file.read().rpartition(")")[2].split()[0] not in ("Z", "X")
    except (OSError, IndexError):
        return False
