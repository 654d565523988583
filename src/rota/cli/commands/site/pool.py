"""`rota pool`: where jobs run, and the runners that other engines were asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rota.cli.command import Group, Invocation, print_json
from rota.cli.render.printing import print_out

if TYPE_CHECKING:
    from rota.cli.render.text import SafeText
    from rota.wire.pool_views import PoolGroupView, PoolView


@click.group("pool", cls=Group)
def pool() -> None:
    """Pools: where jobs run, and runners of other engines."""


@pool.command("list")
@click.argument("name", required=False)
def list_pools(call: Invocation, name: str | None) -> int:
    """List pools in the order in which they are tried: jobs that wait there, and runners.

    A job that names no pool runs in the first one with room.

    \b
    Examples:
      rota pool list
      rota pool list --json
    """
    pools = _ask(call, name)
    if pools:
        print_out(_table(pools))
    return 0


@pool.command("status")
@click.argument("name", required=False)
def status(call: Invocation, name: str | None) -> int:
    """Show the groups of waiting jobs and the runners of each pool, or of one.

    \b
    Examples:
      rota pool status
      rota pool status cluster --json
    """
    pools = _ask(call, name)
    for number, each in enumerate(pools):
        if number:
            print_out("")
        _show(each)
    return 0


def _ask(call: Invocation, name: str | None) -> list[PoolView]:
    """The pools to show as text; JSON is printed here."""
    with call.connect_to_read() as client:
        view = client.pools(name or "")
    if call.json:
        print_json(view)
    elif call.quiet:
        print_out(*(each.name for each in view.pools))
    else:
        return view.pools
    return []


def _table(pools: list[PoolView]) -> SafeText:
    from rota.cli.render.text import harmless, table

    rows = []
    for each in pools:
        groups, delegated = each.groups, each.max_runners is not None
        sums = [sum(getattr(group, name) for group in groups) for name in ("ready", "wanted", "pending")]
        counts = [f"{number:,}" if delegated else "" for number in sums]
        running = sum(group.running for group in groups) if delegated else len(each.runners)
        most = f"{each.max_runners:,}" if delegated else ""
        error = harmless(each.error or "")
        rows.append([each.name, harmless(each.engine), each.state, *counts, f"{running:,}", most, error])
    titles = ["POOL", "ENGINE", "STATE", "READY", "WANTED", "PENDING", "RUNNING", "MOST", "ERROR"]
    return table(titles, rows, right="lllrrrrrl")


def _trouble(group: PoolGroupView) -> str:
    """The error, and when the engine is asked again."""
    if group.error is None or group.retry_at is None:
        return group.error or ""
    return f"{group.error} (again at {group.retry_at.astimezone():%H:%M:%S})"


def _show(each: PoolView) -> None:
    from rota.cli.render.text import harmless, table
    from rota.units import format_duration, format_size

    most = f", at most {each.max_runners:,} runners" if each.max_runners is not None else ""
    error = f": {harmless(each.error)}" if each.error else ""
    print_out(f"{each.name} ({harmless(each.engine)}{most}): {each.state}{error}")
    if each.groups:
        rows = [
            [
                f"{group.size.cpus:g}",
                format_size(group.size.mem_bytes),
                format_duration(group.size.time_s),
                harmless(" ".join(group.limits)),
                *(f"{number:,}" for number in (group.ready, group.wanted, group.pending, group.running)),
                harmless(_trouble(group)),
            ]
            for group in each.groups
        ]
        titles = ["CPUS", "MEM", "TIME", "LIMITS", "READY", "WANTED", "PENDING", "RUNNING", "ERROR"]
        print_out(table(titles, rows, right="rrrlrrrrl"))
    if each.runners:
        rows = [
            [harmless(runner.id), harmless(runner.engine_id), harmless(runner.host), harmless(runner.state)]
            for runner in each.runners
        ]
        print_out(table(["RUNNER", "ENGINE'S ID", "HOST", "STATE"], rows))
