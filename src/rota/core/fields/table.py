"""All fields of a job by name, and what follows from their declarations."""

from __future__ import annotations

from typing import Final

from rota.core.fields.declared import adding, attempts, gangs, labels, learning, resources, waiting
from rota.core.fields.field import JobField

_ALL: Final = (
    *labels.FIELDS,
    *resources.FIELDS,
    *waiting.FIELDS,
    *learning.FIELDS,
    *attempts.FIELDS,
    *gangs.FIELDS,
    *adding.FIELDS,
)
#: Every field of a job besides `cmd`, in the order of the help.
FIELDS: Final[dict[str, JobField]] = {field.name: field for field in _ALL}
#: Fields that `rota modify` changes.
CHANGEABLE: Final = tuple(field.name for field in _ALL if field.fixed is None)
#: Fields of specifications.
IN_SPEC: Final = tuple(field for field in _ALL if field.in_spec)
#: Fields that are the size of a job, on one host.
SIZES: Final = resources.SIZES
#: Fields whose values are learned unless the user gives them.
LEARNED: Final = ("mem", "disk", "time")
