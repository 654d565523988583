"""A job over two nodes is suspended, resumed and signalled on both of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import CORES, Cluster, cluster

BOTH = [f"/host=2/core={CORES},walltime=1h"]
COUNT = "i=0; while :; do i=$((i+1)); echo $i > {name}.new; mv {name}.new {name}; sleep 0.05; done"


@pytest.fixture
def two(tmp_path: Path) -> Iterator[Cluster]:
    """Its witness is not asked: it takes whoever has begun and not ended for one that runs."""
    with cluster(tmp_path, hosts=2) as made:
        made.up()
        yield made


def counted(two: Cluster, name: str) -> int:
    path = two.work / name
    return int(path.read_text() or 0) if path.exists() else 0


def stand_still(two: Cluster, *names: str) -> bool:
    before = [counted(two, name) for name in names]
    time.sleep(0.5)
    return [counted(two, name) for name in names] == before


def test_a_job_over_two_nodes_stands_still_on_both_and_goes_on_on_both(two: Cluster) -> None:
    job = two.running(COUNT.format(name="first"), request=BOTH, retries=0)
    first = two.host_of(job)
    (other,) = (host for host in two.hosts if host is not first)
    left = f"setsid sh -c '{COUNT.format(name='second')}' > /dev/null 2>&1 &"
    two.ok("exec", str(job), "--node", other.name, "-n", "--", "sh", "-c", left)
    two.wait(lambda: counted(two, "first") and counted(two, "second"), "both count")
    two.ok("suspend", str(job))
    two.until(job, "suspended")
    assert stand_still(two, "first", "second")
    while_away = two.add("while ! test -e go; do sleep 0.05; done", request=BOTH, retries=0)
    two.until(while_away, "running")
    two.kill_manager()
    two.start()
    two.ok("resume", str(job))
    two.wait(lambda: (two.shown(job).reason or two.shown(while_away)).code == "resuming", "it waits")  # type: ignore[union-attr]
    assert stand_still(two, "first", "second")
    (two.work / "go").touch()
    two.until(job, "running")
    two.wait(lambda: not stand_still(two, "first"), "it goes on")
    two.wait(lambda: not stand_still(two, "second"), "there as well")
    two.ok("kill", str(job))
    two.until(job, "cancelled")
