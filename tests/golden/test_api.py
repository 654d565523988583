"""The HTTP API keeps every path, parameter and field that a release described."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.golden.deliberate import DELIBERATE
from tests.golden.formats import openapi
from tests.golden.kept import RELEASES, golden

#: Words for people.
_PROSE = {"description", "title", "summary", "info"}


def _broken(old: Any, new: Any, where: str, *, asked: bool) -> Iterator[str]:
    """What callers of the release would miss. `asked`: it is about what callers send."""
    if isinstance(old, dict) and isinstance(new, dict):
        asked = asked or where.endswith((".requestBody", ".parameters"))
        for key, value in old.items():
            here = f"{where}.{key}"
            if key in _PROSE:
                continue
            if key not in new:
                yield f"{here} is gone"
            else:
                yield from _broken(value, new[key], here, asked=asked)
        if asked and not old.get("required") and new.get("required") is True:
            yield f"{where} is required now"
    elif where.endswith(".parameters"):
        there = {(one["in"], one["name"]): one for one in new}
        known = {(one["in"], one["name"]): one for one in old}
        for key, one in known.items():
            if key not in there:
                yield f"{where}.{key[1]} is gone"
            else:
                yield from _broken(one, there[key], f"{where}.{key[1]}", asked=True)
        for key in there.keys() - known.keys():
            if there[key].get("required"):
                yield f"{where}.{key[1]} is required now"
    elif (
        where.endswith((".required", ".enum", ".anyOf", ".type"))
        and isinstance(old, list)
        and isinstance(new, list)
    ):
        for one in old:
            if one not in new:
                yield f"{where} has no {one} any more"
        if asked and where.endswith(".required"):
            for one in new:
                if one not in old:
                    yield f"{where} has {one} now"
    elif old != new:
        yield f"{where} was {old!r}, and is {new!r}"


def _sent(document: Any) -> set[str]:
    """Names of the schemas that callers send."""
    found: set[str] = set()
    waiting = [
        operation["requestBody"]
        for path in document["paths"].values()
        for operation in path.values()
        if "requestBody" in operation
    ]
    while waiting:
        match waiting.pop():
            case {"$ref": str(name)} if (leaf := name.rpartition("/")[2]) not in found:
                found.add(leaf)
                waiting.append(document["components"]["schemas"][leaf])
            case dict(values):
                waiting += values.values()
            case list(values):
                waiting += values
    return found


def differences(old: Any, new: Any) -> list[str]:
    found = list(_broken(old["paths"], new["paths"], "paths", asked=False))
    sent = _sent(old)
    schemas = new["components"]["schemas"]
    for name, schema in old["components"]["schemas"].items():
        if name not in schemas:
            found.append(f"schemas.{name} is gone")
        else:
            found += _broken(schema, schemas[name], f"schemas.{name}", asked=name in sent)
    return found


@pytest.mark.parametrize("release", RELEASES)
def test_every_path_parameter_and_field_is_still_there(release: str) -> None:
    found = differences(golden(release, "openapi"), openapi())
    unknown = [line for line in found if (release, line.split(" ")[0]) not in DELIBERATE]
    assert unknown == []


def test_a_field_or_parameter_that_is_taken_away_or_becomes_required_is_told() -> None:
    old, new = openapi(), openapi()
    del new["components"]["schemas"]["JobView"]["properties"]["exit_code"]
    new["components"]["schemas"]["AttemptView"]["properties"]["attempt"]["type"] = "string"
    jobs = new["paths"]["/api/v1/jobs"]["get"]["parameters"]
    gone = jobs.pop()["name"]
    jobs.append({"in": "query", "name": "novel", "required": True})
    said = "\n".join(differences(old, new))
    for word in (
        "JobView.properties.exit_code",
        "AttemptView.properties.attempt.type",
        f".{gone} is gone",
        "novel",
    ):
        assert word in said
