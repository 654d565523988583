"""`rota resource`: add, list, set and remove, against a real manager."""

from __future__ import annotations

import json
import socket
from typing import Any

import pytest

import rota
from rota.errors import Denied
from tests.deployment import Deployment, deployment, wait_until


def listed(made: Deployment, *args: str) -> Any:
    return json.loads(made.ok("resource", "list", *args, "--json"))


def host(made: Deployment, name: str) -> Any:
    (found,) = listed(made, "--hosts", name)["hosts"]
    return found


def refused(made: Deployment, *args: str) -> str:
    done = made.rota("resource", *args)
    assert done.returncode in (2, 3), done
    assert done.stderr.startswith("rota: ")
    assert done.stderr.count("\n") == 1
    return done.stderr


def test_the_machine_itself_brings_its_cores(shared: Deployment) -> None:
    here = socket.gethostname()
    wait_until(lambda: host(shared, here)["connected"], "the runner is connected")
    found = host(shared, here)
    assert found["own"]
    assert found["usable"]
    assert found["ids"].startswith("1")
    assert found["mem_bytes"] > 0
    assert found["properties"] == {}


def test_hosts_that_are_alike_are_one_line(shared: Deployment) -> None:
    out = shared.ok("resource", "add", "--hosts", "n[001-010]", "--cpus", "2", "--cores", "4", "--mem", "64G")
    assert out.startswith("added 80 resources on 10 hosts: ")
    lines = shared.ok("resource", "list", "--hosts", "n[001-010]").splitlines()
    assert [line.split() for line in lines[1:]] == [["n[001-010]", "80", "64G", "any", "no", "runner"]]
    shared.ok("resource", "set", "--hosts", "n003", "--drain", "--gpus", "2")
    lines = shared.ok("resource", "list", "--hosts", "n[001-010]").splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["n[001-002,004-010]", "72"], ["n003", "8"]]
    assert "draining" in lines[2]
    assert shared.ok("resource", "list", "--hosts", "n[002-003]", "--quiet") == "n002\nn003\n"
    each = shared.ok("resource", "list", "--hosts", "n002", "--each").splitlines()
    assert len(each) == 9
    cpus = [row["cpu"] for row in listed(shared, "--hosts", "n002")["resources"]]
    assert [cpus.count(cpu) for cpu in sorted(set(cpus))] == [4, 4]


def test_a_host_that_is_there_is_named_and_nothing_is_added(shared: Deployment) -> None:
    shared.ok("resource", "add", "--hosts", "e5", "--cores", "1")
    before = listed(shared)
    assert "host 'e5' is there already" in refused(shared, "add", "--hosts", "e[1-9]", "--cores", "1")
    assert "there is no property 'colour'" in refused(
        shared, "add", "--hosts", "e6", "--cores", "1", "--set", "colour=red"
    )
    assert listed(shared) == before


def test_properties_are_set_by_host_by_id_and_by_expression(shared: Deployment) -> None:
    shared.ok(
        "resource", "add", "--hosts", "s[1-3]", "--cores", "2", "--set", "rack=r 1", "--set", "u=4", "--create"
    )
    ids = {name: host(shared, name)["ids"] for name in ("s1", "s2", "s3")}
    assert shared.ok("resource", "set", "--ids", ids["s2"], "rack=r2") == "changed 2 resources on 1 host\n"
    shared.ok("resource", "set", "--where", "rack = 'r2'", "u=-5")
    assert host(shared, "s2")["properties"] == {"rack": ["r2"], "u": [-5]}
    shared.ok("resource", "set", "--hosts", "s2", "rack=")
    assert host(shared, "s2")["properties"] == {"u": [-5]}
    assert [each["host"] for each in listed(shared, "--where", "u = 4 and rack = 'r 1'")["hosts"]] == ["s1", "s3"]
    assert listed(shared, "--where", "u = 77") == {"hosts": [], "resources": []}
    assert "no resource is like that" in refused(shared, "set", "--where", "u = 77", "u=1")
    assert "unknown property 'rak'" in refused(shared, "set", "--where", "rak = 1", "u=1")
    assert "'four' is not a whole number" in refused(shared, "set", "--hosts", "s1", "u=four")


def test_the_figures_of_hosts_are_set_and_taken_back(shared: Deployment) -> None:
    shared.ok("resource", "add", "--hosts", "f1", "--cores", "2", "--mem", "1.5G", "--disk", "2T", "--gpus", "4",
              "--limit", "bigmem:3", "--state", "absent")  # fmt: skip
    found = host(shared, "f1")
    assert (found["mem_bytes"], found["disk_bytes"], found["gpus"]) == (3 << 29, 2 << 40, 4)
    assert (found["limits"], found["state"], found["usable"]) == ({"bigmem": 3}, "absent", False)
    back = ["--mem", "none", "--limit", "bigmem:unlimited", "--state", "alive"]
    shared.ok("resource", "set", "--hosts", "f1", *back, "--available-until", "2099-01-01T00:00:00Z")
    found = host(shared, "f1")
    assert (found["mem_bytes"], found["limits"], found["state"]) == (None, {}, "alive")
    assert found["available_until"] == "2099-01-01T00:00:00Z"
    shared.ok("resource", "set", "--hosts", "f1", "--available-until", "never")
    assert host(shared, "f1")["available_until"] is None
    first = found["ids"].partition("-")[0]
    assert "only 1 of 2 resources" in refused(shared, "set", "--ids", first, "--drain")


