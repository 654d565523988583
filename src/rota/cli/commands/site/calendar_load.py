"""`rota calendar load`: read periods and quotas from a file and store them in the site."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from rota.cli.command import Invocation, print_json
from rota.cli.commands.site import site_records
from rota.cli.input.files import read_input
from rota.cli.render.printing import print_err, print_out
from rota.errors import BadInput
from rota.plan.policy.calendar_file import CalendarFile, read_calendar
from rota.plan.policy.quota_records import read_quota

if TYPE_CHECKING:
    from rota.client.calls import SiteChange
    from rota.wire.views import SiteView

_LARGEST: Final = 16 << 20
_KINDS: Final = ("calendar", "quota")
_WORDS: Final = {"calendar": "period", "quota": "quota"}


def load(call: Invocation, path: str, *, replace: bool, dry_run: bool) -> int:
    """Apply the file to the site and print what changed; returns the exit status."""
    wanted = _read(path)
    warnings = [
        f"no period names rule set '{name}'; its quotas limit nothing until one does" for name in wanted.unused
    ]

    def make(site: SiteView) -> tuple[list[SiteChange], list[dict[str, str]]]:
        changes = _changes(site, wanted, replace=replace)
        told = [_told(site, kind, name, value) for kind, name, value in changes]
        return [] if dry_run else changes, told

    with call.connect() as client:
        told = site_records.change(client, _KINDS, make, about=f"calendar load {path}"[:200])
    for warning in warnings:
        print_err(f"rota: warning: {warning}")
    if call.json:
        print_json({"changes": told, "warnings": warnings, "dry_run": dry_run})
    elif not call.quiet:
        print_out(*(f"{each['change']}: {_WORDS[each['kind']]} {each['name']}" for each in told))
        print_out(_sentence(wanted, told, dry_run=dry_run))
    return 0


def _read(path: str) -> CalendarFile:
    """Raises `BadInput`, which names the file."""
    data = read_input(path, most=_LARGEST, what="a JSON file", too_large="is it a calendar?")
    try:
        return read_calendar(msgspec.json.decode(data))
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadInput(f"{path} is not JSON: {error}", hint="see 'rota calendar load --help'") from None
    except BadInput as error:
        raise BadInput(f"{path}: {error.message}", hint=error.hint) from None


def _changes(site: SiteView, wanted: CalendarFile, *, replace: bool) -> list[SiteChange]:
    """The changes that make the records equal to the file, removals first."""
    new: dict[str, dict[str, Any]] = {"calendar": dict(wanted.periods), "quota": dict(wanted.quotas)}
    gone: list[SiteChange] = []
    made: list[SiteChange] = []
    for kind, records_ in new.items():
        before = site.of(kind)
        for name, old in before.items():
            if replace and name not in records_ and (kind == "calendar" or read_quota(old).set):
                gone.append((kind, name, None))
        made += [
            (kind, name, value)
            for name, value in records_.items()
            if msgspec.to_builtins(value) != before.get(name)
        ]
    return gone + made


def _told(site: SiteView, kind: str, name: str, value: object) -> dict[str, str]:
    known = name in site.of(kind)
    return {"change": "removed" if value is None else "changed" if known else "added", "kind": kind, "name": name}


def _sentence(wanted: CalendarFile, told: list[dict[str, str]], *, dry_run: bool) -> str:
    from rota.cli.render.text import count

    held = f"{count(len(wanted.periods), 'period')} and {count(len(wanted.quotas), 'quota')}"
    if not told:
        return f"{held}: all there already"
    return f"{held}, {count(len(told), 'change')}{': dry run, nothing was changed' if dry_run else ''}"
