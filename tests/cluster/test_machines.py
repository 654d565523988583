"""Cases of machines and gangs, with a real manager and real agents on hosts of their own."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import count

import pytest

from rota.errors import BadInput
from tests.cluster.lab import HOLDING, Lab, lab_of, on
from tests.deployment import ROTA

_names = count(1)


@pytest.fixture(scope="module")
def machines(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab_of(tmp_path_factory.mktemp("lab"), gang_patience="1s") as made:
        yield made


@pytest.fixture
def lab(machines: Lab) -> Iterator[Lab]:
    """Three idle machines: n1, n2 and n3."""
    yield machines
    machines.clear()


def new_name() -> str:
    return f"gang-{next(_names)}"


def usages(lab: Lab, host: str) -> list[str]:
    """What this machine was used for, oldest first."""
    with lab.client() as client:
        return [each.usage for each in reversed(client.node(host).history)]


def test_a_job_starts_on_an_idle_machine_without_waiting_for_any_tick(lab: Lab) -> None:
    job = lab.job("n1")
    lab.until(job, "complete")
    shown = lab.shown(job)
    assert shown.scheduled_at == shown.submitted_at, "it was placed in the transaction that added it"


def test_a_machine_goes_from_one_job_to_the_next_and_nobody_sees_it_idle(lab: Lab) -> None:
    gates = [lab.gate() for _ in range(3)]
    jobs = [lab.job("n1", gate=gate) for gate in gates]
    before = len(usages(lab, "n1"))
    for job, gate in zip(jobs, gates, strict=True):
        lab.until(job, "running")
        assert [lab.state(each) in HOLDING for each in jobs].count(True) == 1
        if job != jobs[-1]:
            gate.touch()
    assert "idle" not in usages(lab, "n1")[before:]
    gates[-1].touch()
    lab.until(jobs[-1], "complete")
    assert lab.witness.hosts(*jobs) == ["n1"] * 3


def test_who_can_only_have_the_busy_machine_gets_it_before_later_ones_that_could_have_both(lab: Lab) -> None:
    first, rest = lab.gate(), lab.gate()
    busy = lab.job("n1", gate=first)
    lab.until(busy, "running")
    one = lab.job("n1", gate=rest)
    two = lab.job("n1", "n2", gate=rest)
    three = lab.job("n1", "n2", gate=rest)
    lab.until(two, "running")
    assert lab.shown(two).host == "n2"
    first.touch()
    lab.until(one, "running")
    assert (lab.shown(one).host, lab.state(three)) == ("n1", "ready")
    rest.touch()
    lab.until(three, "complete")


def test_who_waits_goes_before_a_newcomer_of_equal_priority_when_a_machine_is_released(lab: Lab) -> None:
    first, rest = lab.gate(), lab.gate()
    busy = lab.job("n1", gate=first)
    waits = lab.job("n1", gate=rest)
    lab.until(busy, "running")
    words = ["add", "--quiet", "-l", on("n1")["request"][0], "--", "true"]
    with lab.still_manager():
        first.touch()
        lab.wait(lambda: lab.witness.seen(busy) == ["start", "end"], "the machine is released")
        newcomer = lab.popen(*words, stdout=subprocess.PIPE)
    out, _ = newcomer.communicate(timeout=120)
    lab.until(waits, "running")
    assert lab.state(int(out)) == "ready"
    rest.touch()
    lab.until(int(out), "complete")


def test_a_waiting_job_starts_on_a_machine_that_is_repaired(lab: Lab) -> None:
    lab.set("n2", condition="broken", reason="no fan")
    job = lab.job("n2")
    gang = lab.gang(name := new_name(), "n1", "n2")
    assert lab.state(job) == "ready"
    assert not lab.is_whole(name)
    lab.set("n2", condition="automated")
    lab.until(job, "complete")
    for member in gang:
        lab.until(member, "complete")


def test_a_waiting_job_starts_on_a_machine_that_is_added(lab: Lab) -> None:
    new = lab.named("n3")
    lab.kill_agent_and_launchers(new)
    lab.wait(lambda: lab.rota("node", "remove", "n3").returncode == 0, "it is no node any more")
    job = lab.job("n3", allow_unsatisfiable=True)
    gang = lab.gang(name := new_name(), "n1", "n3", allow_unsatisfiable=True)
    assert (lab.state(job), lab.is_whole(name)) == ("ready", False)
    lab.start_agent(new)
    lab.until(job, "complete")
    for member in gang:
        lab.until(member, "complete")


@pytest.mark.parametrize("condition", ["manual", "broken"])
def test_a_machine_that_is_not_automated_is_only_taken_by_force(lab: Lab, condition: str) -> None:
    lab.set("n1", condition=condition)
    job, forced = lab.job("n1"), lab.add("true", force_host="n1")
    lab.until(forced, "complete")
    assert lab.witness.hosts(forced) == ["n1"]
    assert lab.state(job) == "ready"


def test_an_unknown_property_is_refused_and_never_a_wider_match(lab: Lab) -> None:
    before = len(lab.states())
    for fields in (
        {"where": "colour = 'red'"},
        {"prefer": "colour = 'red'"},
        {"gang": "g", "gang_same": "colour"},
    ):
        with pytest.raises(BadInput, match="colour"):
            lab.put(["true"], **fields)
    assert len(lab.states()) == before


def test_abba_one_of_two_gangs_starts_whole_and_then_the_other(lab: Lab) -> None:
    first, rest = lab.gate(), lab.gate()
    busy = lab.job("n1", gate=first)
    lab.until(busy, "running")
    low, high = new_name(), new_name()
    lab.gang(low, "n1", "n2", gate=rest)
    lab.gang(high, "n1", "n2", gate=rest, priority=5)
    assert not lab.is_whole(low)
    assert not lab.is_whole(high)
    waiting = lab.gang_now(high)
    assert waiting.missing == [waiting.members[0].id], "the one whose machine is busy"
    first.touch()
    lab.wait(lambda: lab.is_whole(high), "the first is whole")
    assert not lab.is_whole(low)
    rest.touch()
    assert lab.until_ended(high) == lab.until_ended(low) == ["complete"] * 2


def test_a_gang_starts_while_small_jobs_keep_arriving_for_its_machines(lab: Lab) -> None:
    stop = threading.Event()

    def keep_arriving() -> None:
        while not stop.wait(0.1):
            for host in ("n1", "n2"):
                lab.put(["sleep 0.3"], request=[f"{{host='{host}'}}/host=1,walltime=3s"], retries=0)

    arriving = threading.Thread(target=keep_arriving)
    arriving.start()
    try:
        lab.wait(lambda: len(lab.states("state=ready")) > 2, "small jobs wait")
        gang = lab.gang(name := new_name(), "n1", "n2")
        assert lab.until_ended(name) == ["complete"] * 2
        assert lab.states("state=ready"), "small jobs wait that would have gone before it"
    finally:
        stop.set()
        arriving.join()
    assert sorted(lab.witness.hosts(*gang)) == ["n1", "n2"]


@pytest.mark.parametrize("where", ["on the machine", "by a command of the site"])
def test_a_gang_whose_member_fails_in_provisioning_is_released_and_retried_elsewhere(lab: Lab, where: str) -> None:
    script = lab.work / f"install-{len(where)}"
    script.write_text(f"#!/bin/sh\ntest $ROTA_HOST != n1 && exec {ROTA} node ready --ticket $ROTA_TICKET\n")
    script.chmod(0o755)
    here = where == "on the machine"
    if not here:
        lab.set("n1", "n2", "n3", provision_cmd=str(script))
    provision = 'test "$(uname -n)" != n1' if here else "debian"
    gang = lab.gang(name := new_name(), "n1,n3", "n2", provision=provision, prefer="host = 'n1'", retries=1)
    assert lab.until_ended(name) == ["complete"] * 2
    assert sorted(lab.hosts_of(name)) == ["n2", "n3"]
    assert sorted(lab.witness.hosts(*gang)) == ["n2", "n3"], "nobody ran before all machines were ready"
    assert lab.outcomes(gang[0])[0] == ("failed", "provision")


def test_the_time_of_a_machine_is_split_without_a_gap(lab: Lab) -> None:
    lab.set("n1", condition="broken")
    lab.set("n1", condition="automated")
    with lab.client() as client:
        client.reserve_machine("n1", seconds=600)
        client.return_machine("n1")
    lab.until(lab.job("n1"), "complete")
    lab.until_free()
    found = lab.json("node", "usage", "n1", "--from", "-1h")
    parts = {(row["condition"], row["usage"]): row["seconds"] for row in found["rows"]}
    assert {("broken", "idle"), ("manual", "running"), ("automated", "running"), ("automated", "idle")} <= set(
        parts
    )
    begin, end = (datetime.fromisoformat(found[name]) for name in ("from", "to"))
    assert sum(round(seconds * 1_000_000) for seconds in parts.values()) == (end - begin) // timedelta(
        microseconds=1
    )


def test_a_gang_that_is_cancelled_while_it_is_placed_runs_whole_or_holds_nothing(lab: Lab) -> None:
    race(lab, times=3)


@pytest.mark.slow
def test_many_gangs_that_are_cancelled_while_they_are_placed_run_whole_or_hold_nothing(lab: Lab) -> None:
    race(lab, times=60)


def race(lab: Lab, *, times: int) -> None:
    """Cancel gangs at the moment when the machine that they wait for is released."""
    for _ in range(times):
        first, rest = lab.gate(), lab.gate()
        lab.until(lab.job("n1", gate=first), "running")
        gang = lab.gang(name := new_name(), "n1", "n2", gate=rest)
        cancelling = threading.Thread(target=lab.kill, args=(gang[0],))
        cancelling.start()
        first.touch()
        cancelling.join()
        rest.touch()
        states = lab.until_ended(name)
        assert len(set(states)) == 1 or set(states) <= {"cancelled", "failed"}, states
        lab.until_free()
