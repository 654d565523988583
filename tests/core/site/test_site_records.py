"""Records of the site in the engine: all or nothing, durable, and told to whoever plans."""

from __future__ import annotations

from typing import Any

import pytest

from rota.core import events
from rota.core.jobs.explain import why
from rota.core.states import State
from rota.errors import BadInput, NotFound
from rota.plan.size import Size
from tests.core.machine import Machine


@pytest.fixture
def m() -> Machine:
    return Machine(cpus=400, hosts=1)


def change(m: Machine, *changes: tuple[str, str, Any], **more: Any) -> int:
    by = m.asker()
    m.happened(events.SiteChanged(by=by, changes=list(changes), **more))
    version = m.answer(by.n)
    assert isinstance(version, int)
    return version


def test_a_change_is_applied_answered_and_there_after_a_crash(m: Machine) -> None:
    version = m.world.site_version
    assert change(m, ("queue", "night", {"priority": 1}), ("share", "ann", 0.5)) == version + 1
    for _ in range(2):
        assert m.world.site["queue"] == {"night": {"priority": 1}}
        assert m.world.site["share"] == {"ann": 0.5}
        m.crash()
    change(m, ("queue", "night", None))
    m.crash()
    assert m.world.site["queue"] == {}


def test_whoever_plans_is_told_once_per_change_and_sees_the_new_site(m: Machine) -> None:
    seen: list[Any] = []
    m.world.on_site = lambda: seen.append((m.world.site_version, dict(m.world.site["queue"])))
    change(m, ("queue", "a", {}), ("queue", "b", {}))
    assert seen == [(m.world.site_version, {"a": {}, "b": {}})]
    with pytest.raises(NotFound):
        change(m, ("queue", "c", None))
    assert change(m) == m.world.site_version
    assert len(seen) == 1


def test_one_wrong_change_undoes_all_of_them(m: Machine) -> None:
    change(m, ("queue", "a", {"priority": 1}))
    version, site = m.world.site_version, m.world.site
    for wrong, kind in [
        (("queue", "missing", None), NotFound),
        (("nonsense", "x", {}), BadInput),
        (("queue", "", {}), BadInput),
        (("queue", "a\nb", {}), BadInput),
        (("property", "walltime", {}), BadInput),
        (("property", "host", {}), BadInput),
        (("property", "a-b", {}), BadInput),
        (("property", "x", {"type": "float"}), BadInput),
        (("host", "n1", {"mem": -1}), BadInput),
        (("host", "n1", {"memory": 1}), BadInput),
        (("host", "n1", {"state": "tired"}), BadInput),
        (("resource", "01", {"host": "n1"}), BadInput),
        (("resource", "1", {}), BadInput),
        (("resource", "1", {"host": "n1", "colour": "red"}), BadInput),
        (("resource", "1", {"host": "n1", "cpu": "first"}), BadInput),
        (("setting", "levels", ["rack", "host", "core"]), BadInput),
        (("setting", "levels", ["host", "host", "core"]), BadInput),
        (("setting", "levels", ["core", "host"]), BadInput),
    ]:
        with pytest.raises(kind):
            change(m, ("queue", "b", {}), ("queue", "a", None), wrong)
        assert m.world.site is site
        assert m.world.site_version == version
    m.crash()
    assert m.world.site["queue"] == {"a": {"priority": 1}}


def test_rules_bind_jobs_only_to_properties_that_there_are(m: Machine) -> None:
    bind = {"rank": 1.0, "set": {"where": "gpu=yes"}}
    with pytest.raises(BadInput, match="rule 'bind': field 'where': unknown property 'gpu'"):
        change(m, ("rule", "bind", bind))
    change(m, ("property", "gpu", {"type": "yesno"}), ("rule", "bind", bind))
    with pytest.raises(BadInput, match="rule 'bind'"):
        change(m, ("property", "gpu", {"type": "text"}))
    with pytest.raises(BadInput, match="rule 'bind'"):
        change(m, ("property", "gpu", None))
    change(m, ("property", "gpu", None), ("rule", "bind", None))


def test_a_change_made_from_an_older_version_is_refused(m: Machine) -> None:
    seen = m.world.site_version
    change(m, ("queue", "a", {}), base=seen)
    with pytest.raises(BadInput, match="changed meanwhile") as refused:
        change(m, ("queue", "b", {}), base=seen)
    assert refused.value.code == "changed"
    change(m, ("queue", "b", {}), base=seen + 1)


