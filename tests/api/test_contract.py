"""The API keeps what its own description promises: any request, valid or not, gets a described answer."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis.checks import not_a_server_error
from schemathesis.config import SchemathesisConfig
from schemathesis.generation import GenerationMode
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from rota.api.operations import EVENTS
from rota.api.paths import PREFIX
from rota.api.routes import OPERATIONS
from rota.api.schema import document
from tests.dose import FACTOR, dose

_CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
#: What would end the deployment that everything else is asked of, or never ends itself.
_SPARED = {"stop_manager", "drain_manager", "log_out"} | {each.id for each in OPERATIONS if each.kind == EVENTS}

_schema = schemathesis.openapi.from_dict(msgspec.json.decode(document(OPERATIONS)), config=SchemathesisConfig())
_schema.config.generation.update(modes=[GenerationMode.POSITIVE, GenerationMode.NEGATIVE])
_included = _schema.exclude(operation_id=sorted(_SPARED))


def _careful(case: Any) -> None:
    """Keep what is asked for inside the deployment: no files, none of its own tokens, no commands."""
    operation = case.operation.definition.raw["operationId"]
    body = case.body if isinstance(case.body, dict) else {}
    if operation == "back_up" and isinstance(body.get("path"), str):
        body["path"] = "no/such/place/" + body["path"].replace("\0", "").replace("..", "")
    if operation == "add_jobs":
        body["dry_run"] = True
    if operation == "remove_token":
        case.path_parameters = {
            **(case.path_parameters or {}),
            "name": "no-" + str(case.path_parameters["name"])[:40],
        }


@_included.parametrize()
@settings(
    dose(3),
    deadline=None,
    database=None,
    derandomize=FACTOR == 1,  # the same requests in every run of the suite, others in a larger dose
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
)
def test_every_request_gets_a_described_answer(case, site):
    _careful(case)
    answer = case.call(
        base_url=f"http://localhost:{site.port}",
        headers={"Authorization": f"Bearer {site.admin_token}"},
        timeout=30,
    )
    if answer.status_code == 429:
        return  # it was asked too fast, which is described
    case.validate_response(answer, checks=_CHECKS)


def test_the_deployment_is_well_after_all_that(site):
    assert site.logs() == ""
    assert site.admin.post("/api/v1/manager/resume").json["paused"] is False
    (id,) = site.add("true")
    site.rota.ok("wait", str(id))
    assert site.user.get("/api/v1/doctor").json == []


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda each: each.id)
def test_every_operation_says_what_it_does(operation):
    assert operation.summary
    assert not operation.summary.endswith(".")
    assert operation.role in ("open", "user", "admin")
    assert operation.path.startswith("/")


def test_operations_are_not_mistaken_for_each_other():
    ids = [each.id for each in OPERATIONS]
    places = [(each.method, each.path) for each in OPERATIONS]
    assert len(set(ids)) == len(ids)
    assert len(set(places)) == len(places)


def test_the_document_is_served_as_it_is_made(site):
    answer = site.nobody.get(f"{PREFIX}/openapi.json")
    assert (answer.status, answer.body) == (200, document(OPERATIONS))
