"""`rota node add`: agents that are started over the system's ssh, each with a token of its own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.cluster import Cluster, cluster
from tests.cluster.hosts import Host
from tests.deployment import ROTA, wait_until

_SSHD = """\
Port 22
HostKey {key}
AuthorizedKeysFile {key}.pub
PidFile none
UsePAM no
StrictModes no
PermitRootLogin yes
PasswordAuthentication no
"""


class Ssh:
    """One key for all: that of the hosts, and of the one who enters them."""

    def __init__(self, top: Path, made: Cluster) -> None:
        self._key = top / "key"
        self._config = top / "sshd_config"
        self._config.write_text(_SSHD.format(key=self._key))
        subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", self._key], check=True)
        names = top / "ssh_config"
        names.write_text("".join(f"Host {host.name}\n  HostName {host.address}\n" for host in made.hosts))
        options = f"-F {names} -i {self._key} -o StrictHostKeyChecking=no -o UserKnownHostsFile={os.devnull}"
        self.command = f"ssh {options} -o LogLevel=ERROR -o BatchMode=yes"

    def serve(self, host: Host) -> None:
        """Answer on this host until it is down."""
        found = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
        assert found, "these tests need sshd: sudo apt-get install openssh-server"
        host.run("mkdir", "-p", "/run/sshd")
        with (host.directory / "sshd.log").open("ab") as log:
            host.popen(found, "-D", "-e", "-f", str(self._config), stderr=log)
        listens = "import socket; socket.create_connection(('127.0.0.1', 22)).close()"
        argv = [sys.executable, "-c", listens]
        wait_until(lambda: host.popen(*argv, stderr=subprocess.DEVNULL).wait() == 0, "sshd answers")


@pytest.fixture(scope="module")
def added(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Cluster, Ssh]]:
    """Two hosts that can be entered, and a manager that does not know them."""
    top = tmp_path_factory.mktemp("added")
    with cluster(top, hosts=2) as made:
        made.start()
        ssh = Ssh(top, made)
        for host in made.hosts:
            host.boot()
            ssh.serve(host)
        yield made, ssh


def _add(made: Cluster, ssh: Ssh, host: Host, *words: str) -> subprocess.CompletedProcess[str]:
    options = ["--ssh", ssh.command, "--rota", ROTA, "--dir", str(host.directory / "agent")]
    return made.rota("node", "add", host.name, *words, *options)


def test_hosts_that_can_be_entered_become_nodes_and_others_are_named(added: tuple[Cluster, Ssh]) -> None:
    made, ssh = added
    done = _add(made, ssh, made.hosts[0], "nowhere", "--option", "--cores 2 --property fast=yes")
    assert done.returncode == 1
    assert done.stdout == "n1: joined\n"
    assert done.stderr.startswith("rota: nowhere: ")
    node = made.node(made.hosts[0])
    assert node is not None
    assert (node.state, node.cores, node.properties["fast"]) == ("alive", 2, True)
    job = made.add("true", request=["{fast=true}/core=1"])
    made.until(job, "complete")
    assert made.witness.hosts(job) == ["n1"]


def test_a_node_that_is_removed_is_forgotten_and_its_token_is_worthless(added: tuple[Cluster, Ssh]) -> None:
    made, ssh = added
    host = made.hosts[1]
    assert _add(made, ssh, host).returncode == 0
    job = made.running("sleep 300", request=made.on(host))
    refused = made.rota("node", "remove", host.name)
    assert refused.returncode == 2
    assert f"job {job} is on node" in refused.stderr
    made.kill(job)
    made.until(job, "cancelled")
    made.ok("node", "remove", host.name)
    log = host.directory / "agent" / host.name / "agent.log"
    made.wait(lambda: f"node '{host.name}' was removed by" in log.read_text(), "its agent is told")
    assert made.node(host) is None
    tokens = json.loads(made.ok("manager", "token", "list", "--json"))["tokens"]
    assert all(each["host"] != host.name for each in tokens)