def test_who_changed_what_is_in_the_story_of_the_deployment(m: Machine) -> None:
    change(m, ("queue", "a", {}), about="queue add a")
    change(m, ("queue", "a", None))
    change(m, ("host", "n1", {}), ("resource", "1", {"host": "n1"}), ("resource", "2", {"host": "n1"}))
    assert [(event.kind, event.text) for event in m.store.events(0)] == [
        ("site", "ann: queue add a"),
        ("site", "ann: queue 'a' removed"),
        ("site", "ann: host set: 1, resource set: 2"),
    ]


def test_a_property_cannot_go_while_a_resource_has_it_nor_change_its_type(m: Machine) -> None:
    change(m, ("property", "gpu", {"type": "yesno"}), ("resource", "1", {"host": "n1", "gpu": True}))
    with pytest.raises(BadInput, match="resource 1 has a value of 'gpu'"):
        change(m, ("property", "gpu", None))
    with pytest.raises(BadInput, match="is not a whole number"):
        change(m, ("property", "gpu", {"type": "integer"}))
    change(m, ("property", "gpu", None), ("resource", "1", {"host": "n1"}))
    assert m.world.site["property"] == {}


@pytest.mark.parametrize(
    "fields",
    [
        {"where": "colour is null"},
        {"request": ("{colour is null}/nodes=1",), "walltime_s": 60.0},
        {"where": "colour is null", "gang": "g"},
    ],
)
def test_jobs_wait_with_a_reason_while_a_property_that_they_name_is_gone(
    m: Machine, fields: dict[str, Any]
) -> None:
    m.with_runner()
    change(m, ("property", "colour", {"type": "text"}))
    (running,) = m.add("all", size=Size(cpus=400)).added
    waiting = m.add("a", **fields).added
    assert m.states(running, *waiting) == [State.RUNNING, State.READY]
    change(m, ("property", "colour", None))
    for job in waiting:
        said = [each.message for each in why(m.world, m.world.jobs[job], wall=m.wall)]
        assert any("never fits: unknown property 'colour'" in each for each in said), said
    m.end(running)
    assert m.states(*waiting) == [State.READY]
    m.crash()
    m.with_runner()
    m.heal()
    change(m, ("property", "colour", {"type": "text"}))
    assert m.states(*waiting) == [State.RUNNING]


def test_jobs_that_prefer_what_is_gone_run_anywhere(m: Machine) -> None:
    m.with_runner()
    change(m, ("property", "colour", {"type": "text"}))
    (running,) = m.add("all", size=Size(cpus=400)).added
    (waiting,) = m.add("a", prefer="colour is null").added
    change(m, ("property", "colour", None))
    m.end(running)
    assert m.state(waiting) is State.RUNNING


def test_a_gang_waits_with_a_reason_while_the_property_that_it_shares_is_gone(m: Machine) -> None:
    m.with_runner()
    change(m, ("property", "colour", {"type": "text"}))
    (job,) = m.add("a", gang="g", gang_same="colour", allow_unsatisfiable=True).added
    change(m, ("property", "colour", None))
    said = [each.message for each in why(m.world, m.world.jobs[job], wall=m.wall)]
    assert any("never fits: there is no property 'colour'" in each for each in said), said


def test_a_level_must_be_a_property(m: Machine) -> None:
    change(m, ("property", "rack", {"type": "text"}), ("setting", "levels", ["rack", "host", "cpu", "core"]))
    with pytest.raises(BadInput, match="level 'rack' is not a property"):
        change(m, ("property", "rack", None))
    change(m, ("property", "rack", None), ("setting", "levels", None))


def test_the_cores_of_a_host_without_records_keep_their_ids_beside_new_resources(m: Machine) -> None:
    assert m.world.own_resources == {"h1": [1, 2, 3, 4]}
    change(m, *[("resource", str(n), {"host": "n1"}) for n in range(5, 9)])
    assert m.world.own_resources == {"h1": [1, 2, 3, 4]}
    m.crash()
    assert m.world.own_resources == {"h1": [1, 2, 3, 4]}
    change(m, ("resource", "2", {"host": "n2"}))
    assert m.world.own_resources == {"h1": [1, 3, 4, 9]}
    change(m, ("resource", "10", {"host": "h1"}))
    assert m.world.own_resources == {}
