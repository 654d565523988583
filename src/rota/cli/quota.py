"""`rota quota`: who may hold how much at once, always or while a rule set of the calendar applies."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Group, Invocation

if TYPE_CHECKING:
    from rota.client.calls import SiteChange
    from rota.plan.quota_form import QuotaRecord
    from rota.wire.views import SiteView

_NUMBER: Final = re.compile(r"[-+]?\d{1,15}(\.\d{1,9})?", re.ASCII)
#: A limit of -1 is a value, not an option.
_VALUES_LIKE_OPTIONS: Final = {"ignore_unknown_options": True}


@click.group("quota", cls=Group)
def quota() -> None:
    """Quotas: limits on what users, projects, queues and types of jobs hold at once.

    A rule is QUEUE,PROJECT,TYPE,USER. Each of the four is a name, * for all together, or / for each separately.
    All rules that match a job hold.
    """


@quota.command("list")
@click.option("--set", "name", metavar="NAME", help="Only those of this rule set of the calendar.")
def list_quotas(call: Invocation, name: str | None) -> int:
    """List the quotas.

    \b
    Examples:
      rota quota list
    """
    from rota.cli import records
    from rota.plan.quota_form import read_quota

    with call.connect() as client:
        found = [read_quota(value) for value in client.site("quota").of("quota").values()]
    found = sorted((each for each in found if name in (None, each.set)), key=lambda each: (each.set, each.rule))
    return records.show(
        call,
        {"quotas": [_body(each) for each in found]},
        head=["QUOTA", "RESOURCES", "JOBS", "RESOURCE-HOURS", "SET"],
        rows=[[each.rule, *map(_shown, _limits(each)), each.set or "always"] for each in found],
        empty="no quotas; set one with 'rota quota set RULE RESOURCES [JOBS [HOURS]]'",
        right="lrrr",
    )


@quota.command("set", context_settings=_VALUES_LIKE_OPTIONS)
@click.argument("rule", metavar="RULE")
@click.argument("limits", metavar="RESOURCES [JOBS [HOURS]]", nargs=-1, required=True)
@click.option(
    "--set", "name", metavar="NAME", default="", help="Only while this rule set of the calendar applies."
)
def set_quota(call: Invocation, rule: str, limits: tuple[str, ...], name: str) -> int:
    """Set a quota: so many resources, jobs and resource-hours at once; -1 is no limit.

    RESOURCES may also be ALL or a part of it, such as 0.5*ALL.

    \b
    Examples:
      rota quota set '*,*,*,/' 16                     each user at most 16 resources
      rota quota set 'default,*,*,bob' 0.5*ALL 10     bob in queue default: half of all, and 10 jobs
      rota quota set '*,*,*,/' 8 -1 -1 --set day      while the rule set 'day' applies
    """
    from rota.cli import records
    from rota.plan.quota_form import new_quota

    made = new_quota(rule, [_limit(text) for text in limits], name)

    def make(site: SiteView) -> tuple[list[SiteChange], None]:
        return [("quota", made.name, made)], None

    with call.connect() as client:
        records.change(client, ("quota",), make, about=f"quota set {made.name}")
    resources, jobs, hours = map(_shown, _limits(made))
    sentence = f"{made.name}: {resources} resources, {jobs} jobs, {hours} resource-hours"
    return records.tell(call, sentence, quota=_body(made))


@quota.command("remove")
@click.argument("rule", metavar="RULE")
@click.option("--set", "name", metavar="NAME", default="", help="Of this rule set of the calendar.")
def remove_quota(call: Invocation, rule: str, name: str) -> int:
    """Remove a quota.

    \b
    Examples:
      rota quota remove '*,*,*,/'
      rota quota remove '*,*,*,/' --set day
    """
    from rota.cli import records
    from rota.errors import NotFound
    from rota.plan.quota_form import new_quota

    meant = new_quota(rule, [-1], name).name

    def make(site: SiteView) -> tuple[list[SiteChange], None]:
        if meant not in site.of("quota"):
            raise NotFound(f"there is no quota '{meant}'", hint="list them with 'rota quota list'")
        return [("quota", meant, None)], None

    with call.connect() as client:
        records.change(client, ("quota",), make, about=f"quota remove {meant}")
    return records.tell(call, f"removed: {meant}", removed=meant)


def _limit(text: str) -> float | str:
    """A number where it is one; other words are judged with the rule."""
    if not _NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


def _limits(each: QuotaRecord) -> list[float | str]:
    return [*each.limits, *[-1] * (3 - len(each.limits))]


def _shown(limit: float | str) -> str:
    return "any" if limit == -1 else limit if isinstance(limit, str) else f"{limit:,}"


def _body(each: QuotaRecord) -> dict[str, Any]:
    return {"rule": each.rule, "limits": _limits(each), "set": each.set or None}
