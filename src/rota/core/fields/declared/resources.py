"""What a job takes, and how it is planned."""

from __future__ import annotations

from typing import Final

from rota.core.fields import kinds
from rota.core.fields.field import ADD_ANEW, JobField
from rota.core.fields.kind_builders import count, optional
from rota.plan.size import CORE

#: Sizes of one host: in specifications together, as `size`.
SIZES: Final = (
    JobField(
        name="cpus", kind=kinds.CPUS, default=CORE, in_spec=False, comment="hundredths of a core",
        help="Cores; may be 0 or a fraction (default: 1).", wr="cpus", wr_alike=True,
    ),
    JobField(
        name="mem", kind=kinds.SIZE, default=..., in_spec=False,
        help="Memory (default: 1G, or less on small machines).", wr="memory", wr_alike=True,
    ),
    JobField(
        name="disk", kind=kinds.SIZE, default=0, in_spec=False,
        help="Disk (default: none).",
    ),
    JobField(
        name="time", kind=kinds.POSITIVE_DURATION, default=3600.0, attribute="time_s", in_spec=False,
        help="Expected duration; a job that runs longer is not killed (default: 1h).",
    ),
    JobField(
        name="gpus", kind=count(0, 1024), default=0, in_spec=False,
        help="GPUs (default: 0).",
    ),
)  # fmt: skip
FIELDS: Final = (
    *SIZES,
    JobField(
        name="request", kind=kinds.REQUEST, default=(), flags=("-l", "--request"), many=True, label="request",
        comment="alternatives, as written; none: `size` on one host",
        help="Resources instead of --cpus and --gpus: {gpu='YES'}/switch=1/nodes=4/core=2,walltime=2h; repeat it "
        "for alternatives.",
    ),
    JobField(
        name="where", kind=kinds.WHERE, default="", flags=("-p", "--where"), label="where",
        comment="property expression for every group of the request",
        help="Only resources with these properties: gpu='YES' and mem_gb >= 64.",
    ),
    JobField(
        name="walltime", kind=optional(kinds.POSITIVE_DURATION, word="none"), default=None, view="",
        attribute="walltime_s", run=True,
        help="Hard limit on the duration, if --request has none (default: none).",
    ),
    JobField(
        name="type", kind=kinds.TYPES, default=(), flags=("-t", "--type"), many=True, attribute="types",
        view="type",
        comment='for example "besteffort", "inner=12"; times in them are Unix seconds',
        help="Job type: besteffort, idempotent, container, inner=ID, timesharing=user|*,name|*, placeholder=NAME, "
        "allowed=NAME, deploy, cosystem, noop, deadline=WHEN, postpone=WHEN, expire=WHEN, no_quotas "
        "(for administrators), or type:NAME for one of the site's own.",
        wr="limit_grps",
    ),
    JobField(
        name="priority", kind=count(0, 255), default=0,
        help="0 to 255, higher first (default: 0).", wr="priority", wr_alike=True,
    ),
    JobField(
        name="project", kind=kinds.PROJECT, default="", label="project",
        help="Project to account to.",
    ),
    JobField(
        name="queue", kind=kinds.QUEUE, default="", spec_default="default", flags=("-q", "--queue"),
        comment="empty in messages: the rules of the site choose",
        help="Queue (default: 'default').",
    ),
    JobField(
        name="at", kind=optional(kinds.MOMENT, word="none"), default=None, flags=("-r", "--at"),
        comment="start of an advance reservation",
        help="Reserve the resources for this time: 2026-11-16T08:00 (local, or with a zone), now+10m or "
        "@1700000000.",
        fixed=("a reservation is granted when the job is added, and never moved", ADD_ANEW),
    ),
    JobField(
        name="pool", kind=kinds.POOL, default="", number=1, view="asked_pool", label="pool asked",
        comment="where it must run; empty: in the first pool with room",
        help="Where to run: local, nodes, or a pool of the site, see 'rota pool list' (default: the first with "
        "room).",
    ),
)  # fmt: skip
