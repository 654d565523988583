"""`rota manager`: start, stop and look at the manager of this deployment."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.commands.manager.manager_adopt import adopt
from rota.cli.commands.manager.manager_backup import backup, restore
from rota.cli.commands.manager.manager_pause import drain, pause, resume, wait_for_end
from rota.cli.commands.manager.manager_token import token
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.cli.render.text import SafeText
    from rota.wire.views import AttentionView, BugsView, ManagerView


@click.group("manager", cls=Group)
def manager() -> None:
    """Start, stop and look at the manager of this deployment."""


@manager.command("start")
@click.option("--foreground", is_flag=True, help="Run in this terminal instead of the background.")
@click.option("--host", metavar="ADDRESS", help="Address to listen on by TLS (default: 127.0.0.1).")
@click.option("--port", metavar="PORT", help="Port to listen on by TLS (default: a free one).")
def start(call: Invocation, foreground: bool, host: str | None, port: str | None) -> int:
    """Start the manager. It runs until it is stopped.

    \b
    Examples:
      rota manager start
      rota manager start --foreground --host 0.0.0.0 --port 7000
    """
    from rota.config import load
    from rota.errors import NoManager

    home = call.home
    flags = {"host": host, "port": port}
    load(home, flags=flags)  # mistakes are told here, not in a log
    for name, value in flags.items():
        if value is not None:
            os.environ[f"ROTA_{name.upper()}"] = value
    if foreground:
        from rota.client.starter import environment

        home.create()
        sys.stdout.flush()
        command = [sys.executable, "-P", "-m", "rota.manager", "--home", str(home)]
        os.execve(sys.executable, command, environment(home))
    try:
        call.connect().close()
    except NoManager:
        from rota.client.starter import start_manager

        said = start_manager(home).wait()
        already = bool(said.get("already"))
    else:
        already = True
    with call.connect() as client:
        view = client.manager_status()
    if call.json:
        print_json({"pid": view.pid, "home": view.home, "address": view.address, "already": already})
    elif call.quiet:
        print_out(str(view.pid))
    else:
        print_out(
            f"the manager {'is running already' if already else 'has started'} (pid {view.pid}, home {home})"
        )
    return 0


@manager.command("ui")
@click.option("--no-open", is_flag=True, help="Only print the link.")
def ui(call: Invocation, no_open: bool) -> int:
    """Open the dashboard in a browser, logged in. The link works once, for one minute.

    \b
    Examples:
      rota manager ui
      rota manager ui --no-open
    """
    from rota.errors import NoManager

    try:
        client = call.connect()
    except NoManager:
        from rota.client.starter import start_manager

        start_manager(call.home).wait()
        client = call.connect()
    with client:
        link = client.ui_link()
    address = f"{link.url}/login#{link.code}"
    if call.json:
        print_json({"url": link.url, "link": address})
        return 0
    if not no_open and not call.quiet:
        import webbrowser

        if webbrowser.open(address):
            print_out(f"opened {link.url}")
            return 0
    print_out(address)
    return 0


@manager.command("stop")
@click.option("--kill", is_flag=True, help="Kill running jobs first.")
@click.option("--wait/--no-wait", default=True, show_default=True, help="Return when it has ended.")
def stop(call: Invocation, kill: bool, wait: bool) -> int:
    """Stop the manager. Running jobs continue and are found again when it starts, unless --kill is given.

    \b
    Examples:
      rota manager stop
      rota manager stop --kill
    """
    from rota.client.endpoint import is_remote
    from rota.client.session import Disconnected
    from rota.errors import NoManager

    try:
        client = call.connect()
    except NoManager:
        if not is_remote(call.address):
            call.home.idle_stopped.unlink(missing_ok=True)  # from now on no question starts it again
        raise
    with client:
        view = client.manager_status()
        try:
            client.stop_manager(kill=kill)
        except Disconnected:
            pass  # it stopped before its answer was sent
    if wait:
        wait_for_end(view.pid)
    if call.json:
        print_json({"pid": view.pid, "stopped": wait})
    elif not call.quiet:
        print_out("the manager has stopped" if wait else "the manager is stopping")
    return 0


@manager.command("status")
def status(call: Invocation) -> int:
    """Show the manager: process, addresses, runners.

    \b
    Examples:
      rota manager status
      rota manager status --json
    """
    with call.connect() as client:
        view = client.manager_status()
    if call.json:
        print_json(view)
        return 0
    if call.quiet:
        print_out(str(view.pid))
        return 0
    print_out(_card(view))
    return 0


def _clock(off_s: float | None) -> str:
    """A note about a wall clock that was changed and is not followed yet."""
    from rota.units import about_duration

    if off_s is None:
        return ""
    way = "forward" if off_s > 0 else "back"
    return f"set {way} by {about_duration(abs(off_s))}; followed if it still says so an hour later"


def _bugs(view: BugsView | None) -> str:
    """What the manager met, and what it leaves out because of that."""
    if view is None:
        return ""
    parts = [f"{view.total:,} met"]
    if view.recent:
        parts.append(f"the newest in {view.recent[0].place}: {view.recent[0].error}")
    if view.left_out:
        parts.append(f"not decided any more: {', '.join(view.left_out)}")
    if view.quarantined:
        parts.append(f"{view.quarantined:,} requests or reports quarantined")
    if view.frozen:
        parts.append(f"jobs left out of all decisions: {', '.join(map(str, view.frozen))}")
    return "; ".join(parts)


def _attention(view: AttentionView) -> str:
    named = ", ".join(map(str, view.jobs)) + (", …" if view.total > len(view.jobs) else "")
    if view.kind == "reservation":
        return f"the reservation of job {named} is in danger: {view.message}"
    if view.kind == "pool":
        return f"pool {view.message}"
    if view.kind == "broken":
        return view.message
    number = "1 job never fits" if view.total == 1 else f"{view.total:,} jobs never fit"
    return f"{number} ({named}): {view.message.removeprefix('never fits: ')}"


def _card(view: ManagerView) -> SafeText:
    from rota.cli.render.status_text import standstill
    from rota.cli.render.text import block, harmless, table
    from rota.units import about_duration, about_size

    jobs = ", ".join(f"{number:,} {state}" for state, number in view.counts.items() if number)
    rows = [
        ("process", f"pid {view.pid}, version {view.version}, {about_size(view.resident_bytes)} memory"),
        ("started", f"{view.started_at.astimezone():%Y-%m-%d %H:%M:%S} (start {view.generation})"),
        ("home", f"{harmless(view.home)}, {about_size(view.disk_free_bytes)} free"),
        ("store", view.store),
        ("address", view.address or "none yet"),
        ("dashboard", view.http or ""),
        ("jobs", jobs or "none"),
        ("state", standstill(view) or ""),
        ("bugs", harmless(_bugs(view.bugs))),
        ("clock", _clock(view.clock_off_s)),
        *(("attention", harmless(_attention(each))) for each in view.attention),
        ("commits", f"{view.commits:,}, {view.commit_ms:.1f} ms each"),
        ("idle stop", "" if view.idle_stop_s is None else about_duration(view.idle_stop_s)),
    ]
    lines = [f"{label:<10} {text}" for label, text in rows if text]
    if view.runners:
        head = ["RUNNER", "HOST", "PID", "STATE", "RUNNING", "CORES", "MEMORY", "DISK"]
        runners = [
            [
                harmless(each.id),
                harmless(each.host),
                str(each.pid),
                "connected" if each.connected else "away",
                str(each.running),
                str(each.cores),
                about_size(each.mem_bytes),
                about_size(each.disk_bytes),
            ]
            for each in view.runners
        ]
        lines += ["", table(head, runners, right="llrlrrr")]
    return block(lines)


@manager.command("logs")
@click.option("-f", "--follow", is_flag=True, help="Keep printing new lines, until Ctrl-C.")
@click.option("--lines", type=click.IntRange(1), default=100, show_default=True, help="Number of lines.")
def logs(call: Invocation, follow: bool, lines: int) -> int:
    """Print the end of the manager's log.

    \b
    Examples:
      rota manager logs
      rota manager logs -f
    """
    from rota.errors import NotFound

    home = call.home
    path = next((p for p in (home.logs / "manager.log", home.logs / "manager.out") if p.exists()), None)
    if path is None:
        raise NotFound(f"there is no log in {home.logs}", hint="start the manager with 'rota manager start'")
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - lines * 1000))
        *whole, begun = file.read().split(b"\n")
        print_out(*map(_log_line, whole[-lines:]))
        while follow:
            sys.stdout.flush()
            if data := file.read():
                *whole, begun = (begun + data).split(b"\n")
                print_out(*map(_log_line, whole))
            else:
                time.sleep(0.2)
        if begun:
            print_out(_log_line(begun))
    return 0


def _log_line(line: bytes) -> str:
    return line.decode("utf-8", "backslashreplace")


for _command in (drain, pause, resume, backup, restore, adopt, token):
    manager.add_command(_command)
