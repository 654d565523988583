"""`rota learn`: what was learned about the size of jobs, and how to forget it."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

import click

from rota.cli.command import Invocation, command, print_json
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from datetime import datetime

    from rota.cli.render.text import SafeText
    from rota.wire.views import BucketView, LearnedGroupView

_BAR = 40
_MEGA = 1 << 20


@command("learn")
@click.argument("name", metavar="[NAME]", required=False)
@click.option("--forget", is_flag=True, help="Forget what was learned about NAME (or, with --all, everything).")
@click.option("--all", "everything", is_flag=True, help="With --forget: all learning groups.")
def learn(call: Invocation, name: str | None, forget: bool, everything: bool) -> int:
    """Show what was learned about the memory, time and disk that jobs need, or forget it.

    Jobs learn from others of their learning group: the program's name, or what --learn says.

    \b
    Examples:
      rota learn
      rota learn blastp
      rota learn blastp --forget
    """
    from rota.errors import BadInput

    if forget and not name and not everything:
        raise BadInput("--forget needs a NAME", hint="or give --all to forget everything")
    if everything and (name or not forget):
        raise BadInput("--all goes with --forget and without a NAME", hint="see 'rota learn --help'")
    with call.connect() if forget else call.connect_to_read() as client:
        if forget:
            client.forget_learned(name or "")
            if not call.json:
                print_out(f"forgot what was learned about {name or 'all groups'}")
                return 0
        found = client.learned() if forget or not name else client.learned(name)
    if call.json:
        print_json({"groups": found})
    elif call.quiet:
        print_out(*(each.name for each in found))
    elif name:
        print_out(_card(found[0]))
    elif found:
        print_out(_table(found))
    else:
        print_out("nothing was learned yet; run some jobs")
    return 0


def _table(groups: list[LearnedGroupView]) -> SafeText:
    from rota.cli.render.text import harmless, table

    rows = [
        [harmless(each.name), f"{each.observations:,}", f"{each.successes:,}", *_recommended(each)]
        for each in groups
    ]
    return table(["LEARNING GROUP", "SEEN", "OK", "MEMORY", "TIME", "DISK"], rows, right="lrrrrr")


def _recommended(group: LearnedGroupView) -> list[str]:
    from rota.units import about_size, format_duration

    return [
        "-" if group.mem_bytes is None else about_size(group.mem_bytes),
        "-" if group.time_s is None else format_duration(group.time_s),
        "-" if group.disk_bytes is None else about_size(group.disk_bytes),
    ]


def _card(group: LearnedGroupView) -> SafeText:
    from rota.cli.render.text import block, coloured, harmless, paint
    from rota.units import about_size

    mem, time, disk = _recommended(group)
    rows = [
        ("seen", f"{group.observations:,} attempts, {group.successes:,} complete, {group.lacking:,} too small"),
        ("between", f"{_when(group.oldest)} and {_when(group.newest)}" if group.newest else ""),
        ("recommends", f"{mem} memory, {time}, {disk} disk"),
    ]
    for resource, (slope, intercept) in sorted(group.lines.items()):
        rows.append(_line(resource, slope, intercept))
    lines: list[str] = [paint(harmless(group.name), "bold", on=coloured(sys.stdout))]
    lines += [f"  {label:<12} {text}" for label, text in rows if text]
    lines += _histogram("memory", group.mem_histogram, about_size)
    lines += _histogram("time", group.time_histogram, _exact)
    lines += _histogram("disk", group.disk_histogram, about_size)
    return block(lines)


def _exact(seconds: float) -> str:
    """A duration that differs from its neighbours in a histogram, even for short jobs."""
    from rota.units import about_duration

    return f"{seconds:.3g}s" if seconds < 10 else about_duration(seconds)


def _line(resource: str, slope: float, intercept: float) -> tuple[str, str]:
    """The formula by which the need depends on the size of the input."""
    from rota.units import about_duration, about_size

    sign = "-" if intercept < 0 else "+"
    if resource == "time":
        return "time", f"≈ {slope * _MEGA:.3g} s per M of input {sign} {about_duration(abs(intercept))}"
    label = {"mem": "memory"}.get(resource, resource)
    return label, f"≈ {slope:.3g} × input {sign} {about_size(abs(intercept))}"


def _histogram(title: str, buckets: list[BucketView], show: Callable[[float], str]) -> list[str]:
    if not buckets:
        return []
    from rota.cli.render.text import coloured, paint

    most = max(each.count for each in buckets)
    lines: list[str] = ["", paint(title, "bold", on=coloured(sys.stdout))]
    for each in buckets:
        bar = "█" * -(-each.count * _BAR // most) if each.count else ""
        lines.append(f"  {show(each.low):>9} – {show(each.high):<9} {bar} {each.count:,}".rstrip())
    return lines


def _when(at: datetime | None) -> str:
    return "" if at is None else f"{at.astimezone():%Y-%m-%d %H:%M}"
