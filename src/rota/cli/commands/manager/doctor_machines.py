"""`rota doctor`: machines whose condition needs attention."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from rota.wire.sums import NodeView

Finding = tuple[str, str, str]

#: A machine without a reservation is rarely manual on purpose for longer.
_LONG_MANUAL_S: Final = 86_400.0


def condition_findings(nodes: list[NodeView], site: dict[str, dict[str, Any]]) -> Iterator[Finding]:
    """Broken machines, and machines that have long been manual without a reservation."""
    from rota.plan.site.site_builder import host_record
    from rota.units import about_duration

    for each in nodes:
        record = host_record(site, each.host)
        whose = f" (owner: {record.owner})" if record.owner else ""
        if record.condition == "broken":
            why = f": {record.condition_reason}" if record.condition_reason else ""
            hint = f"once mended: rota node set {each.host} --condition automated"
            yield "note", f"{each.host}{whose} is broken{why}", hint
        elif record.condition == "manual" and not record.manual_user and each.since is not None:
            for_s = time.time() - each.since.timestamp()
            if for_s > _LONG_MANUAL_S:
                hint = f"if it is not needed any more: rota node set {each.host} --condition automated"
                yield "note", f"{each.host}{whose} has been manual for {about_duration(for_s)}", hint
