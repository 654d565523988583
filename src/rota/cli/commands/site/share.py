"""`rota share`: the standing of users and projects in fair share, and its settings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.cli.render.text import SafeText
    from rota.client.calls import SiteChange
    from rota.plan.policy.policy import FairShare
    from rota.wire.sums import FairShareView, QueueSharesView, SharesView
    from rota.wire.views import SiteView

#: The word that takes a value back to the default.
_NONE: Final = "none"
_WEIGHTS: Final = ("project", "used", "asked")
_TIMES: Final = ("half_life", "window")


@click.group("share", cls=Group)
def share() -> None:
    """Fair share: standings, weights, half-life and window."""


@share.command("list")
@click.option("--queue", metavar="QUEUE", help="Only this queue, also if its order is fifo.")
def list_shares(call: Invocation, queue: str | None) -> int:
    """List users and projects in fair-share order, highest priority first, and explain it.

    KARMA is the weighted sum of how far a user's use, a user's requests and the project's use are above their
    targets. USED is in core hours, decayed by the half-life.

    \b
    Examples:
      rota share list
      rota share list --queue default --json
    """
    with call.connect_to_read() as client:
        view = client.shares(queue=queue or "")
    if call.json:
        print_json(view)
    elif call.quiet:
        users = dict.fromkeys(each.user for its in view.queues for each in its.users)
        print_out(*users)
    elif view.queues:
        _show(view)
    else:
        print_out("no queue is ordered by fair share; see 'rota queue set default --order fairshare'")
    return 0


def _show(view: SharesView) -> None:
    from rota.cli.render.fitted_table import wrapped

    for number, each in enumerate(view.queues):
        if number:
            print_out("")
        fifo = "; its order is fifo: nothing of this counts" if each.order == "fifo" else ""
        terms = settings_text(view.fair_share, each.project_weight)
        print_out(*wrapped(f"queue {each.queue}: {each.order}, {terms}{fifo}"))
        if each.users:
            print_out(_users(each))
        else:
            print_out("there are no jobs and no past use")
        if each.project_weight or any(row.target_by == "share" for row in each.projects):
            print_out("", _projects(each))


def settings_text(fair_share: FairShareView | FairShare, project: float | None = None) -> str:
    """Weights, half-life and window in words."""
    from rota.units import format_duration

    weight = fair_share.project if project is None else project
    shown = "project by shares" if weight is None else f"project {weight:g}"
    window = "no window" if fair_share.window_s is None else f"window {format_duration(fair_share.window_s)}"
    weights = f"weights {shown}, used {fair_share.used:g}, asked {fair_share.asked:g}"
    return f"{weights}; half-life {format_duration(fair_share.half_life_s)}, {window}"


def _users(queue: QueueSharesView) -> SafeText:
    from rota.cli.render.fitted_table import fitted
    from rota.cli.render.text import core_hours, harmless

    rows = [
        [
            harmless(each.user),
            harmless(each.project) or "-",
            core_hours(each.used_s),
            f"{each.parts[1].share:.1%}",
            f"{each.parts[2].share:.1%}",
            f"{each.target:.1%}",
            f"{each.karma:+.3f}",
            harmless(each.why),
        ]
        for each in queue.users
    ]
    head = ["USER", "PROJECT", "USED", "OF ALL", "OF ASKED", "TARGET", "KARMA", "WHY"]
    return fitted(head, rows, right="llrrrrrl", kept=len(head) - 1, notes=[row[-1] for row in rows])


def _projects(queue: QueueSharesView) -> SafeText:
    from rota.cli.render.text import core_hours, harmless, table

    origin = {"share": "its share", "rest": "what shares leave", "equal": "equal parts"}
    rows = [
        [
            harmless(each.project) or "-",
            core_hours(each.used_s),
            f"{each.share:.1%}",
            f"{each.target:.1%}",
            origin.get(each.target_by, each.target_by),
        ]
        for each in queue.projects
    ]
    return table(["PROJECT", "USED", "OF ALL", "TARGET", "FROM"], rows, right="lrrrl")


@share.command("set")
@click.option(
    "--project", metavar="WEIGHT", help="Weight of a project's use (default: 1 where projects have shares)."
)
@click.option("--used", metavar="WEIGHT", help="Weight of a user's use (default: 1).")
@click.option("--asked", metavar="WEIGHT", help="Weight of a user's requests (default: 1).")
@click.option("--half-life", metavar="TIME", help="Time after which past use counts half (default: 7d).")
@click.option("--window", metavar="TIME", help="Older use does not count at all (default: none).")
def set_share(call: Invocation, **options: str | None) -> int:
    """Change the weights, half-life or window of fair share; 'none' restores a default. Waiting jobs are
    replanned.

    Target shares belong to queues: rota queue set default --share project:x=0.75.

    \b
    Examples:
      rota share set --half-life 14d --window 60d
      rota share set --project 1 --used 0 --asked 0
      rota share set --window none
    """
    import msgspec

    from rota.cli.commands.site import site_records
    from rota.errors import BadInput
    from rota.plan.policy.policy_records import FAIR_SHARE, read_fair_share

    given = _given(options)
    if not given:
        raise BadInput("say what to change", hint="give an option such as --half-life 14d")

    def make(site: SiteView) -> tuple[list[SiteChange], FairShare]:
        before = site.of("setting").get(FAIR_SHARE)
        record = {name: value for name, value in {**(before or {}), **given}.items() if value is not None}
        made = read_fair_share(record)
        if not record and before is None:
            return [], made
        return [("setting", FAIR_SHARE, record or None)], made

    with call.connect() as client:
        made = site_records.change(client, ("setting",), make, about="share set")
    return site_records.tell(call, settings_text(made), fair_share=msgspec.to_builtins(made))


def _given(options: dict[str, str | None]) -> dict[str, Any]:
    """The given options as fields of the record; None restores a default. Raises `BadInput`."""
    from rota.errors import BadInput
    from rota.plan.policy.policy import MOST_WEIGHT
    from rota.units import parse_duration

    found: dict[str, Any] = {}
    for name in _WEIGHTS:
        text = options[name]
        if text is not None:
            try:
                found[name] = None if text == _NONE else float(text)
            except ValueError:
                found[name] = -1.0
            if found[name] is not None and not 0 <= found[name] <= MOST_WEIGHT:  # NaN is not
                hint = f"give one from 0 to {MOST_WEIGHT}, or none"
                raise BadInput(f"--{name}: '{text[:40]}' is not a weight", hint=hint)
    least = {"half_life": (60.0, "1m"), "window": (3600.0, "1h")}
    for name in _TIMES:
        text = options[name]
        if text is not None:
            option = f"--{name.replace('_', '-')}"
            try:
                found[f"{name}_s"] = None if text == _NONE else parse_duration(text)
            except BadInput as error:
                raise error.at(field=option.lstrip("-"), label=option) from None
            seconds, word = least[name]
            if found[f"{name}_s"] is not None and found[f"{name}_s"] < seconds:
                raise BadInput(f"{option}: '{text[:40]}' is too short", hint=f"give at least {word}")
    if (found.get("window_s") or 0) > 400 * 86400:
        raise BadInput("--window: use is known for 400 days", hint="give at most 400d, or none")
    return found
