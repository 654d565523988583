"""Specifications in messages, converted to the records that `core` decides about."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from rota.core.fields.limits import WantedLimit
from rota.core.jobs.job import Spec
from rota.plan.need import LimitUse
from rota.wire.job_structs import NewSpec, SpecChange
from rota.wire.new_use import NewUse

#: Fields that a specification takes over from what the client sent.
_AS_SENT: Final = tuple(name for name in NewSpec.__struct_fields__ if name not in ("env", "limits"))


def spec_from(new: NewSpec, limits: tuple[LimitUse, ...], *, user: str, env: int) -> Spec:
    """The specification that a client sent, completed by user, environment and limits."""
    return Spec(user=user, env=env, limits=limits, **{name: getattr(new, name) for name in _AS_SENT})


def wanted_limits(uses: tuple[NewUse, ...]) -> tuple[WantedLimit, ...]:
    """The limits that a client names."""
    return tuple(WantedLimit(use.name, use.number, use.exclusive, use.declare) for use in uses)


def changed_fields(change: SpecChange) -> dict[str, Any]:
    """The fields of a specification that a client changes, by name."""
    fields = {
        name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not msgspec.UNSET
    }
    if "limits" in fields:
        fields["limits"] = wanted_limits(fields["limits"])
    return fields
