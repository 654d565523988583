"""The terms of a job as the manager takes them in, whoever sends them."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from rota.core.admission.terms import agreed, modified
from rota.core.jobs.job import Spec
from rota.errors import BadInput
from rota.plan.size import CORE, Size

SPEC = Spec(user="ann", cwd="/home/ann", env=1)


def spec(**fields: Any) -> Spec:
    return msgspec.structs.replace(SPEC, **fields)


def test_a_specification_that_was_stored_before_there_were_requests_still_means_the_same() -> None:
    stored = msgspec.to_builtins(SPEC)
    for name in ("request", "where", "types", "at"):
        del stored[name]
    assert msgspec.json.decode(msgspec.json.encode(stored), type=Spec) == SPEC


def test_what_is_stored_comes_back() -> None:
    asks = spec(request=("nodes=2", "core=8"), where="gpu='YES'", types=("deadline=4000000000",), at=4e9)
    assert msgspec.json.decode(msgspec.json.encode(asks), type=Spec) == asks


def test_a_plain_job_is_taken_as_it_is() -> None:
    assert agreed(SPEC) is SPEC


def test_besteffort_is_a_type_and_a_queue() -> None:
    both = spec(types=("besteffort",), queue="besteffort")
    assert agreed(spec(types=("besteffort",))) == agreed(spec(queue="besteffort")) == agreed(both) == both
    with pytest.raises(BadInput, match="contradicts queue 'admin'"):
        agreed(spec(types=("besteffort",), queue="admin"))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"types": ("dance",)}, "field 'type': unknown type 'dance'"),
        ({"types": ("deadline=now+1h",)}, "field 'type'"),
        ({"request": ("core=1",), "size": Size(cpus=2 * CORE)}, "contradict"),
        ({"request": ("core=1",), "size": Size(gpus=1)}, "contradict"),
        ({"at": 4e9, "types": ("besteffort",)}, "field 'at'"),
        ({"at": 4e9, "types": ("inner=1",)}, "field 'at'"),
        ({"at": 4e9, "queue": "besteffort"}, "field 'at'"),
    ],
)
def test_what_no_client_of_ours_sends_is_refused(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(BadInput) as refused:
        agreed(spec(**fields))
    assert expected in str(refused.value)


def test_a_request_replaces_the_cores_that_a_job_had() -> None:
    wide = spec(size=Size(cpus=4 * CORE, gpus=1))
    assert modified(wide, {"request": ("nodes=1",)}) == {"request": ("nodes=1",), "cpus": CORE, "gpus": 0}


def test_cores_do_not_silently_replace_a_request() -> None:
    asks = spec(request=("nodes=2",))
    with pytest.raises(BadInput, match="a job takes what its request says"):
        modified(asks, {"cpus": 2 * CORE})
    assert modified(asks, {"cpus": 2 * CORE, "request": ()}) == {"cpus": 2 * CORE, "request": ()}
    assert modified(asks, {"mem": 5}) == {"mem": 5}


def test_who_is_no_longer_besteffort_by_one_is_so_by_neither() -> None:
    asks = spec(types=("besteffort", "idempotent"), queue="besteffort")
    assert modified(asks, {"types": ("idempotent",)}) == {"types": ("idempotent",), "queue": "default"}
    assert modified(asks, {"queue": "default"}) == {"queue": "default", "types": ("idempotent",)}
    assert modified(asks, {"types": ("besteffort", "noop")}) == {"types": ("besteffort", "noop")}
