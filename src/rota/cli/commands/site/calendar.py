"""`rota calendar`: when which rule sets of quotas apply."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Group, Invocation
from rota.cli.render.printing import print_err

if TYPE_CHECKING:
    from rota.client.calls import SiteChange
    from rota.plan.policy.quota_records import PeriodRecord
    from rota.plan.site.calendar import Period
    from rota.wire.views import SiteView

_WEEK_S: Final = 7 * 86400.0
_LONGEST_S: Final = 2 * 366 * 86400.0


@click.group("calendar", cls=Group)
def calendar() -> None:
    """The calendar: when which rule sets of quotas apply, in addition to the quotas that apply always.

    Hours are those of the time zone of the manager, summer time included. While a one-off period lasts no
    weekly one applies.
    """


@calendar.command("list")
def list_periods(call: Invocation) -> int:
    """List the periods.

    \b
    Examples:
      rota calendar list
    """
    from rota.cli.commands.site import site_records

    with call.connect_to_read() as client:
        site = client.site("calendar", "quota")
    found = _periods(site)
    known = _sets(site)
    return site_records.show(
        call,
        {"periods": [_body(each) for each in found]},
        head=["PERIOD", "SET", "QUOTAS", "DESCRIPTION"],
        rows=[[each.when, each.set, str(known.get(each.set, 0)), each.description] for each in found],
        empty="no periods; add one with 'rota calendar add \"08:00-19:00 mon-fri\" SET'",
        right="llr",
    )


@calendar.command("add")
@click.argument("words", metavar="[PERIOD] SET", nargs=-1, required=True)
@click.option("--from", "start", metavar="WHEN", default="", help="A one-off period: its start.")
@click.option("--to", "end", metavar="WHEN", default="", help="Its end, which is exclusive.")
@click.option("--description", metavar="TEXT", default="", help="What it is for; 'rota calendar list' shows it.")
def add_period(call: Invocation, words: tuple[str, ...], start: str, end: str, description: str) -> int:
    """Let a rule set apply at weekly hours, or once.

    PERIOD is [HH:MM-HH:MM] [DAYS]; either part may be left out, and hours may cross midnight. As in OAR, days of
    the month and months may follow: HOURS DAYS DATES MONTHS, each of them or '*'; all of them must fit.

    \b
    Examples:
      rota calendar add "08:00-19:00 mon-fri" day
      rota calendar add "sat,sun" weekend
      rota calendar add "* * 24-31 dec" holiday --description "end of the year"
      rota calendar add --from 2026-12-24T00:00 --to 2026-12-27T00:00 holiday
    """
    from rota.cli.commands.site import site_records
    from rota.errors import BadInput
    from rota.plan.policy.quota_records import new_period

    *period, name = words
    if not period and not start and not end:
        raise BadInput("say when, and which rule set", hint='write it like "08:00-19:00 mon-fri" day')
    made = new_period(name, period=" ".join(period), start=start, end=end, description=description)

    def make(site: SiteView) -> tuple[list[SiteChange], bool]:
        if made.name in site.of("calendar"):
            raise BadInput(f"there is a period '{made.name}' already", hint="list them with 'rota calendar list'")
        return [("calendar", made.name, made)], made.set in _sets(site)

    with call.connect() as client:
        known = site_records.change(client, ("calendar", "quota"), make, about=f"calendar add {made.name}")
    warnings = []
    if not known:
        hint = f"add one with 'rota quota set RULE N --set {made.set}'"
        warnings.append(f"no quota belongs to rule set '{made.set}' yet; {hint}")
        print_err(f"rota: warning: {warnings[0]}")
    return site_records.tell(call, f"added: {made.name}", period=_body(made), warnings=warnings)


@calendar.command("load")
@click.argument("file", metavar="FILE")
@click.option("--replace", is_flag=True, help="Remove other periods, and other quotas of rule sets.")
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
def load_calendar(call: Invocation, file: str, replace: bool, dry_run: bool) -> int:
    """Load periods and the quotas of their rule sets from a file of OAR; '-' is stdin.

    FILE is JSON: {"periodical": [[PERIOD, SET, TEXT], ...], "oneshot": [[FROM, TO, SET, TEXT], ...], SET: {RULE:
    [RESOURCES, JOBS, HOURS]}}. If an entry cannot be read, nothing is loaded. Existing periods and quotas stay
    unless the file redefines them; quotas outside rule sets always stay.

    \b
    Examples:
      rota calendar load quotas.json --dry-run
      rota calendar load quotas.json
      rota calendar load --replace - < quotas.json
    """
    from rota.cli.commands.site.calendar_load import load

    return load(call, file, replace=replace, dry_run=dry_run)


@calendar.command("remove")
@click.argument("words", metavar="[PERIOD] [SET]", nargs=-1)
@click.option("--from", "start", metavar="WHEN", default="", help="A one-off period: its start.")
@click.option("--to", "end", metavar="WHEN", default="", help="Its end.")
def remove_period(call: Invocation, words: tuple[str, ...], start: str, end: str) -> int:
    """Remove a period, for one rule set or for all.

    \b
    Examples:
      rota calendar remove "08:00-19:00 mon-fri" day
      rota calendar remove --from 2026-12-24T00:00 --to 2026-12-27T00:00
    """
    from rota.cli.commands.site import site_records
    from rota.errors import BadInput, NotFound
    from rota.plan.language.weekly_hours import tidy
    from rota.plan.policy.quota_records import new_period

    once = new_period("any", start=start, end=end).when if start or end else ""
    said = " ".join(" ".join(words).lower().split())
    if not once and not said:
        raise BadInput("say which period", hint="list them with 'rota calendar list'")

    def make(site: SiteView) -> tuple[list[SiteChange], list[str]]:
        meant = []
        for each in _periods(site):
            ways = (each.when, f"{each.when} {each.set}", each.name)
            # The last word may be the rule set, or the last part of a period.
            four = (tidy(said), f"{tidy(' '.join(said.split()[:-1]))} {said.split()[-1]}") if said else ()
            if (once and once == each.when and said in ("", each.set.lower())) or (
                not once and not {said, *four}.isdisjoint(way.lower() for way in ways)
            ):
                meant.append(each.name)
        if not meant:
            raise NotFound(f"there is no period '{once or said}'", hint="list them with 'rota calendar list'")
        return [("calendar", name, None) for name in meant], meant

    with call.connect() as client:
        removed = site_records.change(client, ("calendar",), make, about=f"calendar remove {once or said}")
    return site_records.tell(call, f"removed: {'; '.join(removed)}", removed=removed)


@calendar.command("show")
@click.option("--from", "start", metavar="WHEN", help="Start of the listing (default: now).")
@click.option("--to", "end", metavar="WHEN", help="End of the listing (default: a week later).")
def show_calendar(call: Invocation, start: str | None, end: str | None) -> int:
    """Print the coming periods in which rule sets apply.

    \b
    Examples:
      rota calendar show
      rota calendar show --from 2026-12-20T00:00 --to 2027-01-04T00:00
    """
    import time

    from rota.cli.commands.site import site_records
    from rota.core.fields.moments import parse_moment
    from rota.errors import BadInput
    from rota.plan.policy.quota_records import calendar_of
    from rota.plan.site.clock import Clock
    from rota.time_zones import local_seconds, local_zone

    now = time.time()
    since = now if start is None else parse_moment(start, now=now, local=local_seconds)
    until = since + _WEEK_S if end is None else parse_moment(end, now=now, local=local_seconds)
    if not since < until <= since + _LONGEST_S:
        raise BadInput("--to must be after --from, and within two years of it", hint="give another time")
    clock = Clock(local_zone())
    with call.connect_to_read() as client:
        site = client.site("calendar", "quota")
    found = calendar_of(site.of("quota"), site.of("calendar"), clock).periods(since, until)
    found = [each for each in found if each.sets]
    return site_records.show(
        call,
        {"periods": [_occurrence(each) for each in found]},
        head=["FROM", "TO", "SETS"],
        rows=[[_local(each.start, clock), _local(each.end, clock), ", ".join(each.sets)] for each in found],
        empty="no rule set applies in this time",
    )


def _periods(site: SiteView) -> list[PeriodRecord]:
    """One-off periods first: they win."""
    from rota.plan.policy.quota_records import read_period

    found = [read_period(value) for value in site.of("calendar").values()]
    return sorted(found, key=lambda each: (bool(each.period), each.when, each.set))


def _sets(site: SiteView) -> dict[str, int]:
    """Rule set → how many quotas it has."""
    from rota.plan.policy.quota_records import sets_of

    return {name: len(rules) for name, rules in sets_of(site.of("quota")).items() if name}


def _body(each: PeriodRecord) -> dict[str, Any]:
    return {
        "period": each.period or None,
        "from": each.start or None,
        "to": each.end or None,
        "set": each.set,
        "description": each.description,
    }


def _occurrence(each: Period) -> dict[str, Any]:
    from datetime import UTC, datetime

    start, end = (datetime.fromtimestamp(round(when), UTC) for when in (each.start, each.end))
    return {"from": start, "to": end, "sets": each.sets}


def _local(seconds: float, clock: Any) -> str:
    from rota.plan.site.clock import moment

    return f"{clock.wall(moment(seconds)):%a %Y-%m-%d %H:%M}"
