"""`rota quota`: how much users, projects, queues and types may hold at once."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Group, Invocation

if TYPE_CHECKING:
    from rota.client.calls import SiteChange
    from rota.plan.policy.quota_records import QuotaRecord
    from rota.wire.views import QuotasView, QuotaUse, SiteView

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
@click.option("--set", "name", metavar="NAME", help="Only quotas of this rule set of the calendar.")
def list_quotas(call: Invocation, name: str | None) -> int:
    """List the quotas and their use; for each, the holder that is nearest to a limit.

    \b
    Examples:
      rota quota list
      rota quota list --json        with the first 20 holders of each
    """
    from msgspec import to_builtins

    from rota.cli.commands.site import site_records

    with call.connect_to_read() as client:
        view = client.quotas()
    found = _chosen(view, name)
    return site_records.show(
        call,
        {"quotas": [{**_body(each), "use": to_builtins(use)} for each, use in found]},
        head=["QUOTA", "RESOURCES", "JOBS", "RESOURCE-HOURS", "SET", "HOLDER"],
        rows=[[each.rule, *_held(each, use), _when(each, use), _holder(use)] for each, use in found],
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
    """Set a quota: the most resources, jobs and resource-hours at once; -1 for no limit.

    RESOURCES may also be ALL or a part of it, such as 0.5*ALL.

    \b
    Examples:
      rota quota set '*,*,*,/' 16                     each user at most 16 resources
      rota quota set 'default,*,*,bob' 0.5*ALL 10     bob in queue default: half of all, and 10 jobs
      rota quota set '*,*,*,/' 8 -1 -1 --set day      while the rule set 'day' applies
    """
    from rota.cli.commands.site import site_records
    from rota.plan.policy.quota_records import new_quota

    made = new_quota(rule, [_limit(text) for text in limits], name)

    def make(site: SiteView) -> tuple[list[SiteChange], None]:
        return [("quota", made.name, made)], None

    with call.connect() as client:
        site_records.change(client, ("quota",), make, about=f"quota set {made.name}")
    resources, jobs, hours = map(_shown, _limits(made))
    sentence = f"{made.name}: {resources} resources, {jobs} jobs, {hours} resource-hours"
    return site_records.tell(call, sentence, quota=_body(made))


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
    from rota.cli.commands.site import site_records
    from rota.errors import NotFound
    from rota.plan.policy.quota_records import new_quota

    meant = new_quota(rule, [-1], name).name

    def make(site: SiteView) -> tuple[list[SiteChange], None]:
        if meant not in site.of("quota"):
            raise NotFound(f"there is no quota '{meant}'", hint="list them with 'rota quota list'")
        return [("quota", meant, None)], None

    with call.connect() as client:
        site_records.change(client, ("quota",), make, about=f"quota remove {meant}")
    return site_records.tell(call, f"removed: {meant}", removed=meant)


def _limit(text: str) -> float | str:
    """A number where it is one; other words are judged with the rule."""
    if not _NUMBER.fullmatch(text):
        return text
    return float(text) if "." in text else int(text)


def _limits(each: QuotaRecord) -> list[float | str]:
    return [*each.limits, *[-1] * (3 - len(each.limits))]


def _shown(limit: float | str) -> str:
    return "any" if limit == -1 else limit if isinstance(limit, str) else f"{limit:,}"


def _chosen(view: QuotasView, name: str | None) -> list[tuple[QuotaRecord, QuotaUse]]:
    """The quotas of this rule set, or all of them, with their use."""
    from rota.plan.policy.quota_records import read_quota

    found = [(read_quota(value), view.use[key]) for key, value in view.records.items()]
    return sorted(
        (each for each in found if name in (None, each[0].set)), key=lambda each: (each[0].set, each[0].rule)
    )


def _held(each: QuotaRecord, use: QuotaUse) -> list[str]:
    """The limits, and before each of them what the first holder has of it."""
    limits = [_shown(limit) for limit in _limits(each)]
    if not use.holders:
        return limits
    first = use.holders[0]
    held = (first.resources, first.jobs, first.resource_hours)
    return [
        f"{round(amount, 2):,}/{limit}" if amount is not None else limit
        for amount, limit in zip(held, limits, strict=True)
    ]


def _when(each: QuotaRecord, use: QuotaUse) -> str:
    return "always" if not each.set else each.set if use.applies else f"{each.set} (not now)"


def _holder(use: QuotaUse) -> str:
    if not use.holders:
        return "nobody"
    who = ",".join(name or "(none)" for name in use.holders[0].who.values()) or "all"
    others = len(use.holders) - 1 + use.more
    return f"{who} (+{others:,} more)" if others else who


def _body(each: QuotaRecord) -> dict[str, Any]:
    return {"rule": each.rule, "limits": _limits(each), "set": each.set or None}
