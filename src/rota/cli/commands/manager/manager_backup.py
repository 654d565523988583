"""`rota manager backup` and `rota manager restore`."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.render.printing import confirmed, print_err, print_out, redraw, wipe

if TYPE_CHECKING:
    from rota.cli.render.text import SafeText
    from rota.store.base import Found
    from rota.store.home.restore import Restored


@command("backup")
@click.argument("file", required=False)
@click.option("--force", is_flag=True, help="Replace FILE if it exists.")
def backup(call: Invocation, file: str | None, force: bool) -> int:
    """Copy the database to a new file, while jobs run (default: here, named by deployment and UTC time).

    It holds all jobs with their whole history, but no output, tokens, certificates or rota.toml. A running
    manager writes the file, as its user and on its machine. FILE appears only when the copy is complete and
    checked.

    \b
    Examples:
      rota manager backup
      rota manager backup /backups/rota.db --force
    """
    from rota.errors import NoManager

    try:
        made = _by_manager(call, file, force=force)
    except NoManager:
        if _is_remote(call):
            raise
        made = _by_ourselves(call, file, force=force)
    if call.json:
        print_json(made)
    elif call.quiet:
        print_out(made["path"])
    else:
        from rota.cli.render.text import count, harmless
        from rota.units import about_size

        print_out(
            f"backed up {count(made['jobs'], 'job')} to {harmless(made['path'])} ({about_size(made['bytes'])})"
        )
    return 0


def _by_manager(call: Invocation, file: str | None, *, force: bool) -> dict[str, Any]:
    import msgspec

    with call.connect() as client:
        path = _target(file, client.manager_status().deployment if _needs_name(file) else "")
        line = _Percent(call)
        try:
            made = client.backup(path, force=force, progress=line.show)
        finally:
            line.clear()
    return msgspec.structs.asdict(made)


def _by_ourselves(call: Invocation, file: str | None, *, force: bool) -> dict[str, Any]:
    """No manager has the database open: nor may one until we are done."""
    import msgspec

    from rota.errors import NotFound
    from rota.store.home.backup import back_up, deployment_of
    from rota.store.home.home_lock import HomeLock

    home = call.home
    if not home.database.exists():
        raise NotFound(f"there is no database in {home}", hint="is ROTA_HOME (or --home) the right one?")
    lock = HomeLock(home.path)
    line = _Percent(call)
    try:
        path = _target(file, deployment_of(home.path) if _needs_name(file) else "")
        made = back_up(home.path, path, force=force, progress=line.show)
    finally:
        line.clear()
        lock.release()
    return msgspec.structs.asdict(made)


def _needs_name(file: str | None) -> bool:
    return file is None or file.endswith("/") or os.path.isdir(file)


def _target(file: str | None, deployment: str) -> str:
    """The absolute path to write to; in a directory the name is ours to choose."""
    from rota.errors import BadInput

    if file is not None and not file.strip():
        raise BadInput("FILE is empty", hint="leave it out, or give a name")
    if not _needs_name(file):
        return os.path.abspath(file or "")
    from rota.store.home.backup import default_name

    return os.path.abspath(os.path.join(file or "", default_name(deployment)))


def _is_remote(call: Invocation) -> bool:
    return bool(call.address or os.environ.get("ROTA_MANAGER"))


class _Percent:
    """How much is done, on a terminal, drawn over itself."""

    def __init__(self, call: Invocation) -> None:
        from rota.cli.render.text import is_terminal

        self._shown = is_terminal(sys.stderr) and not call.quiet and not call.json

    def show(self, share: float) -> None:
        if self._shown:
            redraw(f"backing up: {100 * share:.0f}%")

    def clear(self) -> None:
        if self._shown:
            wipe()


# ------------------------------------------------------------------ restore


@command("restore")
@click.argument("file")
@click.option("--replace", is_flag=True, help="Replace an existing database, which is kept under another name.")
@click.option("--pause", is_flag=True, help="Start the next manager paused, to check before anything runs.")
@click.option("-y", "--yes", is_flag=True, help="Do not ask.")
def restore(call: Invocation, file: str, replace: bool, pause: bool, yes: bool) -> int:
    """Make a backup the database of this deployment. No manager may be running.

    Everything after the backup is forgotten: jobs that waited then will run, even if they have run since, and
    newer ids are used again. Jobs that were running become lost, since their end is unknown, until their runner
    reports it or you use 'rota confirm-dead'.

    \b
    Examples:
      rota manager restore rota.db
      rota --home /srv/rota manager restore rota.db --replace --pause
    """
    from pathlib import Path

    from rota.errors import BadInput
    from rota.store.home.restore import Restoration

    if _is_remote(call):
        raise BadInput("a backup is restored where the deployment is", hint="run this there, without --address")
    if not file or "\0" in file:
        raise BadInput("FILE is empty", hint="give the file that 'rota manager backup' made")
    with Restoration(call.home.path, Path(os.path.abspath(file)), replace=replace) as restoration:
        if not yes and not _confirmed(call, restoration.found, replaces=restoration.replaces):
            print_err("rota: nothing was changed")
            return 1
        done = restoration.put_in_place(pause=pause)
    if call.json:
        import msgspec

        print_json({**msgspec.structs.asdict(done.backup), "home": str(call.home), "kept": done.kept})
    elif not call.quiet:
        print_out(_story(call, done, pause=pause))
    return 0


def _confirmed(call: Invocation, found: Found, *, replaces: bool) -> bool:
    """Ask for confirmation, if there is a terminal."""
    from rota.cli.render.text import is_terminal

    if not (is_terminal(sys.stdin) and is_terminal(sys.stderr)):
        return True
    where = f"the database in {call.home} (which is kept)" if replaces else f"the database of {call.home}"
    print_err(_summary(found))
    return confirmed(f"Make it {where}?")


def _summary(found: Found) -> str:
    from rota.cli.render.text import count

    when = f"of {found.made_at}" if found.made_at else "of an unknown time"
    return f"a backup {when} with {count(found.jobs, 'job')}, {found.waiting:,} not ended"


def _story(call: Invocation, done: Restored, *, pause: bool) -> SafeText:
    from rota.cli.render.text import block, count, few_ranges, harmless

    found = done.backup
    lines = [f"restored {_summary(found)}, to {harmless(str(call.home))}"]
    if done.kept:
        lines.append(f"the database that was there is now {harmless(done.kept)}")
    if found.leased:
        lines.append(
            f"{count(len(found.leased), 'job')} had an attempt under way, now lost: {few_ranges(found.leased)} "
            "(see 'rota confirm-dead')"
        )
    if found.waiting:
        lines.append("jobs that waited then will run, even if they have run since")
    lines.append(f"ids from {found.next_job} on will be given out again, whoever had them since the backup")
    paused = " (it begins paused)" if pause or found.paused else ""
    lines.append(f"start the manager with 'rota manager start'{paused}")
    return block(lines)
