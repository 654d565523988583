"""What jobs on four nodes are given, and what they leave behind, while nothing fails."""

from __future__ import annotations

import time
from collections import Counter

from tests.cluster.cluster import CORES, Cluster

#: Ends when the test says so.
_UNTIL = "while ! test -e {name}; do sleep 0.05; done"
#: Daemonises twice, ignores everything that can be ignored, and is in nobody's session.
_DAEMON = "setsid sh -c 'trap \"\" TERM HUP INT; (setsid sleep 321 &); (setsid sleep 321 &)'"


def test_agents_register_what_their_hosts_have(four: Cluster) -> None:
    with four.client() as client:
        nodes = {node.host: node for node in client.nodes()}
    for host in four.hosts:
        node = nodes[host.name]
        assert (node.state, node.connected, node.usable, node.cores) == ("alive", True, True, CORES)
        assert node.mem_bytes > 0
        assert node.disk_bytes > 0


def test_a_job_runs_on_a_node_and_its_output_comes_back(four: Cluster) -> None:
    job = four.add("uname -n; echo trouble >&2")
    four.until(job, "complete")
    (host,) = four.witness.hosts(job)
    assert four.ok("logs", str(job)) == f"{host}\n"
    assert four.shown(job).host == host


def test_many_short_jobs_use_all_nodes_and_never_more_than_their_cores(four: Cluster) -> None:
    jobs = four.add_all(["sleep 0.1"] * 60, retries=0)
    four.wait(four.all_ended, "all have ended")
    assert {four.state(job) for job in (jobs[0], jobs[-1])} == {"complete"}
    used = Counter(four.witness.hosts(*jobs))
    assert set(used) >= {host.name for host in four.hosts}, used
    four.judge()


def test_jobs_on_one_node_have_different_cores(four: Cluster) -> None:
    here = four.on(four.hosts[0])
    jobs = [four.running(_UNTIL.format(name="cores"), request=here) for _ in range(CORES)]
    waiting = four.add("true", request=here)
    seen = [line.cores for job in jobs for line in four.witness.of(job)]
    assert [len(cores) for cores in seen] == [1] * CORES
    assert len(frozenset().union(*seen)) == CORES
    assert four.state(waiting) == "ready"
    (four.work / "cores").touch()
    for job in (*jobs, waiting):
        four.until(job, "complete")


def test_after_a_job_that_left_daemons_its_node_is_clean_and_its_cores_are_free(four: Cluster) -> None:
    host = four.hosts[1]
    whole = four.on(host, cores=CORES)
    job = four.add(f"{_DAEMON}; sleep 0.3", request=whole)
    four.until(job, "complete")
    assert "sleep 321" not in four.commands_on(host)
    after = four.add("true", request=whole)
    four.until(after, "complete")
    four.judge()


def test_a_killed_job_that_ignores_it_leaves_nothing_on_its_node(four: Cluster) -> None:
    job = four.running(f"trap '' TERM; {_DAEMON}; sleep 321; sleep 321")
    host = four.host_of(job)
    four.wait(lambda: "sleep 321" in four.commands_on(host), "it has daemons")
    four.kill(job)
    four.until(job, "cancelled")
    assert "sleep 321" not in four.commands_on(host)


def test_a_draining_node_gets_nothing_new_and_what_runs_there_goes_on(four: Cluster) -> None:
    job = four.running(_UNTIL.format(name="drained"))
    host = four.host_of(job)
    four.ok("node", "set", host.name, "--drain")
    try:
        others = four.add_all(["sleep 0.05"] * 16, retries=0)
        for other in others:
            four.until(other, "complete")
        assert host.name not in four.witness.hosts(*others)
        assert four.state(job) == "running"
    finally:
        four.ok("node", "set", host.name, "--no-drain")
    (four.work / "drained").touch()
    four.until(job, "complete")


def test_before_the_end_of_a_nodes_time_only_what_fits_is_started_there(four: Cluster) -> None:
    host = four.hosts[2]
    (here,) = four.on(host)
    four.ok("node", "set", host.name, "--available-until", "now+10m")
    try:
        short = four.add("true", request=[f"{here},walltime=0:1:0"])
        four.until(short, "complete")
        long = four.add("true", request=[f"{here},walltime=1:0:0"])
        time.sleep(0.5)
        assert four.state(long) == "ready"
    finally:
        four.ok("node", "set", host.name, "--available-until", "never")
    four.until(long, "complete")


def test_jobs_over_several_nodes_see_them_all_and_hold_them_alone(four: Cluster) -> None:
    for count in (2, 4):
        job = four.add("sort $ROTA_NODEFILE | uniq -c", request=[f"nodes={count}"])
        four.until(job, "complete")
        listed = four.ok("logs", str(job)).split()
        assert listed[::2] == [str(CORES)] * count
        assert len(set(listed[1::2])) == count
        assert four.witness.hosts(job)[0] in listed[1::2]
    four.judge()
