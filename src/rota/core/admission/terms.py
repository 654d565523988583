"""The terms on which a job is planned (request, types, queue, reservation): checked and made consistent.

Our clients check them, too, but any program may speak the protocol.
"""

from __future__ import annotations

from typing import Any

import msgspec

from rota.core.jobs.job import Spec
from rota.core.pools.delegable import delegated
from rota.errors import BadInput
from rota.plan.language.request_parser import parse_request
from rota.plan.language.type_parser import check_reservation, parse_types
from rota.plan.policy.policy import BESTEFFORT
from rota.plan.size import CORE
from rota.pool_names import is_delegated


def agreed(spec: Spec) -> Spec:
    """The specification with consistent terms: besteffort by type implies the queue, and the other way round.

    Raises `BadInput`.
    """
    if spec.queue != "default" or spec.types:
        spec = _besteffort(spec)
    _check_size(spec)
    if is_delegated(spec.pool):
        return delegated(spec)
    if spec.types or spec.at is not None:
        _check_terms(spec)
    return spec


def modified(spec: Spec, fields: dict[str, Any]) -> dict[str, Any]:
    """The fields of a change, and others that must change with them. Raises `BadInput`."""
    new = dict(fields)
    request = new.get("request", spec.request)
    if request and not new.keys().isdisjoint(("cpus", "gpus")):
        raise BadInput(
            "field 'cpus' or 'gpus': a job takes what its request says",
            hint="change the request, or take it away as well with --request none",
        )
    if request and new.get("walltime_s") is not None and all(parse_request(each).walltime_s for each in request):
        raise BadInput(
            "a job runs for as long as its request says",
            field="walltime",
            hint="change the request: --request …",
        )
    if request and "request" in new:
        new |= {"cpus": CORE, "gpus": 0}
    if "types" in new and "queue" not in new and spec.queue == BESTEFFORT and BESTEFFORT not in new["types"]:
        new["queue"] = "default"
    if "queue" in new and "types" not in new and new["queue"] != BESTEFFORT:
        new["types"] = tuple(word for word in spec.types if word != BESTEFFORT)
    return new


def _besteffort(spec: Spec) -> Spec:
    by_type, by_queue = BESTEFFORT in spec.types, spec.queue == BESTEFFORT
    if by_type and spec.queue in ("", "default"):
        return msgspec.structs.replace(spec, queue=BESTEFFORT)
    if by_queue and not by_type:
        return msgspec.structs.replace(spec, types=(BESTEFFORT, *spec.types))
    if by_type and not by_queue:
        raise BadInput(
            f"type '{BESTEFFORT}' contradicts queue '{spec.queue}'", field="queue", hint="give one of them"
        )
    return spec


def _check_size(spec: Spec) -> None:
    if spec.request and (spec.size.cpus, spec.size.gpus) != (CORE, 0):
        raise BadInput("fields 'request' and 'cpus' or 'gpus' contradict each other", hint="give one of them")


def _check_terms(spec: Spec) -> None:
    try:
        types = parse_types(spec.types)
    except BadInput as error:
        raise error.at(field="type") from None
    if spec.at is None:
        return
    try:
        check_reservation(types, spec.at)
    except BadInput as error:
        raise error.at(field="at") from None
