"""What the planner gave to an attempt: its cores, its list of hosts, its walltime."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.core.attempts.leases import Finished
from rota.errors import BadInput
from rota.launcher.affinity import on_cores
from rota.plan.site.bitset import spans_of
from rota.plan.size import Size
from rota.runner.start.cores import Cores
from rota.wire.messages import Allocation
from tests.runner.manager import FakeManager

CORES = sorted(os.sched_getaffinity(0))
#: An allocation counts the cores that the runner may use from 0.
LAST = str(len(CORES) - 1)
AFFINITY = "grep Cpus_allowed_list /proc/self/status | cut -f2"


def run(manager: FakeManager, command: str, allocation: Allocation | None, **fields: Any) -> Finished:
    spec = manager.spec(**fields)
    grant = manager.grant(manager._last_job + 1, command, spec)
    manager.work([msgspec.structs.replace(grant, allocation=allocation)], spec)
    return manager.wait_for([grant.job])[0]


def said(manager: FakeManager, command: str, allocation: Allocation | None, **fields: Any) -> list[str]:
    done = run(manager, command, allocation, **fields)
    assert done.outcome.exit_code == 0, (done.outcome, manager.output(done))
    return manager.output(done)[0].decode().splitlines()


def test_a_job_runs_on_its_cores_from_its_first_moment_and_knows_them(joined: FakeManager) -> None:
    core = str(CORES[-1])
    words = said(joined, f"{AFFINITY}; echo $ROTA_CPU_LIST; sh -c '{AFFINITY}'", Allocation(cpu_list=LAST))
    assert words == [core, core, core]


def test_the_next_job_has_its_own_cores_again(joined: FakeManager) -> None:
    whole = Size(cpus=100 * len(CORES))
    spec = joined.spec(size=whole)
    everything = spans_of(CORES)
    grants = [
        msgspec.structs.replace(joined.grant(job, AFFINITY, spec), allocation=allocation)
        for job, allocation in enumerate([None, Allocation(cpu_list="0"), None], 1)
    ]
    joined.work(grants, spec, seats=joined.seats(1, whole))
    ended = joined.wait_for([1, 2, 3])
    assert [joined.output(done)[0].decode().strip() for done in ended] == [everything, str(CORES[0]), everything]


def test_behaviours_run_on_its_cores_too(joined: FakeManager) -> None:
    core, file = str(CORES[-1]), joined.home / "behaved"
    behaviour = f"run: {{ {AFFINITY}; echo $ROTA_CPU_LIST; }} > {file}"
    run(joined, "true", Allocation(cpu_list=LAST), on_exit=(behaviour,))
    assert file.read_text().split() == [core, core]


def test_cores_that_are_not_there_do_not_keep_a_job_from_running(joined: FakeManager) -> None:
    for strange in ("65000", "x", "5-1"):
        assert said(joined, "echo ran $ROTA_CPU_LIST", Allocation(cpu_list=strange)) == [f"ran {strange}"]
        assert f"cannot be bound to cores {strange}" in joined.log()


def test_cores_are_counted_among_those_that_the_runner_may_use() -> None:
    cores = Cores({4, 6, 9}, of_host=16)
    assert cores.named("0,2") == {4, 9}
    with pytest.raises(BadInput, match="there are 3 here"):
        cores.named("3")


def test_whatever_happens_the_runner_keeps_its_own_cores() -> None:
    own = os.sched_getaffinity(0)

    def fail_to_start() -> int:
        assert os.sched_getaffinity(0) == {CORES[0]}
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        on_cores({CORES[0]}, fail_to_start)
    assert os.sched_getaffinity(0) == own


def test_a_nodefile_has_a_line_for_each_core_and_goes_with_the_job(joined: FakeManager) -> None:
    path, *lines = said(
        joined,
        "echo $ROTA_NODEFILE; cat $ROTA_NODEFILE; echo $ROTA_NODES",
        Allocation(nodes=(("n1", 2), ("n2", 1))),
    )
    assert lines == ["n1", "n1", "n2", "2"]
    joined.until(lambda: not Path(path).exists())


def test_a_job_with_its_own_directory_finds_nothing_of_rota_in_it(joined: FakeManager) -> None:
    allocation = Allocation(nodes=(("n1", 1),))
    *found, path = said(joined, "ls; echo $ROTA_NODEFILE", allocation, scratch=True)
    assert found == []
    joined.until(lambda: not Path(path).exists())
    assert not list((joined.home / "scratch").iterdir())


def test_without_an_allocation_no_hosts_are_named_and_the_runner_picks_the_cores(joined: FakeManager) -> None:
    words = "echo $ROTA_CPU_LIST; env | grep -c -e ROTA_NODEFILE -e ROTA_NODES"
    core = str(joined.picks()[0])
    assert said(joined, f"{words} || true", None) == [core, "0"]
    assert not (joined.home / "scratch").exists()
    spec = joined.spec()
    grant = joined.grant(50, f"{words} || true", spec)
    joined.work([grant], spec, env=b"PATH=/bin:/usr/bin\0ROTA_CPU_LIST=7\0ROTA_NODEFILE=/x\0ROTA_NODES=9")
    (done,) = joined.wait_for([50])
    assert joined.output(done)[0].split() == [core.encode(), b"0"], "not of the job that submitted it"


def test_its_walltime_is_that_of_the_request_that_was_chosen(joined: FakeManager) -> None:
    assert said(joined, "echo $ROTA_WALLTIME_S", Allocation(walltime_s=7200.0), walltime_s=60.0) == ["7200"]
    assert said(joined, "echo $ROTA_WALLTIME_S", Allocation(cpu_list=""), walltime_s=60.0) == ["60"]
    done = run(joined, "sleep 60", Allocation(walltime_s=0.2))
    assert (done.outcome.reason, done.outcome.message) == ("walltime", "over its walltime of 0.2 s")


def test_a_nodefile_of_a_runner_that_died_is_removed_by_its_successor(manager: FakeManager) -> None:
    process = manager.begin()
    spec = manager.spec()
    grant = manager.grant(1, f"echo $ROTA_NODEFILE > {manager.home}/where; sleep 600", spec)
    manager.work([msgspec.structs.replace(grant, allocation=Allocation(nodes=(("n1", 1),)))], spec)
    manager.until(lambda: manager.started)
    where = manager.home / "where"
    manager.until(lambda: where.exists() and where.read_text().endswith("\n"))
    path = Path(where.read_text().strip())
    assert path.read_text() == "n1\n"
    process.send_signal(signal.SIGKILL)
    process.wait()
    manager.hang_up()
    manager.begin()
    manager.until(lambda: manager.settles)
    assert not path.exists()
