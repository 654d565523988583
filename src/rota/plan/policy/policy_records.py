"""Records of queues and fair share; `core.site.policy` builds a policy from them.

The record of a queue holds its differences from the defaults.
"""

from __future__ import annotations

import re
from typing import Annotated, Any, Final

import msgspec
from msgspec import Meta, Struct

from rota.errors import BadInput
from rota.plan.policy.policy import BACKFILLS, DEFAULT_QUEUES, MOST_WEIGHT, ORDERS, FairShare, Queue
from rota.plan.policy.usage_history import KEPT_S
from rota.units import MAX_SECONDS

MOST_PRIORITY: Final = 1000
#: The setting of a site that holds the constants of fair share.
FAIR_SHARE: Final = "fair_share"
QUEUE_NAME: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

Time = Annotated[float, Meta(gt=0, le=MAX_SECONDS)]


class QueueRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The record of a queue; None: the default."""

    priority: Annotated[int, Meta(ge=0, le=MOST_PRIORITY)] | None = None
    order: str | None = None
    backfill: str | None = None
    walltime_s: Time | None = None
    max_wait_s: Time | None = None
    shares: dict[str, Annotated[float, Meta(ge=0, le=1)]] | None = None
    max_priority: Annotated[int, Meta(ge=0, le=255)] | None = None
    admins_only: bool | None = None
    closed: bool | None = None
    closed_reason: Annotated[str, Meta(max_length=1000)] | None = None


Weight = Annotated[float, Meta(ge=0, le=MOST_WEIGHT)]


class FairShareRecord(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The record of the fair share settings; None: the default."""

    project: Weight | None = None
    used: Weight | None = None
    asked: Weight | None = None
    half_life_s: Annotated[float, Meta(ge=60, le=MAX_SECONDS)] | None = None
    window_s: Annotated[float, Meta(ge=3600, le=KEPT_S)] | None = None


def read_fair_share(value: Any) -> FairShare:
    """The fair share settings in a record. Raises `BadInput`."""
    record = _converted(f"setting '{FAIR_SHARE}'", value, FairShareRecord)
    own = {field: each for field in record.__struct_fields__ if (each := getattr(record, field)) is not None}
    return FairShare(**own)


def check_queue(name: str, value: Any) -> None:
    """Raise `BadInput` unless this is a valid record of a queue."""
    read_queue(name, value)


def read_queue(name: str, value: Any) -> Queue:
    """The queue in a record. Raises `BadInput`."""
    if not QUEUE_NAME.fullmatch(name):
        raise BadInput(
            f"'{name[:40]}' cannot be a queue", hint="names have letters, digits and . _ - (at most 64)"
        )
    record = _converted(f"queue '{name}'", value, QueueRecord)
    for what, word, known in (("order", record.order, ORDERS), ("backfill", record.backfill, BACKFILLS)):
        if word is not None and word not in known:
            raise BadInput(f"queue '{name}': there is no {what} '{word[:40]}'", hint=f"use {', '.join(known)}")
    for share in record.shares or {}:
        if not share or share == "project:" or not share.isprintable():
            raise BadInput(f"queue '{name}': a share needs a user or project:NAME")
    if record.closed_reason is not None and not record.closed_reason.isprintable():
        raise BadInput(f"queue '{name}': its reason has characters that cannot be printed")
    own = {field: each for field in record.__struct_fields__ if (each := getattr(record, field)) is not None}
    return msgspec.structs.replace(DEFAULT_QUEUES.get(name, Queue()), **own)


#: Fields of a queue that concern admission, not planning.
_OF_ADMISSION: Final = frozenset(("closed", "closed_reason"))


def decides_plans(name: str, value: Any) -> bool:
    """Does a queue's record change how jobs are planned?"""
    return name not in DEFAULT_QUEUES or not value.keys() <= _OF_ADMISSION


def opened_or_closed(name: str, value: Any, reason: str | None) -> dict[str, Any] | None:
    """The record of a queue that is closed for this reason, or opened if the reason is None. Returns None if no
    record is needed any more. Raises `BadInput`."""
    record = {field: each for field, each in (value or {}).items() if field not in _OF_ADMISSION}
    if reason is not None:
        record |= {"closed": True, **({"closed_reason": reason} if reason else {})}
    read_queue(name, record)
    return record if record or name not in DEFAULT_QUEUES else None


def _converted(what: str, value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise BadInput(f"{what}: {error}".replace("`", "'")) from None
