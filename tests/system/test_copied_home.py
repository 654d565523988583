"""A copy of a home never acts on the original: not its commands, not its manager, not its runners."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from pathlib import Path

from rota.home import Home
from tests.deployment import Deployment, deployment, is_alive, wait_until


def running(rota: Deployment) -> bool:
    return rota.state(1) == "running"


def test_a_copied_home_leaves_the_original_alone_and_can_become_a_deployment_of_its_own(
    rota: Deployment, tmp_path: Path
) -> None:
    rota.ok("add", "--", "echo $$ > pid; exec sleep 1000")
    pid = int(wait_until(lambda: (rota.work / "pid").exists() and (rota.work / "pid").read_text(), "the job runs"))
    wait_until(lambda: running(rota), "it is said to run")
    manager = rota.manager_pid()
    assert str(rota.home) not in (rota.home / "manager.json").read_text()
    with deployment(tmp_path / "copy") as copy, deployment(tmp_path / "linked") as linked:
        os.kill(manager, signal.SIGSTOP)  # or a commit between two files would leave a copy that is damaged
        try:
            subprocess.run(["cp", "-a", rota.home, copy.home], check=True)
            subprocess.run(["cp", "-al", rota.home, linked.home], check=True)  # the socket itself is in it
        finally:
            os.kill(manager, signal.SIGCONT)
        for other, status in ((copy, "no_manager"), (linked, "other_home")):
            for words in (["manager", "stop", "--kill"], ["kill", "1"], ["remove", "1"]):
                done = other.rota(*words, "--json")
                assert (done.returncode, json.loads(done.stderr)["error"]["code"]) == (4, status), done.stderr
        for words in (["manager", "start"], ["run", "--", "true"]):
            done = copy.rota(*words)
            assert done.returncode == 4, done
            assert "rota manager adopt" in done.stderr
        assert copy.rota("doctor").returncode == 1
        assert (rota.manager_pid(), running(rota), is_alive(pid)) == (manager, True, True)

        assert rota.rota("manager", "adopt", "--moved").returncode == 4, "its manager runs"
        assert copy.rota("manager", "adopt").returncode == 2
        adopted = json.loads(copy.ok("manager", "adopt", "--copy", "--json"))
        assert adopted["doubted"] == [1]
        copy.start()
        assert copy.state(1) == "lost"
        mine, theirs = (json.loads((home / "identity.json").read_bytes())["id"] for home in (copy.home, rota.home))
        assert mine == adopted["id"] != theirs == adopted["before"]
        for name in ("tokens/admin.token", "tls.port"):
            assert (copy.home / name).read_bytes() != (rota.home / name).read_bytes()
        copy.ok("manager", "stop", "--kill")
        assert (running(rota), is_alive(pid)) == (True, True)


def test_a_runner_with_jobs_does_not_serve_a_copy_that_took_the_place_of_its_home(rota: Deployment) -> None:
    rota.ok("add", "--", "until test -e go; do sleep 0.02; done")
    wait_until(lambda: running(rota), "the job runs")
    rota.ok("manager", "stop")
    aside = rota.home.rename(rota.home.with_name("aside"))
    subprocess.run(["cp", "-a", aside, rota.home], check=True)
    rota.ok("manager", "adopt", "--copy")
    rota.start()
    log = aside / "logs" / "runner.log"
    wait_until(lambda: "answers, not" in log.read_text(), "the runner tells them apart")
    (rota.work / "go").touch()
    assert rota.state(1) == "lost"
    rota.ok("manager", "stop")
    shutil.rmtree(rota.home)
    os.rename(aside, rota.home)
    rota.start()
    wait_until(lambda: rota.state(1) == "complete", "its own manager has it")


def test_a_home_with_a_long_path_works_and_is_found_under_another_name(tmp_path: Path) -> None:
    with deployment(tmp_path / ("long-" * 25)) as rota:
        rota.ok("run", "--", "true")
        rota.start()
        assert (rota.home / "manager.sock").is_socket()
        assert not Home(rota.home).former_socket.parent.exists()  # type: ignore[union-attr]
        link = tmp_path / "short"
        link.symlink_to(rota.home)
        for name in ("link", "elsewhere"):
            env = {**rota.env, "ROTA_HOME": str(link), "XDG_RUNTIME_DIR": str(tmp_path / name)}
            assert json.loads(rota.ok("manager", "status", "--json", env=env))["pid"] == rota.manager_pid()
