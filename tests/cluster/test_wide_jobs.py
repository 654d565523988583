"""Jobs over two nodes as a whole: found by each, stopped on both, and run again when the first of them dies."""

from __future__ import annotations

import shlex
import time
from pathlib import Path
from typing import Any

from tests.cluster.cluster import CORES, Cluster
from tests.deployment import ROTA

_RSH = Path(ROTA).with_name("rota-rsh")
_BOTH: dict[str, Any] = {"request": ["nodes=2"]}
_UNTIL = "while ! test -e {name}; do sleep 0.05; done"


def _over_there(command: str) -> str:
    """Run this on the job's other node, from inside."""
    return f"{_RSH} $(uniq $ROTA_NODEFILE | tail -n 1) {shlex.quote(command)}"


def _grows(path: Path, *, seconds: float = 0.5) -> bool:
    before = path.stat().st_size if path.exists() else 0
    time.sleep(seconds)
    return path.exists() and path.stat().st_size > before


def test_when_the_first_node_dies_the_other_is_cleaned_before_the_next_attempt(two: Cluster) -> None:
    there = two.witness.command("sleep 323", role="part")
    job = two.running(f"test $ROTA_ATTEMPT -gt 1 || {_over_there(there)}", retries=1, **_BOTH)
    first = two.host_of(job)
    (other,) = (host for host in two.hosts if host is not first)
    two.wait(lambda: "sleep 323" in two.commands_on(other), "its other part runs")
    two.reboot(first)
    two.until(job, "complete")
    assert two.outcomes(job) == [("failed", "lost"), ("complete", None)]
    assert "sleep 323" not in two.commands_on(other)


def test_a_suspended_job_stands_still_on_all_its_nodes_while_others_use_their_cores(two: Cluster) -> None:
    here, there = two.work / "ticks-here", two.work / "ticks-there"
    tick = "while ! test -e ticked; do echo >> {}; sleep 0.05; done"
    # It has its cores not all the time, which a witness would not understand.
    (job,) = two.put([f"{_over_there(tick.format(there))} & {tick.format(here)}; wait"], **_BOTH)
    two.wait(lambda: _grows(here) and _grows(there), "both tick")
    with two.client() as client:
        client.suspend(job)
    two.until(job, "suspended")
    assert not _grows(here)
    assert not _grows(there)
    others = [two.running(_UNTIL.format(name="others")) for _ in range(CORES + 1)]
    with two.client() as client:
        client.resume(job)
    time.sleep(0.5)
    assert two.state(job) == "suspended", "others have its cores"
    (two.work / "others").touch()
    for other in others:
        two.until(other, "complete")
    two.until(job, "running")
    two.wait(lambda: _grows(here) and _grows(there), "both tick again")
    (two.work / "ticked").touch()
    two.until(job, "complete")


def test_a_job_is_found_by_each_of_its_nodes_while_it_runs_and_afterwards(two: Cluster) -> None:
    job = two.running(_UNTIL.format(name="found"), **_BOTH)
    names = [host.name for host in two.hosts]
    shown = two.shown(job)
    assert (shown.host, sorted(shown.hosts)) == (shown.hosts[0], sorted(names))

    def on(name: str) -> list[int]:
        with two.client() as client:
            return [each.id for each in client.jobs(f"{job},host={name}").jobs]

    assert [on(name) for name in names] == [[job], [job]]
    (two.work / "found").touch()
    two.until(job, "complete")
    assert [on(name) for name in names] == [[job], [job]]
