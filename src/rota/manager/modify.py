"""`rota modify`: from the fields that change to the specifications that jobs get."""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core.job import Spec, Wrote
from rota.errors import BadInput
from rota.manager.admission import Admission
from rota.manager.intake import Library
from rota.manager.limits import resolve
from rota.manager.specs import check_spec
from rota.manager.terms import modified
from rota.plan.limits import Limit, Limits
from rota.wire import messages as m

#: Fields of a size, under the names by which people know whether they were given.
_SIZES = {"cpus": "", "mem": "mem", "disk": "disk", "time_s": "time", "gpus": ""}


def changes(change: m.SpecChange) -> dict[str, Any]:
    """The fields that were sent."""
    return {
        name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not msgspec.UNSET
    }


def respecify(
    spec: Spec,
    fields: dict[str, Any],
    limits: Limits,
    declared: dict[str, Limit],
    admission: Admission,
    *,
    admin: bool = False,
) -> Spec:
    """The specification with these fields over it. Raises `BadInput`."""
    if not 0 <= (fields.get("input_bytes") or 0) < 2**53:
        raise BadInput("field 'input_bytes' is out of range")
    fields = modified(spec, fields)
    new = {name: value for name, value in fields.items() if name not in _SIZES and name != "input_bytes"}
    sizes = {name: value for name, value in fields.items() if name in _SIZES}
    if sizes:
        new["size"] = msgspec.structs.replace(spec.size, **sizes)
        given = {*spec.given, *(word for name in sizes if (word := _SIZES[name]))}
        new["given"] = tuple(word for word in ("mem", "disk", "time") if word in given)
    if "limits" in new:
        new["limits"] = resolve(new["limits"], limits, declared, user=spec.user, admin=admin)
    if spec.wrote is not None:
        new["wrote"] = _rewritten(spec.wrote, new, sizes)
    changed = admission.admit(msgspec.structs.replace(spec, **new), admin=admin, before=spec).spec
    check_spec(changed)
    return changed


def _rewritten(wrote: Wrote, new: dict[str, Any], sizes: dict[str, Any]) -> Wrote:
    """What was asked for at first, with what is asked for now over it; the rules had changed the rest."""
    words = {*wrote.given, *(word for name in sizes if (word := _SIZES[name]))}
    return Wrote(
        size=msgspec.structs.replace(wrote.size, **sizes),
        walltime_s=new.get("walltime_s", wrote.walltime_s),
        given=tuple(word for word in ("mem", "disk", "time") if word in words),
        request=new.get("request", wrote.request),
        priority=new.get("priority", wrote.priority),
    )


def new_specs(
    spec_ids: set[int],
    fields: dict[str, Any],
    library: Library,
    limits: Limits,
    declared: dict[str, Limit],
    admission: Admission,
    *,
    admin: bool = False,
) -> tuple[dict[int, tuple[int, Spec]], list[tuple[int, str]]]:
    """Old number → (new number, specification), and rows for those that nobody had before."""
    rows: list[tuple[int, str]] = []
    specs = {}
    for old in spec_ids:
        spec = respecify(library.specs[old], fields, limits, declared, admission, admin=admin)
        specs[old] = (library.spec(spec, rows), spec)
    return specs, rows
