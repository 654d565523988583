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
    if "cleanup" in behaviours and not spec.scratch:
        raise BadInput("behaviour 'cleanup' needs 'scratch'", hint="only a private directory is removed")