def test_removed_resources_are_gone_and_their_ids_are_not_given_out_again(shared: Deployment) -> None:
    shared.ok("resource", "add", "--hosts", "r[1-2]", "--cores", "2")
    shared.ok("resource", "add", "--hosts", "r3", "--cores", "2")
    last = int(host(shared, "r3")["ids"].partition("-")[2])
    assert shared.ok("resource", "remove", "--hosts", "r[1-2]") == "removed 4 resources\n"
    assert "there is no host 'r[1-2]'" in refused(shared, "list", "--hosts", "r[1-2]")
    shared.ok("resource", "add", "--hosts", "r1", "--cores", "2")
    assert host(shared, "r1")["ids"] == f"{last + 1}-{last + 2}"


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["set", "u=1"], "say which resources"),
        (["set", "--hosts", "n1"], "say what to change"),
        (["remove"], "say which resources"),
        (["remove", "--hosts", "nowhere"], "there is no host 'nowhere'"),
        (["remove", "--ids", "999999"], "there is no resource 999999"),
        (["remove", "--ids", "1-x"], "is not a number or a range"),
        (["list", "--hosts", "n[1"], "column 2: the bracket is not closed"),
        (["list", "--where", "host ="], "column"),
        (["add", "--hosts", "", "--cores", "1"], "the list of hosts is empty"),
        (["add", "--hosts", "x[1-9999999]", "--cores", "1"], "more than 1,000,000"),
        (["add", "--hosts", "x[1-10001]", "--cores", "10"], "more than 100,000 resources"),
        (["add", "--hosts", "x", "--cores", "0"], "--cores 0 is out of range"),
        (["add", "--hosts", "x", "--cores", "1", "--mem", "64"], "--mem: '64' has no unit"),
        (["add", "--hosts", "x", "--cores", "1", "--set", "mem=64G"], "use --mem 64G"),
        (["add", "--hosts", "x", "--cores", "1", "--set", "host=y"], "property 'host' is built in"),
        (["add", "--hosts", "x", "--cores", "1", "--limit", "a@22:00-06:00"], "needs a number of units"),
        (["set", "--hosts", "x", "--available-until", "soon"], "--available-until: 'soon' is not a time"),
    ],
)
def test_what_cannot_be_is_refused_in_one_line(shared: Deployment, args: list[str], words: str) -> None:
    assert words in refused(shared, *args)


def test_only_an_administrator_changes_the_site_and_everybody_sees_it(shared: Deployment) -> None:
    token = json.loads(shared.ok("manager", "token", "add", "reader", "--role", "user", "--json"))["token"]
    address = json.loads((shared.home / "manager.json").read_bytes())["address"]
    with rota.connect(shared.home, address=address, token=token) as client:
        assert client.site("host").version > 0
        with pytest.raises(Denied):
            client.set_site([("queue", "mine", {})])


def test_the_site_is_the_same_after_a_restart_and_in_a_backup(tmp_path_factory: pytest.TempPathFactory) -> None:
    top = tmp_path_factory.mktemp("site")
    with deployment(top / "one", grace="1s") as made:
        made.start()
        made.ok("resource", "add", "--hosts", "n[001-625]", "--cpus", "2", "--cores", "8", "--set", "switch=s1")
        made.ok("resource", "set", "--hosts", "n001", "--drain")
        before = listed(made, "--hosts", "n[001-625]")
        assert len(before["resources"]) == 10_000
        made.ok("manager", "backup", str(top / "backup.db"))
        made.ok("manager", "stop")
        made.start()
        assert listed(made, "--hosts", "n[001-625]") == before
        made.ok("manager", "stop", "--kill")
    with deployment(top / "two", grace="1s") as other:
        other.ok("manager", "restore", str(top / "backup.db"), "--yes")
        other.start()
        assert listed(other, "--hosts", "n[001-625]") == before
        other.ok("manager", "stop", "--kill")


def test_two_who_add_at_once_both_succeed_with_different_ids(shared: Deployment) -> None:
    adding = [
        shared.popen("resource", "add", "--hosts", f"c{n}x[1-20]", "--cores", "4", "--quiet") for n in range(4)
    ]
    assert [process.wait(60) for process in adding] == [0, 0, 0, 0]
    rows = listed(shared, "--where", "host like 'c%x%'")["resources"]
    assert len({row["id"] for row in rows}) == 4 * 20 * 4
