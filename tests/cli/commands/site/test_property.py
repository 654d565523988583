"""`rota property`: add, list, remove, and the levels of the hierarchy."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.deployment import Deployment


def properties(made: Deployment) -> Any:
    return json.loads(made.ok("property", "list", "--json"))


def refused(made: Deployment, *args: str) -> str:
    done = made.rota(*args)
    assert done.returncode in (2, 3)
    assert done.stderr.startswith("rota: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


HIERARCHY = ["cluster", "switch", "host", "cpu", "core"]


def test_the_usual_levels_are_built_in(shared: Deployment) -> None:
    found = properties(shared)
    assert found["levels"] == HIERARCHY
    assert [each["property"] for each in found["properties"] if each["built_in"]] == HIERARCHY
    assert shared.ok("property", "list").splitlines()[0].split() == ["PROPERTY", "TYPE", "LEVEL", "RESOURCES"]


def test_a_level_is_placed_above_another(shared: Deployment) -> None:
    shared.ok("property", "add", "rack", "--level", "--above", "host")
    shared.ok("property", "add", "room", "--level")
    shared.ok("property", "add", "socket", "--type", "integer", "--above", "core")
    assert properties(shared)["levels"] == ["room", "cluster", "switch", "rack", "host", "cpu", "socket", "core"]
    shared.ok("property", "add", "room", "--above", "host")
    assert properties(shared)["levels"] == ["cluster", "switch", "rack", "room", "host", "cpu", "socket", "core"]
    for name in ("rack", "room", "socket"):
        shared.ok("property", "remove", name)
    assert properties(shared)["levels"] == HIERARCHY


def test_a_property_of_resources_is_removed_only_by_force(shared: Deployment) -> None:
    shared.ok("property", "add", "gpu", "--type", "yesno")
    shared.ok("resource", "add", "--hosts", "p[1-2]", "--cores", "2", "--set", "gpu=no")
    assert "property 'gpu' is in use by 4 resources" in refused(shared, "property", "remove", "gpu")
    assert shared.ok("property", "remove", "gpu", "--force") == "removed property gpu, taken from 4 resources\n"
    found = json.loads(shared.ok("resource", "list", "--hosts", "p1", "--json"))
    assert found["hosts"][0]["properties"] == {}
    shared.ok("resource", "remove", "--hosts", "p[1-2]")


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["add", "host", "--type", "integer"], "property 'host' is there already, of type text"),
        (["add", "nodes"], "has a meaning of its own"),
        (["add", "a-b"], "cannot be the name of a property"),
        (["add", ""], "cannot be the name of a property"),
        (["add", "é"], "cannot be the name of a property"),
        (["add", "x" * 65], "cannot be the name of a property"),
        (["add", "x", "--above", "nothing"], "'nothing' is not a level; use one of cluster, switch, host"),
        (["add", "core", "--above", "host"], "cannot be moved"),
        (["remove", "core"], "property 'core' is built in"),
        (["remove", "nothing"], "there is no property 'nothing'"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(shared: Deployment, args: list[str], words: str) -> None:
    before = properties(shared)
    assert words in refused(shared, "property", *args)
    assert properties(shared) == before


def test_adding_a_property_again_is_refused(shared: Deployment) -> None:
    shared.ok("property", "add", "twice", "--type", "integer")
    assert "there already, of type integer" in refused(shared, "property", "add", "twice", "--type", "integer")
    assert "there already, of type integer" in refused(
        shared, "property", "add", "twice", "--type", "text", "--level"
    )
