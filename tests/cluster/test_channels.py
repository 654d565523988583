"""Commands on the nodes of a job, from outside and from inside, MPI among them; terminals on nodes."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, cluster
from tests.deployment import ROTA
from tests.typist import typing_in

RSH = str(Path(ROTA).with_name("rota-rsh"))

_RING = r"""
#include <mpi.h>
#include <stdio.h>
int main(int argc, char **argv) {
    int rank, size, sum, length;
    char name[MPI_MAX_PROCESSOR_NAME];
    MPI_Init(&argc, &argv);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &size);
    MPI_Get_processor_name(name, &length);
    MPI_Allreduce(&rank, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    printf("%d of %d on %s, sum %d\n", rank, size, name, sum);
    MPI_Finalize();
    return 0;
}
"""


@pytest.fixture(scope="module")
def nodes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Three nodes that work."""
    with (
        tempfile.TemporaryDirectory() as short,
        cluster(tmp_path_factory.mktemp("channels"), hosts=3, interactive_grace="30s") as made,
    ):
        made.env |= {"SHELL": "/bin/sh", "PS1": "inside> ", "OMPI_ALLOW_RUN_AS_ROOT": "1"}
        made.env |= {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        made.env |= {"TMPDIR": short}  # killed MPI jobs leave files there, and sockets need a short path
        made.up()
        yield made


def _on(count: int, *, cores: int = 1) -> list[str]:
    return ["-l", f"nodes={count}/core={cores},walltime=10m"]


def _wide(nodes: Cluster, count: int, command: str = "sleep 1000") -> int:
    """A job on so many nodes, which runs."""
    (job,) = nodes.json("add", *_on(count), "--retries", "0", "--", command)["added"]
    nodes.until(job, "running")
    return int(job)


def _ended(nodes: Cluster, job: int) -> None:
    nodes.ok("kill", str(job))
    nodes.until(job, "cancelled")


def test_a_command_runs_on_the_node_that_is_named_or_counted(nodes: Cluster) -> None:
    job = _wide(nodes, 2)
    listed = nodes.ok("exec", str(job), "--", "sh", "-c", "cat $ROTA_NODEFILE").split()
    for place, host in enumerate(listed):
        assert nodes.ok("exec", str(job), "--node", host, "--", "uname", "-n") == f"{host}\n"
        assert nodes.ok("exec", str(job), "--node", str(place), "--", "uname", "-n") == f"{host}\n"
        there = nodes.ok(
            "exec", str(job), "--node", host, "--", "sh", "-c", "echo $ROTA_JOB_ID; cat $ROTA_NODEFILE"
        )
        assert there.split() == [str(job), *listed]
    (other,) = {host.name for host in nodes.hosts} - set(listed)
    refused = nodes.rota("exec", str(job), "--node", other, "--", "id")
    assert refused.returncode == 3
    assert f"job {job} has no node '{other}'" in refused.stderr
    _ended(nodes, job)


def test_what_was_started_on_another_node_ends_with_the_job(nodes: Cluster) -> None:
    job = _wide(nodes, 2)
    daemon = "setsid sh -c \"trap '' TERM HUP; (setsid sleep 4321 &)\"; echo started"
    assert nodes.ok("exec", str(job), "--node", "1", "--", "sh", "-c", daemon) == "started\n"
    listed = nodes.ok("exec", str(job), "--", "sh", "-c", "cat $ROTA_NODEFILE").split()
    far = next(host for host in nodes.hosts if host.name == listed[1])
    assert "sleep 4321" in nodes.commands_on(far)
    _ended(nodes, job)
    assert "sleep 4321" not in nodes.commands_on(far)


def test_a_job_reaches_all_its_nodes_from_any_of_them(nodes: Cluster) -> None:
    loop = f"for b in $(cat $ROTA_NODEFILE); do {RSH} $a {RSH} $b uname -n; done"
    script = f"for a in $(cat $ROTA_NODEFILE); do {loop}; done"
    seen = nodes.ok("run", *_on(3), "--", script).split()
    assert sorted(seen) == sorted([host.name for host in nodes.hosts] * 3)


def test_a_job_reaches_no_node_of_another(nodes: Cluster) -> None:
    done = nodes.rota("run", *_on(1), "--", f"for n in n1 n2 n3; do {RSH} $n uname -n; done; exit 0")
    assert len(done.stdout.split()) == 1
    assert done.stderr.count("has no node") == 2


@pytest.mark.parametrize("options", ["", f"--mca plm_rsh_agent {RSH} --hostfile $ROTA_NODEFILE"])
def test_an_mpi_program_runs_on_the_cores_of_its_nodes(nodes: Cluster, options: str) -> None:
    program = _ring(nodes)
    seen = nodes.ok("run", *_on(2, cores=2), "--", f"mpirun {options} {program}")
    lines = sorted(seen.splitlines())
    assert [line.partition(" on ")[0] for line in lines] == [f"{rank} of 4" for rank in range(4)]
    hosts = [line.split()[4].rstrip(",") for line in lines]
    assert len(set(hosts)) == 2
    assert [hosts.count(host) for host in set(hosts)] == [2, 2]
    assert all(line.endswith("sum 6") for line in lines)


def test_a_killed_mpi_job_leaves_nothing_on_any_node(nodes: Cluster) -> None:
    job = _wide(nodes, 3, "mpirun sleep 4322")
    nodes.wait(
        lambda: all("sleep 4322" in nodes.commands_on(host) for host in nodes.hosts), "it runs on all three nodes"
    )
    _ended(nodes, job)
    for host in nodes.hosts:
        left = nodes.commands_on(host)
        assert not any("4322" in line or "orted" in line for line in left), left


def _ring(nodes: Cluster) -> Path:
    program = nodes.work / "ring"
    if not program.exists():
        (nodes.work / "ring.c").write_text(_RING)
        subprocess.run(["mpicc", "-o", program, nodes.work / "ring.c"], check=True, timeout=120)
    return program


def test_a_terminal_on_a_node_survives_a_cut_cable(nodes: Cluster) -> None:
    argv = [*nodes.before, ROTA, "run", "-I", *_on(1)]
    with typing_in(argv, env=nodes.env, cwd=nodes.work) as typist:
        typist.sees("inside> ")
        typist.type("uname -n; echo na''med\n")
        shown = typist.sees("named\r\n")
        host = next(host for host in nodes.hosts if f"{host.name}\r\n" in shown)
        with host.away():
            nodes.wait(lambda: nodes.state(_newest(nodes)) == "lost", "the node is missed")
        nodes.wait(lambda: nodes.state(_newest(nodes)) == "running", "it is back")
        typist.type("echo still he''re\n")
        typist.sees("still here")
        typist.type("exit 5\n")
        assert typist.ends() == 5
        assert typist.restored


def _newest(nodes: Cluster) -> int:
    return max(nodes.states())


def test_a_node_that_dies_gives_the_terminal_back(nodes: Cluster) -> None:
    job = _wide(nodes, 1)
    listed = nodes.ok("exec", str(job), "--", "uname", "-n").split()
    host = next(host for host in nodes.hosts if host.name == listed[0])
    argv = [*nodes.before, ROTA, "connect", str(job)]
    with typing_in(argv, env=nodes.env, cwd=nodes.work) as typist:
        typist.sees("inside> ")
        nodes.kill_agent(host)
        assert typist.ends() == 4
        assert typist.restored
        assert f"the connection to node {host.name} was lost" in typist.shown
    nodes.start_agent(host)
    nodes.until_node(host, "alive")
