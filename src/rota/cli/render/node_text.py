"""Nodes as text: the table of all, and one with its details."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datetime import datetime

    from rota.cli.render.text import SafeText
    from rota.wire.sums import NodeDetailView, NodeHistory, NodeView


def node_table(nodes: list[NodeView]) -> SafeText:
    """One line a node."""
    from rota.cli.render.text import harmless, table
    from rota.units import about_duration, about_size

    now = time.time()
    rows = []
    for each in nodes:
        own = ", ".join(f"{name} {part['used']}/{part['capacity']}" for name, part in sorted(each.limits.items()))
        mem = about_size(each.mem_bytes) if each.mem_bytes else "?"
        cores = f"{each.cores_in_use:g}/{each.cores}"
        since = "-" if each.since is None else about_duration(max(0.0, now - each.since.timestamp()))
        rows.append(
            [harmless(each.host), _state(each), harmless(each.condition), harmless(each.usage), since, cores, mem,
             str(each.gpus), str(len(each.jobs)), harmless(own), harmless(_note(each))]
        )  # fmt: skip
    head = ["HOST", "STATE", "CONDITION", "USAGE", "FOR", "CORES", "MEMORY", "GPUS", "JOBS", "LIMITS", "NOTE"]
    return table(head, rows, right="llllrrrrr")


def node_details(found: NodeDetailView) -> SafeText:
    """Everything about one node."""
    from rota.cli.render.text import block, harmless
    from rota.plan.site.bitset import spans_of
    from rota.plan.site.records import show_value
    from rota.units import about_size

    facts: list[tuple[str, Any]] = [
        ("state", _state(found)),
        ("condition", found.condition),
        ("usage", found.usage),
        ("since", _moment(found.since, seconds=True)),
        ("because", found.why),
        ("reserved", _reserved(found)),
        ("kept by", _kept(found)),
        ("owner", found.owner),
        ("groups", ", ".join(found.groups)),
        ("agent", f"{found.runner}, pid {found.pid}" if found.connected else "not connected"),
        ("cores", f"{found.cores_in_use:g} of {found.cores} in use"),
        ("memory", f"{about_size(found.mem_in_use)} of {about_size(found.mem_bytes)} in use"),
        ("disk", about_size(found.disk_bytes)),
        ("gpus", found.gpus or ""),
        ("hours", found.hours),
        ("until", _moment(found.available_until)),
        ("properties", ", ".join(f"{name}={show_value(value)}" for name, value in found.properties.items())),
        ("limits", ", ".join(f"{name} {its['used']}/{its['capacity']}" for name, its in found.limits.items())),
        ("jobs", spans_of(found.jobs)),
    ]
    lines: list[str] = [found.host]
    lines += [f"  {name:<11} {harmless(str(value))}" for name, value in facts if value != ""]
    if found.history:
        lines.append("  lately")
        lines += [f"    {_moment(each.at, seconds=True)}  {_did(each)}" for each in found.history[:10]]
    return block(lines)


def _did(each: NodeHistory) -> str:
    """A period of a machine in words: `busy`, or `manual, running`."""
    if each.condition in ("", "automated") or each.state == "gone":
        return each.usage if each.state in ("busy", "idle") and each.usage else each.state
    return ", ".join(dict.fromkeys((each.condition, each.usage)))


def _state(each: NodeView) -> str:
    """Its state, and what else keeps new jobs away from it."""
    return ", ".join([each.state, *(["drained"] if each.drain else []), *(["closed"] if each.closed else [])])


def _note(each: NodeView) -> str:
    """Why it may not be used, or when."""
    until = _moment(each.available_until)
    kept = f"kept by {_kept(each)}" if each.kept_by is not None else ""
    said = (_reserved(each), kept, each.why, each.hours and f"only {each.hours}", until and f"until {until}")
    return "; ".join(filter(None, said))


def _reserved(each: NodeView) -> str:
    if not each.manual_user:
        return ""
    until = _moment(each.manual_until)
    return f"by {each.manual_user}" + (f" until {until}" if until else "")


def _kept(each: NodeView) -> str:
    if each.kept_by is None:
        return ""
    until = _moment(each.kept_until)
    return f"job {each.kept_by}" + (f" until {until}" if until else "")


def _moment(at: datetime | None, *, seconds: bool = False) -> str:
    if at is None:
        return ""
    return at.astimezone().strftime("%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M")
