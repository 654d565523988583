"""Validates specifications, independently of the rules of the site.

Our clients check the fields, too, by the same declarations, but any program may speak the protocol.
"""

from __future__ import annotations

from itertools import compress
from operator import attrgetter, ne
from typing import Final

from rota.core.fields.behaviours import MAX_BEHAVIOURS
from rota.core.fields.table import FIELDS, IN_SPEC, LEARNED, SIZES
from rota.core.jobs.job import Spec
from rota.errors import BadInput
from rota.plan.language.request_parser import parse_request
from rota.pool_names import is_delegated

_FIELDS: Final = (*IN_SPEC, *SIZES)
_values: Final = attrgetter(
    *(field.spec_name for field in IN_SPEC), *(f"size.{field.spec_name}" for field in SIZES)
)
#: What most jobs have.
_USUAL: Final = _values(Spec(user="", cwd="/", env=0))


def check_fields(spec: Spec, *, checked: Spec | None = None) -> None:
    """Raise `BadInput` for a field with a value that its declaration does not allow. `checked`: another
    specification, whose values are known to be good."""
    known = _USUAL if checked is None else _values(checked)
    values = _values(spec)
    # Without a step of Python for every field that is as usual: a submission may have 100,000 specifications.
    for field, value in compress(zip(_FIELDS, values, strict=True), map(ne, values, known)):
        check_value(field.name, value)


def check_value(name: str, value: object) -> None:
    """Raise `BadInput` if the field of this name cannot have this value."""
    try:
        FIELDS[name].kind.check(value)
    except BadInput as error:
        raise error.at(field=name) from None


def check_spec(spec: Spec, *, checked: Spec | None = None) -> None:
    """Raise `BadInput` for an invalid specification, from a client or made by rules. `checked`: as above."""
    check_fields(spec, checked=checked)
    if spec.interactive and spec.retries:
        raise BadInput("an interactive job is not tried again", hint="leave out its retries")
    if not set(spec.given).issubset(LEARNED):
        raise BadInput("only 'mem', 'disk' and 'time' are learned or given", hint="leave out the others")
    behaviours = (*spec.on_success, *spec.on_failure, *spec.on_exit)
    if len(behaviours) > MAX_BEHAVIOURS:
        raise BadInput(f"a job has at most {MAX_BEHAVIOURS} behaviours", hint="put them into a script")
    _check_gang(spec)
    _check_machines(spec)
    if "cleanup" in behaviours and not spec.scratch:
        raise BadInput("behaviour 'cleanup' needs 'scratch'", hint="only a private directory is removed")


def _check_gang(spec: Spec) -> None:
    """Raise `BadInput` if a job says something about its gang and is in none."""
    if not spec.gang:
        for name in ("gang_same", "gang_share", "on_member_failure"):
            if getattr(spec, name):
                raise BadInput(
                    f"'{name}' is about a gang, and this job is in none",
                    hint="name it: --gang NAME, or the field gang",
                ).at(field=name)


def _check_machines(spec: Spec) -> None:
    """Raise `BadInput` if what happens to its machines before and after the run does not fit together."""
    if spec.reserve_for_s is not None and not spec.reserve:
        raise BadInput(
            "'reserve_for' says how long, but not when machines are kept",
            hint="add reserve: always, onfail or onabort",
        ).at(field="reserve_for")
    if spec.reserve and spec.reserve_for_s is None:
        raise BadInput("'reserve' needs a time", hint="add reserve_for, like 2h").at(field="reserve")
    if not spec.provision and not spec.reserve:
        return
    field = "provision" if spec.provision else "reserve"
    for written in spec.request if spec.provision else ():
        for group in parse_request(written).groups:
            if "host" not in (level.name for level in group.levels):
                raise BadInput(
                    f"provisioning takes whole hosts, and '{written}' asks for none",
                    hint="name how many: nodes=1",
                ).at(field="request")
    if is_delegated(spec.pool):
        raise BadInput(
            f"machines of pool '{spec.pool}' belong to another engine",
            hint="leave out the pool, or name local or nodes",
        ).at(field=field)
    if spec.reserve and "besteffort" in spec.types:
        raise BadInput(
            "a besteffort job makes room for others, so it cannot keep its machines", hint="leave out reserve"
        ).at(field="reserve")
    if "noop" in spec.types or any(kind in spec.types for kind in ("deploy", "cosystem")):
        raise BadInput("its command does not run on its machines", hint="leave out the type").at(field=field)
