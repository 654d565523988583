"""The hosts that the other tests of this directory rely on are what they claim to be."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster import mark as marks
from tests.cluster.cluster import Cluster, cluster
from tests.cluster.hosts import Host
from tests.cluster.network import HEAD
from tests.deployment import is_alive, wait_until

_ASK = "import socket; s = socket.create_connection(('{}', 7), 0.5); print(s.recv(9).decode())"
_SERVE = """
import socket
server = socket.create_server(("", 7))
print("up", flush=True)
while True:
    server.accept()[0].sendall(b"hello")
"""


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with cluster(tmp_path_factory.mktemp("pair"), hosts=2) as made:
        for host in made.hosts:
            host.boot()
        yield made


def _serve_on_head(made: Cluster) -> subprocess.Popen[bytes]:
    server = subprocess.Popen([*made.before, sys.executable, "-c", _SERVE], env=made.env, stdout=subprocess.PIPE)
    assert server.stdout is not None
    assert server.stdout.readline() == b"up\n"
    return server


def _hears(host: Host, address: str) -> bool:
    argv = [sys.executable, "-c", _ASK.format(address)]
    asked = host.popen(*argv, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    return asked.communicate(timeout=60)[0] == b"hello\n"


def test_each_host_has_its_own_name_boot_and_processes(pair: Cluster) -> None:
    first, second = pair.hosts
    assert first.run("uname", "-n") == "n1\n"
    ids = {host.run("cat", "/proc/sys/kernel/random/boot_id") for host in pair.hosts}
    assert len(ids) == 2
    assert Path("/proc/sys/kernel/random/boot_id").read_text() not in ids
    sleeper = first.popen("sleep", "300")
    pid = wait_until(sleeper.there, "it sleeps")
    assert pid in first.pids()
    assert pid not in second.pids()
    assert "sleep 300" not in second.run("sh", "-c", "cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
    sleeper.kill_and_wait()
    assert not is_alive(pid)


def test_a_host_that_crashes_takes_everything_with_it_and_boots_with_another_id(pair: Cluster) -> None:
    host = pair.hosts[0]
    before = host.boot_id
    sleeper = host.popen("sh", "-c", "setsid sleep 300 & sleep 300")
    wait_until(lambda: len(host.pids()) >= 2, "both sleep")
    pids = host.pids()
    host.reboot()
    assert not any(map(is_alive, pids))
    assert sleeper.wait(timeout=60) != 0
    assert host.boot_id != before
    assert host.run("cat", "/proc/sys/kernel/random/boot_id").strip() == host.boot_id


def test_orphans_do_not_stay_zombies(pair: Cluster) -> None:
    host = pair.hosts[0]
    host.run("sh", "-c", "(sleep 0.1 &) ; (sleep 0.1 &)")
    wait_until(lambda: "sleep" not in host.run("sh", "-c", "cat /proc/[0-9]*/comm"), "they are reaped")


@pytest.mark.parametrize("how", ["cut", "lose_what_it_hears", "lose_what_it_says"])
def test_a_cut_cable_cuts_off_one_host_until_it_is_healed(pair: Cluster, how: str) -> None:
    first, second = pair.hosts
    server = _serve_on_head(pair)
    try:
        assert _hears(first, HEAD)
        with first.away(how):
            assert not _hears(first, HEAD)
            assert _hears(second, HEAD)
        wait_until(lambda: _hears(first, HEAD), "it is healed")
    finally:
        server.kill()
        server.communicate()


def test_a_host_lives_in_control_groups_of_its_own(pair: Cluster) -> None:
    groups = [host.run("cat", "/proc/self/cgroup") for host in pair.hosts]
    if not any("rota-test-" in text for text in groups):
        pytest.skip("no control groups can be made here")
    assert groups[0] != groups[1]
    assert all(f"/n{number}" in text for number, text in enumerate(groups, 1))


def test_what_a_killed_test_run_left_behind_is_removed_by_the_next(tmp_path: Path) -> None:
    script = f"""
import pathlib, time
from tests.cluster.cluster import Cluster
made = Cluster(pathlib.Path({str(tmp_path)!r}), hosts=1)
made.hosts[0].boot()
made.hosts[0].popen("sleep", "300")
print(made._mark, flush=True)
time.sleep(300)
"""
    run = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, cwd=Path(__file__).parents[2])
    assert run.stdout is not None
    mark = run.stdout.readline().decode().strip()
    marks.sweep()
    assert mark in marks.known(), "it lives, so nothing of it is touched"
    run.send_signal(signal.SIGKILL)
    run.communicate()
    marks.sweep()
    assert mark not in marks.known()
