"""Resources from records and hosts: what there is, how it is chosen, added, changed and removed."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rota.core.site.site_records import changed
from rota.errors import BadInput, NotFound
from rota.plan.site.inventory import HostChange, Inventory
from rota.plan.site.site_builder import own_ids, site_of
from rota.plan.size import Capacity

GIB = 1 << 30
HERE = {"here": Capacity(cpus=400, mem=8 * GIB, disk=GIB, gpus=1)}

Site = dict[str, dict[str, Any]]


def added(site: Site, hosts: list[str], *, cpus: int = 1, cores: int = 2, **more: Any) -> Site:
    inventory = Inventory.of(site, HERE)
    values = more.pop("values", {})
    changes = inventory.add(hosts, cpus=cpus, cores=cores, values=values, host=HostChange(**more))
    return changed(site, changes)


def spans(site: Site, *, connected: list[str] | None = None) -> tuple[str, str]:
    """All resources, and those that may be used, when these hosts are known."""
    capacity = {**HERE, **{host: Capacity(cpus=100, mem=GIB, disk=0) for host in connected or []}}
    made = site_of(site, capacity)
    return made.spans(made.everything), made.spans(made.usable)


def test_a_machine_alone_is_its_own_cores() -> None:
    made = site_of({}, HERE)
    assert made.levels == ("cluster", "switch", "host", "cpu", "core")
    assert made.spans(made.usable) == "1-4"
    assert [each.values for each in made.resources][:2] == [
        {"host": "here", "cpu": 1, "core": 1},
        {"host": "here", "cpu": 1, "core": 2},
    ]
    figures = made.figures["here"]
    assert (figures.mem, figures.disk, figures.gpus) == (8 * GIB, GIB, 1)


def test_ids_continue_after_the_largest_and_no_processor_spans_hosts() -> None:
    site = added({}, ["n1", "n2"], cpus=2, cores=2)
    assert sorted(site["resource"], key=int) == [str(n) for n in range(5, 13)]
    assert [site["resource"][str(n)] for n in (5, 6, 7, 8, 9)] == [
        {"host": "n1", "cpu": 5}, {"host": "n1", "cpu": 5}, {"host": "n1", "cpu": 7}, {"host": "n1", "cpu": 7},
        {"host": "n2", "cpu": 9},
    ]  # fmt: skip
    assert spans(site) == ("1-12", "1-4")


def test_only_what_is_alive_connected_and_not_draining_may_be_used() -> None:
    site = added({}, ["n1", "n2", "n3", "n4"])
    assert spans(site, connected=["n1", "n2", "n3"]) == ("1-12", "1-10")
    site = changed(site, [("host", "n1", {"drain": True}), ("host", "n2", {"state": "absent"})])
    assert spans(site, connected=["n1", "n2", "n3"]) == ("1-12", "1-4,9-10")
    assert site_of(site, HERE, connected=[]).usable == 0


def test_the_figures_of_a_record_go_before_those_of_a_runner() -> None:
    site = added({}, ["n1", "n2"], mem=64 * GIB, limits={"bigmem": 3})
    site = changed(site, [("host", "n2", {"available_until": 5000.0}), ("host", "here", {"gpus": 4})])
    capacity = {**HERE, "n1": Capacity(cpus=100, mem=GIB, disk=7)}
    made = site_of(site, capacity)
    n1, n2, here = (made.figures[host] for host in ("n1", "n2", "here"))
    assert (n1.mem, n1.disk, n1.limits) == (64 * GIB, 7, {"bigmem": 3})
    assert (n2.mem, n2.disk, n2.gpus) == (None, None, 0)
    assert (here.mem, here.gpus) == (8 * GIB, 4)
    assert {moment: made.spans(mask) for moment, mask in made.until.items()} == {5000.0: "7-8"}


def test_a_host_that_brought_its_own_cores_keeps_their_ids_when_it_is_added() -> None:
    site = added({}, ["n1", "here"], cpus=2, cores=2)
    assert {id for id, values in site["resource"].items() if values["host"] == "here"} == {"1", "2", "3", "4"}
    assert site["resource"]["3"] == {"host": "here", "cpu": 3}


def test_a_host_that_is_there_is_named_and_nothing_is_added() -> None:
    site = added({}, ["n1", "n2"])
    with pytest.raises(BadInput, match="host 'n2' is there already"):
        added(site, ["n3", "n2"])


@pytest.mark.parametrize(("cpus", "cores"), [(0, 1), (1, 0), (-1, 2), (1, 100_001), (1000, 1001)])
def test_numbers_out_of_range_are_refused(cpus: int, cores: int) -> None:
    with pytest.raises(BadInput):
        added({}, ["n1"], cpus=cpus, cores=cores)


def test_ten_thousand_resources_are_added_changed_and_removed_at_once() -> None:
    site = added({}, [f"n{n}" for n in range(625)], cpus=2, cores=8)
    inventory = Inventory.of(site, HERE)
    assert len(inventory.rows) == 10_004
    mine = inventory.select(where="host like 'n%'")
    assert len(mine) == 10_000
    site = changed(site, inventory.remove(mine))
    assert (site["resource"], site["host"]) == ({}, {})


# ------------------------------------------------------------------ choosing and changing


@pytest.fixture
def site() -> Site:
    made = changed({}, [("property", "gpu", {"type": "yesno"}), ("property", "speed", {"type": "integer"})])
    return added(made, ["n1", "n2"], values={"speed": 3})


def test_resources_are_chosen_by_host_by_id_and_by_property(site: Site) -> None:
    inventory = Inventory.of(site, HERE)
    assert inventory.select() == list(range(1, 9))
    assert inventory.select(hosts=["n2", "here"]) == [1, 2, 3, 4, 7, 8]
    assert inventory.select(hosts=["n2"], ids=[4, 5, 8]) == [8]
    assert inventory.select(where="speed >= 3 and core > 6") == [7, 8]
    with pytest.raises(NotFound, match=r"there is no host 'n\[3-4\]'"):
        inventory.select(hosts=["n1", "n3", "n4"])
    with pytest.raises(NotFound, match="there is no resource 9"):
        inventory.select(ids=[1, 9])
    with pytest.raises(BadInput, match="unknown property 'sped'"):
        inventory.select(where="sped = 3")


def test_values_are_typed_by_their_property(site: Site) -> None:
    inventory = Inventory.of(site, HERE)
    assert inventory.read_values(["gpu=yes", "speed=-7"]) == ({"gpu": True, "speed": -7}, [])
    for words in (["gpu=1"], ["speed=fast"], ["speed="], ["speed"], ["gpu=no", "gpu=no"], ["host=n3"], ["core=3"]):
        with pytest.raises(BadInput):
            inventory.read_values(words)
    with pytest.raises(BadInput, match="use --mem 64G"):
        inventory.read_values(["mem=64G"])
    with pytest.raises(BadInput, match="did you mean 'speed'"):
        inventory.read_values(["sped=3"])
    values, new = inventory.read_values(["rack=r1", "bays=4", "fast=no", "gpu=no"], create=True)
    assert values == {"rack": "r1", "bays": 4, "fast": False, "gpu": False}
    assert {name: value["type"] for _, name, value in new} == {"rack": "text", "bays": "integer", "fast": "yesno"}


def test_values_are_set_and_taken_away(site: Site) -> None:
    inventory = Inventory.of(site, HERE)
    site = changed(site, inventory.set([5, 7], values={"gpu": True}, without=["speed"], host=HostChange()))
    assert site["resource"]["5"] == {"host": "n1", "cpu": 5, "gpu": True}
    assert site["resource"]["6"] == {"host": "n1", "cpu": 5, "speed": 3}


def test_a_host_with_its_own_cores_is_written_down_when_one_of_them_gets_a_value(site: Site) -> None:
    inventory = Inventory.of(site, HERE)
    site = changed(site, inventory.set([2], values={"gpu": True}, without=[], host=HostChange()))
    assert [site["resource"][str(n)].get("gpu") for n in (1, 2, 3, 4)] == [None, True, None, None]
    assert own_ids(site, HERE, {}) == {}


def test_the_state_of_a_host_is_not_asked_for_a_part_of_it(site: Site) -> None:
    inventory = Inventory.of(site, HERE)
    with pytest.raises(BadInput, match="only 1 of 2 resources"):
        inventory.set([5, 6, 7], values={}, without=[], host=HostChange(drain=True))
    site = changed(site, inventory.set([1, 2, 3, 4, 5, 6], values={}, without=[], host=HostChange(drain=True)))
    assert site["host"] == {"n1": {"drain": True}, "n2": {}, "here": {"drain": True}}
    assert spans(site) == ("1-8", "")


def test_what_is_not_given_about_a_host_stays(site: Site) -> None:
    def given(**more: Any) -> Any:
        nonlocal site
        inventory = Inventory.of(site, HERE)
        site = changed(site, inventory.set([5, 6], values={}, without=[], host=HostChange(**more)))
        return site["host"]["n1"]

    assert given(mem=GIB, limits={"a": 1, "b": 2}) == {"mem": GIB, "limits": {"a": 1, "b": 2}}
    assert given(gpus=2, available_until=9.0) == {
        "mem": GIB, "gpus": 2, "limits": {"a": 1, "b": 2}, "available_until": 9.0,
    }  # fmt: skip
    assert given(mem=None, limits={"a": None}, available_until=None, gpus=0) == {"limits": {"b": 2}}


def test_a_host_goes_with_its_last_resource(site: Site) -> None:
    site = changed(site, Inventory.of(site, HERE).remove([5, 7, 8]))
    assert (sorted(site["resource"]), sorted(site["host"])) == (["6"], ["n1"])
    with pytest.raises(BadInput, match="brings its own"):
        Inventory.of(site, HERE).remove([1])


# ------------------------------------------------------------------ ids of hosts without records

HOSTS = st.dictionaries(st.sampled_from("abcd"), st.integers(1, 5), max_size=4)
TAKEN = st.dictionaries(st.integers(1, 20), st.sampled_from("mnab"), max_size=8)


@given(st.lists(st.tuples(HOSTS, TAKEN), min_size=1, max_size=5))
def test_own_ids_are_never_shared_and_stay_while_they_can(
    steps: list[tuple[dict[str, int], dict[int, str]]],
) -> None:
    own: dict[str, list[int]] = {}
    for hosts, resources in steps:
        records = {"resource": {str(id): {"host": host} for id, host in resources.items()}}
        capacity = {host: Capacity(cpus=100 * cores, mem=1, disk=1) for host, cores in hosts.items()}
        before, own = own, own_ids(records, capacity, own)
        everyone = [id for ids in own.values() for id in ids]
        assert len(set(everyone)) == len(everyone)
        assert not set(everyone) & set(resources)
        assert {host: len(ids) for host, ids in own.items()} == {
            host: cores for host, cores in hosts.items() if host not in resources.values()
        }
        for host, ids in before.items():
            if host in own and len(own[host]) == len(ids) and not set(ids) & set(resources):
                assert own[host] == ids
        assert own_ids(records, capacity, own) == own
