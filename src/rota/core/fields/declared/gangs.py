"""Gangs, and which machines a job would rather have."""

from __future__ import annotations

from typing import Final

from rota.core.fields import kinds
from rota.core.fields.field import ADD_ANEW, JobField
from rota.core.fields.kind_builders import choice

_GANG: Final = ("a gang is placed as it was added", ADD_ANEW)

FIELDS: Final = (
    JobField(
        name="gang", kind=kinds.GANG, default="", number=2, label="gang", run=True, fixed=_GANG,
        comment="jobs of one submission with the same gang begin together, or none does",
        help="Make these jobs members of one gang: all begin together, or none does. Add them in one call.",
    ),
    JobField(
        name="gang_same", kind=kinds.PROPERTY, default="", number=3, label="same", fixed=_GANG,
        comment="property that must have one value on all hosts of the gang",
        help="Place the gang on hosts that have the same value of this property, such as switch.",
    ),
    JobField(
        name="gang_share", kind=kinds.FLAG, default=False, number=4, label="share hosts", fixed=_GANG,
        comment="members may be on the same host",
        help="Members of the gang may be on the same host (default: each has its own).",
    ),
    JobField(
        name="on_member_failure", kind=choice("kill", "keep", "retry"), default="", number=5,
        label="if one fails", fixed=_GANG,
        comment="what becomes of the other members; empty: kill",
        help="When a member of the gang fails: end the others (kill), let them go on (keep), or end and queue "
        "all again (retry) (default: kill).",
    ),
    JobField(
        name="prefer", kind=kinds.WHERE, default="", number=6, label="prefers",
        comment="property expression: such resources first",
        help="Prefer resources with these properties: ssd='YES'.",
    ),
    JobField(
        name="force_host", kind=kinds.HOST, default="", number=7, label="on host",
        comment="the one host, whatever its condition and the request say",
        help="Run on this host, even if it is broken or used by hand, whatever the request says; for its owner, "
        "its group and administrators.",
    ),
)  # fmt: skip
