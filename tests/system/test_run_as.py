"""Jobs that run as the users who added them, where the agent is root: real users of this machine."""

from __future__ import annotations

import grp
import os
import pwd
import resource
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from rota.runner import procfs
from tests.deployment import ROTA, Deployment, deployment, is_alive, wait_until
from tests.typist import typing_in

#: Users that every Debian has, and that nobody uses.
ONE, OTHER = "nobody", "daemon"


class Cluster:
    """A deployment whose jobs run as their users, and the users."""

    def __init__(self, made: Deployment, top: Path) -> None:
        self.made = made
        self.top = top
        made.start()
        address = wait_until(lambda: made.json("manager", "status")["address"], "it listens")
        self.envs = {}
        for user in (ONE, OTHER, "nosuchuser"):
            token = made.home / f"{user}.token"
            made.ok("manager", "token", "add", user, "--user", user, "--out", str(token))
            self.envs[user] = {**made.env, "ROTA_MANAGER": address, "ROTA_TOKEN_FILE": str(token)}
        #: where everybody may write
        self.open = top / "open"
        self.open.mkdir()
        self.open.chmod(0o1777)

    def add(self, user: str, *words: str) -> int:
        return int(self.made.json("add", *words, env=self.envs[user], cwd=self.open)["added"][0])

    def run(self, user: str, *words: str) -> str:
        """What a job printed, which must succeed."""
        job = self.add(user, *words)
        self.made.rota("wait", str(job))
        assert self.made.state(job) == "complete", self.made.ok("show", str(job)) + self.made.logs()
        return self.made.ok("logs", str(job))

    def fails(self, user: str, *words: str) -> str:
        """Why a job failed."""
        job = self.add(user, "--retries", "0", *words)
        self.made.rota("wait", str(job))
        view = self.made.json("show", str(job))
        assert view["state"] == "failed"
        return str(view["reason"]["message"])


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    if os.geteuid() != 0:
        pytest.fail("only root can run jobs as others: run the tests as root")
    # Not below pytest's own directory, which is closed to others.
    top = Path(tempfile.mkdtemp(prefix="rota-users-"))
    top.chmod(0o711)
    with deployment(top, grace="1s", run_as="user") as made:
        yield Cluster(made, top)
    shutil.rmtree(top)


def test_a_job_is_its_user_s_with_the_user_s_groups_and_no_rights_of_root(cluster: Cluster) -> None:
    entry = pwd.getpwnam(ONE)
    text = cluster.run(ONE, "--", "id -u; id -g; id -G; grep -c CapEff:.0000000000000000 /proc/self/status; umask")
    assert text.split()[:2] == [str(entry.pw_uid), str(entry.pw_gid)]
    groups = {entry.pw_gid, *(each.gr_gid for each in grp.getgrall() if ONE in each.gr_mem)}
    assert {int(word) for word in text.splitlines()[2].split()} == groups
    assert text.splitlines()[3] == "1"


def test_real_effective_and_saved_user_are_all_its_own(cluster: Cluster) -> None:
    uid = pwd.getpwnam(OTHER).pw_uid
    assert cluster.run(OTHER, "--", "grep ^Uid: /proc/self/status").split()[1:] == [str(uid)] * 4


def test_what_it_prints_can_be_opened_again_by_name(cluster: Cluster) -> None:
    assert cluster.run(ONE, "--", "echo out > /dev/stdout; cat /dev/null > /dev/stderr") == "out\n"


def test_an_output_file_is_opened_by_the_user(cluster: Cluster) -> None:
    cluster.run(ONE, "-o", f"{cluster.open}/mine", "--", "echo hello")
    found = (cluster.open / "mine").stat()
    assert found.st_uid == pwd.getpwnam(ONE).pw_uid
    closed = cluster.top / "closed"
    closed.mkdir(mode=0o700)
    assert "Permission denied" in cluster.fails(ONE, "-o", f"{closed}/theirs", "--", "echo hello")
    assert not list(closed.iterdir())
    # Nor by a link that points there.
    (cluster.open / "link").symlink_to(closed / "theirs")
    assert "Permission denied" in cluster.fails(ONE, "-o", f"{cluster.open}/link", "--", "echo hello")
    assert not list(closed.iterdir())


def test_a_directory_that_is_closed_to_the_user_is_no_working_directory(cluster: Cluster) -> None:
    closed = cluster.top / "nowhere"
    closed.mkdir(mode=0o700)
    why = cluster.fails(ONE, "--cwd", str(closed), "--", "true")
    assert why == f"cannot change to directory {closed}: Permission denied"


def test_a_program_is_one_that_the_user_may_execute(cluster: Cluster) -> None:
    program = cluster.open / "roots-own"
    program.write_text("#!/bin/sh\necho ran\n")
    program.chmod(0o700)
    assert "roots-own" in cluster.fails(ONE, "--", str(program), "x")
    program.chmod(0o755)
    assert cluster.run(ONE, "--", str(program), "x", "y") == "ran\n"


def test_what_a_user_puts_into_the_environment_is_seen_by_no_process_of_root(cluster: Cluster) -> None:
    told = cluster.open / "loader"
    told.mkdir()
    told.chmod(0o1777)
    cluster.run(ONE, "--env", "LD_DEBUG=files", "--env", f"LD_DEBUG_OUTPUT={told}/seen", "--", "true")
    owners = {each.stat().st_uid for each in told.iterdir()}
    assert owners == {pwd.getpwnam(ONE).pw_uid}, "the loader of each process wrote a file"


