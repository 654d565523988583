"""Converts the fields of a job into the specification that is sent to the manager."""

from __future__ import annotations

from operator import attrgetter
from typing import Final

from rota.client.fields.fields import Wanted
from rota.client.job_keys import hash_in
from rota.core.fields.limits import WantedLimit
from rota.core.fields.table import IN_SPEC
from rota.wire.client_messages import NewSpec, NewUse

_NAME_OF: Final = {field.spec_name: field.name for field in IN_SPEC}
_POSITIONS: Final = {name: position for position, name in enumerate(NewSpec.__struct_fields__)}
#: All members of a specification, in the order in which it is sent.
_members: Final = attrgetter(*(_NAME_OF.get(name, name) for name in _POSITIONS))


def new_spec(wanted: Wanted, env: int) -> NewSpec:
    """The specification to send, once for all jobs with the same fields. `env`: number of its environment."""
    members = list(_members(wanted))
    members[_POSITIONS["env"]] = env
    members[_POSITIONS["job_key"]] = "" if wanted.job_key is None else hash_in(wanted.job_key)
    if wanted.limits:
        members[_POSITIONS["limits"]] = sent_limits(wanted.limits)
    return NewSpec(*members)


def sent_limits(limits: tuple[WantedLimit, ...]) -> tuple[NewUse, ...]:
    """Uses of limits as they are sent."""
    return tuple(NewUse(use.name, use.number, use.exclusive, use.declare) for use in limits)
