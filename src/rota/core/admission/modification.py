"""`rota modify`: from the fields that change to the specifications that jobs get."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import Struct, field

from rota.core.admission.admission import Admission
from rota.core.admission.limit_uses import resolve
from rota.core.admission.rulebook import Admitted
from rota.core.admission.spec_checks import check_value
from rota.core.admission.terms import modified
from rota.core.fields.table import LEARNED, SIZES
from rota.core.jobs.as_written import AsWritten
from rota.core.jobs.job import Spec
from rota.core.submit.spec_library import Library
from rota.plan.policy.limits import Limit, Limits

#: Field of a size → its name in `given`, if it has one.
_SIZES = {field.spec_name: field.name if field.name in LEARNED else "" for field in SIZES}


def respecify(
    spec: Spec,
    fields: dict[str, Any],
    limits: Limits,
    declared: dict[str, Limit],
    admission: Admission,
    *,
    admin: bool = False,
    envs: Mapping[int, int] = {},
) -> Admitted:
    """The specification with these fields replaced, and judged by the rules. Raises `BadInput`.

    `envs`: environment → the one that replaces it.
    """
    check_value("input_bytes", fields.get("input_bytes"))
    fields = modified(spec, fields)
    new = {name: value for name, value in fields.items() if name not in _SIZES and name != "input_bytes"}
    sizes = {name: value for name, value in fields.items() if name in _SIZES}
    if sizes:
        new["size"] = msgspec.structs.replace(spec.size, **sizes)
        given = {*spec.given, *(word for name in sizes if (word := _SIZES[name]))}
        new["given"] = tuple(word for word in LEARNED if word in given)
    if envs:
        new["env"] = envs[spec.env]
    if "limits" in new:
        new["limits"] = resolve(new["limits"], limits, declared, user=spec.user, admin=admin)
    if spec.wrote is not None:
        new["wrote"] = _rewritten(spec.wrote, new, sizes)
    return admission.admit(msgspec.structs.replace(spec, **new), admin=admin, before=spec)


def _rewritten(wrote: AsWritten, new: dict[str, Any], sizes: dict[str, Any]) -> AsWritten:
    """The original wishes, overlaid by the new ones, without what the rules changed."""
    words = {*wrote.given, *(word for name in sizes if (word := _SIZES[name]))}
    return AsWritten(
        size=msgspec.structs.replace(wrote.size, **sizes),
        walltime_s=new.get("walltime_s", wrote.walltime_s),
        given=tuple(word for word in LEARNED if word in words),
        request=new.get("request", wrote.request),
        priority=new.get("priority", wrote.priority),
    )


class NewSpecs(Struct):
    """Specifications after a modification."""

    specs: dict[int, tuple[int, Spec]] = field(default_factory=dict)  #: old number → (new number, specification)
    notices: dict[int, tuple[str, ...]] = field(default_factory=dict)  #: old number → what the rules reduced


def new_specs(
    spec_ids: set[int],
    fields: dict[str, Any],
    library: Library,
    limits: Limits,
    declared: dict[str, Limit],
    admission: Admission,
    *,
    admin: bool = False,
    envs: Mapping[int, int] = {},
) -> NewSpecs:
    """The modified versions of these specifications; see `respecify`. Raises `BadInput`."""
    made = NewSpecs()
    for old in spec_ids:
        admitted = respecify(library.specs[old], fields, limits, declared, admission, admin=admin, envs=envs)
        made.specs[old] = (library.spec(admitted.spec), admitted.spec)
        if admitted.notices:
            made.notices[old] = admitted.notices
    return made