def test_a_scratch_directory_is_the_user_s_and_goes_with_the_job(cluster: Cluster) -> None:
    text = cluster.run(ONE, "--scratch", "--", "touch mine; pwd; stat -c %U . $TMPDIR mine; stat -c %a .")
    path, *owners, mode = text.split()
    assert (owners, mode) == ([ONE] * 3, "700")
    assert not Path(path).exists()
    ways = [Path(path).parent, *Path(path).parent.parents]
    listed = cluster.run(OTHER, "--", f"ls {ways[0]} {ways[1]} >/dev/null 2>&1 || echo closed")
    assert listed == "closed\n"


def test_a_nodefile_can_be_read_and_the_relay_be_called(cluster: Cluster) -> None:
    call = "socket(S, AF_UNIX, SOCK_STREAM, 0); print connect(S, sockaddr_un($ENV{ROTA_RELAY})) ? 1 : $!"
    text = cluster.run(ONE, "-l", "core=1,walltime=1m", "--", f"cat $ROTA_NODEFILE; perl -MSocket -e '{call}'")
    assert text.splitlines() == [os.uname().nodename, "1"]


def test_behaviours_run_as_the_user(cluster: Cluster) -> None:
    cluster.run(ONE, "--on-exit", f"run: id -un > {cluster.open}/behaved", "--", "true")
    assert (cluster.open / "behaved").read_text() == f"{ONE}\n"


def test_who_enters_a_job_is_its_user_there_and_owns_the_terminal(cluster: Cluster) -> None:
    job = cluster.add(ONE, "--", "sleep", "1000")
    wait_until(lambda: cluster.made.state(job) == "running", "it runs")
    assert cluster.made.ok("exec", str(job), "--", "id", "-un", env=cluster.envs[ONE]) == f"{ONE}\n"
    words = [ROTA, "exec", "--tty", str(job), "--", "sh", "-c", "stat -c 'of %U' $(tty); id -un"]
    with typing_in(words, env=cluster.envs[ONE], cwd=cluster.open) as typist:
        typist.sees(f"of {ONE}")
        assert typist.ends() == 0
    refused = cluster.made.rota("exec", str(job), "--", "id", env=cluster.envs[OTHER])
    assert refused.returncode == 5
    assert "belongs to somebody else" in refused.stderr
    cluster.made.ok("kill", str(job))


def test_an_interactive_job_has_a_terminal_of_its_user(cluster: Cluster) -> None:
    words = [ROTA, "run", "-I", "--", "stat -c 'of %U' $(tty); id -un; exit 3"]
    with typing_in(words, env=cluster.envs[ONE], cwd=cluster.open) as typist:
        typist.sees(f"of {ONE}")
        typist.sees(ONE)
        assert typist.ends() == 3


@pytest.mark.parametrize("containment", ["auto", "cgroup", "session"])
def test_everything_of_a_user_s_job_is_dead_at_its_end(containment: str) -> None:
    top = Path(tempfile.mkdtemp(prefix="rota-users-"))
    top.chmod(0o711)
    try:
        with deployment(top, grace="0.2s", run_as="user", containment=containment) as made:
            own = Cluster(made, top)
            script = "trap '' TERM; setsid sh -c 'trap \"\" TERM; echo $$ > hidden; exec sleep 1000' & sleep 1000"
            job = own.add(ONE, "--", script)
            hidden = own.open / "hidden"
            pid = int(wait_until(lambda: hidden.exists() and hidden.read_text().strip(), "it hides"))
            assert os.stat(f"/proc/{pid}").st_uid == pwd.getpwnam(ONE).pw_uid
            made.ok("kill", str(job))
            made.rota("wait", str(job))
            assert not is_alive(pid)
    finally:
        shutil.rmtree(top)


def test_users_that_the_host_does_not_know_and_root_get_a_clear_answer(cluster: Cluster) -> None:
    host = os.uname().nodename
    assert cluster.fails("nosuchuser", "--", "true") == f"there is no user 'nosuchuser' on {host}"
    made = cluster.made
    job = made.json("add", "--retries", "0", "--", "true")["added"][0]
    made.rota("wait", str(job))
    assert made.json("show", str(job))["reason"]["message"] == "no job runs as root where jobs run as their users"


def test_a_user_at_the_limit_of_processes_does_not_keep_others_from_theirs(cluster: Cluster) -> None:
    sleepers = [cluster.add(ONE, "--cpus", "0.1", "--", "sleep", str(1000 + n)) for n in range(3)]
    wait_until(lambda: all(cluster.made.state(job) == "running" for job in sleepers), "they sleep")
    (runner,) = cluster.made.runner_pids()
    before = resource.prlimit(runner, resource.RLIMIT_NPROC)
    uid = pwd.getpwnam(ONE).pw_uid
    many = sum(procfs.user_of(pid) == uid for pid in procfs.table())
    resource.prlimit(runner, resource.RLIMIT_NPROC, (many + 1, before[1]))
    try:
        assert "cannot start a process as nobody" in cluster.fails(ONE, "--cpus", "0.1", "--", "true")
        assert cluster.run(OTHER, "--cpus", "0.1", "--", "echo fine") == "fine\n"
    finally:
        resource.prlimit(runner, resource.RLIMIT_NPROC, before)
        cluster.made.ok("kill", *map(str, sleepers))


def test_a_signal_to_the_runner_is_not_for_users_to_send(cluster: Cluster) -> None:
    (runner,) = cluster.made.runner_pids()
    cluster.add(ONE, "--cpus", "0.1", "--", f"while kill -0 $PPID; do kill -KILL {runner}; done 2>/dev/null")
    for n in range(30):
        assert cluster.run(ONE, "--cpus", "0.1", "--", f"echo {n}") == f"{n}\n"
    assert cluster.made.runner_pids() == [runner]
    cluster.made.ok("kill", "all")
