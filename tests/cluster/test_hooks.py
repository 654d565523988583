"""Hooks of the site and jobs that run elsewhere, on several nodes: a node that is unfit keeps nobody waiting."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import CORES, Cluster, cluster
from tests.cluster.hosts import Host

BOTH = [f"/host=2/core={CORES}"]
#: Which nodes are fit is written in a file for each that is not.
_PROLOGUE = """
echo "prologue $ROTA_JOB_ID $(uname -n)" >> $W/hooks
test ! -e $W/unfit.$(uname -n) || { echo no disk on $(uname -n); exit 1; }
"""
_EPILOGUE = 'echo "epilogue $ROTA_JOB_ID $(uname -n)" >> $W/hooks'
_FENCE = "test -e $W/off.$1"
_HEAL = "test ! -e $W/unfit.$1"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes with all hooks."""
    top = tmp_path_factory.mktemp("hooks")
    work = top / "work"
    work.mkdir()
    paths = {
        name: script(top / name, f"W={work}\n{text}")
        for name, text in {
            "prologue": _PROLOGUE, "epilogue": _EPILOGUE, "fence_cmd": _FENCE, "heal_cmd": _HEAL,
        }.items()
    }  # fmt: skip
    more = {"heal_every": "1s", "deploy_host": "n3", "reservation_patience": "1s"}
    with cluster(top, hosts=3, **paths, **more) as made:
        made.up()
        yield made
        made.judge()


def script(path: Path, text: str) -> str:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return str(path)


def hooks_of(cluster: Cluster, job: int) -> list[tuple[str, str]]:
    """What ran for a job, and where."""
    lines = (line.split() for line in (cluster.work / "hooks").read_text().splitlines())
    return [(hook, node) for hook, id, node in lines if int(id) == job]


def unfit(cluster: Cluster, name: str) -> Path:
    path = cluster.work / f"unfit.{name}"
    path.touch()
    return path


def test_every_node_of_a_job_has_its_prologue_and_its_epilogue(site: Cluster) -> None:
    job = site.add("true", request=BOTH, retries=0)
    site.until(job, "complete")
    ran = hooks_of(site, job)
    nodes = {node for _hook, node in ran}
    assert len(nodes) == 2
    assert sorted(ran) == sorted((hook, node) for hook in ("prologue", "epilogue") for node in nodes)
    # All prologues before the first epilogue: the command ran in between.
    assert [hook for hook, _node in ran] == ["prologue"] * 2 + ["epilogue"] * 2


def chosen(site: Cluster, request: list[str]) -> list[Host]:
    """The nodes that such a job is given while all are idle: which these are depends on who joined first."""
    job = site.add("true", request=request, retries=0)
    site.until(job, "complete")
    nodes = {node for _hook, node in hooks_of(site, job)}
    return [host for host in site.hosts if host.name in nodes]


def test_a_job_runs_elsewhere_when_the_prologue_of_its_node_fails(site: Cluster) -> None:
    (first,) = chosen(site, [f"core={CORES}"])
    mark = unfit(site, first.name)
    job = site.add("true", request=[f"core={CORES}"], retries=0)
    site.until(job, "complete")
    site.until_node(first, "suspected")
    assert site.host_of(job) is not first
    found = site.node(first)
    assert found is not None
    assert f"no disk on {first.name}" in found.why
    others = site.add_all(["true"] * 6, request=["core=1"], retries=0)
    for other in others:
        site.until(other, "complete")
        assert site.host_of(other) is not first
    mark.unlink()  # the site's own check finds it well
    site.until_node(first, "alive")
    again = site.add("true", request=site.on(first), retries=0)
    site.until(again, "complete")


def test_a_wide_job_runs_on_other_nodes_when_one_of_its_own_is_unfit(site: Cluster) -> None:
    second = chosen(site, BOTH)[1]
    mark = unfit(site, second.name)
    job = site.add("true", request=BOTH, retries=0)
    site.until(job, "complete")
    site.until_node(second, "suspected")
    last = {node for hook, node in hooks_of(site, job)[-2:] if hook == "epilogue"}
    assert len(last) == 2
    assert second.name not in last
    mark.unlink()
    site.until_node(second, "alive")


def test_a_deploy_job_holds_two_nodes_and_runs_on_the_third_without_a_core_of_it(site: Cluster) -> None:
    held, there = site.hosts[:2], site.hosts[2]
    names = " or ".join(f"host='{host.name}'" for host in held)
    word = (
        "sort -u $ROTA_NODEFILE > listed.new; mv listed.new listed; while ! test -e deployed; do sleep 0.05; done"
    )
    request = [f"{{{names}}}/host=2/core={CORES}"]
    (job,) = site.put([f"uname -n > ran_on; {word}"], request=request, type=["deploy"], retries=0)
    site.until(job, "running")
    site.wait((site.work / "listed").exists, "it runs")
    assert (site.work / "ran_on").read_text().split() == [there.name]
    assert (site.work / "listed").read_text().split() == [host.name for host in held]
    full = site.add("true", request=site.on(there, cores=CORES), retries=0)
    site.until(full, "complete")
    waiting = site.add("true", request=site.on(held[0]), retries=0)
    assert site.state(waiting) == "ready"
    (site.work / "deployed").touch()
    site.until(job, "complete")
    site.until(waiting, "complete")
    assert hooks_of(site, job) == [("prologue", there.name), ("epilogue", there.name)]


def test_lost_jobs_end_when_their_node_is_proven_to_be_off(site: Cluster) -> None:
    host = site.hosts[0]
    once = site.running("sleep 600", request=site.on(host), retries=0)
    again = site.add("while ! test -e fenced; do sleep 0.05; done", request=["core=1"], retries=0)
    site.until(again, "running")
    site.crash(host)
    site.until(once, "lost")
    time.sleep(1.5)  # the script has been asked, and knew nothing
    assert site.state(once) == "lost"
    (site.work / f"off.{host.name}").touch()
    site.until(once, "failed")
    shown = site.shown(once)
    assert shown.reason is not None
    assert shown.reason.code == "lost"
    site.until_node(host, "dead")
    (site.work / f"off.{host.name}").unlink()
    site.boot(host)
    site.until_node(host, "alive")
    (site.work / "fenced").touch()
    site.until(again, "complete", "failed")


def test_a_reservation_of_all_nodes_begins_on_those_that_are_there(site: Cluster) -> None:
    host = site.hosts[1]
    at = int(time.time()) + 8
    word = "sort -u $ROTA_NODEFILE | tr '\\n' ' ' > reserved"
    (job,) = site.put([word], request=[f"/host=3/core={CORES},walltime=0:5:0"], at=f"@{at}", retries=0)
    site.kill_agent(host)
    site.until(job, "complete")
    assert (site.work / "reserved").read_text().split() == [each.name for each in site.hosts if each is not host]
    assert site.shown(job).attempt == 1
    site.start_agent(host)
    site.until_node(host, "alive")
