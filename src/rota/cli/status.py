"""`rota status`: counts by group and state, progress, expected end."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING

import click

from rota.cli.command import Invocation, command
from rota.cli.selecting import selectors

if TYPE_CHECKING:
    from rota.wire.views import StatusView


@command("status")
@selectors(required=False)
@click.option("--watch", is_flag=True, help="Show it again every second, until Ctrl-C.")
def status(call: Invocation, selectors: tuple[str, ...], watch: bool) -> int:
    """Count jobs by group and state.

    \b
    Examples:
      rota status
      rota status @work --watch
      rota status --json
    """
    with call.connect() as client:
        while True:
            found = client.status(*selectors)
            if call.json:
                import msgspec

                sys.stdout.write(msgspec.json.encode(found).decode() + "\n")
            else:
                text = _text(found)
                # Home, the text with each line's rest cleared, then everything below.
                clean = text.replace("\n", "\x1b[K\n")
                on_terminal = watch and sys.stdout.isatty()
                sys.stdout.write(f"\x1b[H{clean}\x1b[K\n\x1b[J" if on_terminal else f"{text}\n")
            sys.stdout.flush()
            if not watch:
                return 0
            time.sleep(1)


def _text(found: StatusView) -> str:
    from rota.cli.terminal import harmless, table
    from rota.core.states import TERMINAL, State

    if not found.counts:
        return "no jobs"
    states = [state.label for state in State if found.counts.get(state.label)]
    rows = [_row(harmless(group), counts, states) for group, counts in sorted(found.groups.items())]
    if len(rows) > 1:
        rows.append(_row("total", found.counts, states))
    lines = [
        table(["GROUP", "DONE", *(state.upper() for state in states)], rows, right="l" + "r" * (len(states) + 1))
    ]
    done = sum(found.counts.get(state.label, 0) for state in TERMINAL)
    if done < sum(found.counts.values()):
        if found.rate:
            lines.append(f"rate: {found.rate:.3g} jobs a second")
        if found.expected_end:
            lines.append(f"expected end: {found.expected_end.astimezone():%Y-%m-%d %H:%M:%S}")
    return "\n".join(lines)


def _row(name: str, counts: dict[str, int], states: list[str]) -> list[str]:
    total = sum(counts.values())
    done = counts.get("complete", 0) + counts.get("failed", 0) + counts.get("cancelled", 0)
    share = f"{100 * done // total}%" if total else "-"
    return [name, share, *(f"{counts[state]:,}" if counts.get(state) else "." for state in states)]
