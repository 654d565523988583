"""Commands, managers and runners that are forked are as those that are started."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.deployment import Deployment, deployment, is_alive, wait_until
from tests.warm import COLD


@pytest.fixture
def rota(tmp_path: Path) -> Deployment:
    return Deployment(tmp_path)


@pytest.mark.parametrize(
    ("words", "input"),
    [
        (["version"], None),
        (["--help"], None),
        (["jobs"], None),
        (["jobs", "--json"], None),
        (["no-such-command"], None),
        (["config", "show", "--json"], None),
        (["add", "--dry-run", "-", "--\udcff"], "true\n"),
        (["simulate", "-"], "{" + " " * 300_000),
    ],
)
def test_a_forked_command_says_and_ends_as_any_other(
    rota: Deployment, monkeypatch: pytest.MonkeyPatch, words: list[str], input: str | None
) -> None:
    warm = rota.rota(*words, input=input)
    monkeypatch.setenv(COLD, "1")
    cold = rota.rota(*words, input=input)
    assert (warm.args, warm.returncode, warm.stdout, warm.stderr) == (
        cold.args, cold.returncode, cold.stdout, cold.stderr,
    )  # fmt: skip


def test_it_has_the_environment_and_the_directory_that_were_asked_for(rota: Deployment, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text("")
    shown = json.loads(rota.ok("config", "show", "--json", env={**rota.env, "ROTA_CORES": "7"}))
    assert shown["settings"]["cores"]["value"] == 7
    (tmp_path / "here.txt").write_text("true\n")
    with pytest.raises(AssertionError):
        rota.ok("simulate", "here.txt")
    assert "cannot read" not in rota.rota("simulate", "here.txt", cwd=tmp_path).stderr


@pytest.fixture
def busy(rota: Deployment) -> Iterator[tuple[Deployment, str]]:
    try:
        rota.start()
        yield rota, rota.ok("add", "--quiet", "--", "sleep", "1000").strip()
    finally:
        rota.close()


def test_one_does_not_wait_for_another(busy: tuple[Deployment, str]) -> None:
    rota, job = busy
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(rota.rota, "wait", job)
        rota.ok("kill", job)
        assert "1 cancelled" in waiting.result().stderr


def test_one_that_takes_too_long_is_killed(busy: tuple[Deployment, str]) -> None:
    rota, job = busy
    with pytest.raises(subprocess.TimeoutExpired):
        rota.rota("wait", job, timeout=1)
    assert job in rota.ok("jobs", job)


# ------------------------------------------------------------------ managers, runners and gateways


class Seen:
    """What others see of a process."""

    def __init__(self, pid: int, home: Path) -> None:
        def lines(name: str) -> list[str]:
            text = Path(f"/proc/{pid}/{name}").read_text().replace(str(home), "HOME")
            return text.rstrip("\0\n").replace("\0", "\n").splitlines()

        status = dict(line.split(":\t", 1) for line in lines("status") if ":\t" in line)
        self.parent = int(status["PPid"])
        self.words = [re.sub(r"^\d+$", "NUMBER", word) for word in lines("cmdline")]
        self.environ = {line for line in lines("environ") if not line.startswith("PYTEST_CURRENT_TEST=")}
        self.limits = lines("limits")
        self.status = [status[name] for name in ("Name", "Umask", "Uid", "Gid")]
        # The C library has two signals for itself.
        self.signals = [int(status[name], 16) & ~(3 << 31) for name in ("SigBlk", "SigIgn", "SigCgt")]
        self.leads = (os.getsid(pid), os.getpgid(pid)) == (pid, pid)
        self.places = [os.readlink(f"/proc/{pid}/{name}") for name in ("exe", "cwd", "root")]
        named = [_named(f"/proc/{pid}/fd/{fd}", home) for fd in os.listdir(f"/proc/{pid}/fd")]
        self.open = {each for each in named if each}

    def same(self) -> tuple[object, ...]:
        return (
            self.words, self.environ, self.limits, self.status, self.signals, self.leads, self.places, self.open,
        )  # fmt: skip


def _named(path: str, home: Path) -> str:
    """What a descriptor is of; the name of a runner is another one each time. Empty: it was closed meanwhile."""
    try:
        target = os.readlink(path)
    except FileNotFoundError:
        return ""
    return re.sub(r"\d+(-[0-9a-f]{8})?", "NUMBER", target.replace(str(home), "HOME"))


def _processes(top: Path) -> Iterator[tuple[str, Seen, int]]:
    """A manager, its runner and its gateway, which have done something."""
    with deployment(top, http="on") as made:
        made.work = top.parent
        made.start()
        made.ok("run", "--", "true")
        manager = made.manager_pid()
        wait_until(lambda: _answers(int((made.home / "http.port").read_text())), "the gateway answers")
        for name in ("rota.manager", "rota.runner", "rota.api"):
            for pid in [manager] if name == "rota.manager" else _children(manager, name.encode()):
                yield name, Seen(pid, made.home), manager


def _answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port)) as dialled:
        dialled.sendall(b"GET / HTTP/1.0\r\n\r\n")
        return dialled.recv(4) == b"HTTP"
    return False


def _children(pid: int, module: bytes = b"") -> list[int]:
    pids = map(int, Path(f"/proc/{pid}/task/{pid}/children").read_text().split())
    return [child for child in pids if module in Path(f"/proc/{child}/cmdline").read_bytes()]


def test_forked_managers_runners_and_gateways_look_as_real_ones(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    warm = list(_processes(tmp_path / "warm"))
    monkeypatch.setenv(COLD, "1")
    cold = list(_processes(tmp_path / "cold"))
    assert [name for name, _, _ in warm] == ["rota.manager", "rota.runner", "rota.api"]
    for (name, forked, manager), (_, real, _) in zip(warm, cold, strict=True):
        assert forked.same() == real.same(), name
        assert (forked.parent == manager) == (name != "rota.manager")


def test_the_zygote_of_a_manager_ends_with_it(busy: tuple[Deployment, str]) -> None:
    manager = busy[0].manager_pid()
    (zygote,) = _children(manager, b"zygote.py")
    os.kill(manager, signal.SIGKILL)
    wait_until(lambda: not is_alive(zygote), "its zygote has ended")


def test_a_runner_that_is_killed_is_reaped_and_replaced_by_another(busy: tuple[Deployment, str]) -> None:
    rota, _ = busy
    (runner,) = rota.runner_pids()
    os.kill(runner, signal.SIGKILL)
    (again,) = wait_until(lambda: [pid for pid in rota.runner_pids() if pid != runner], "there is another")
    assert again in _children(rota.manager_pid())
    wait_until(lambda: not Path(f"/proc/{runner}").exists(), "the manager has reaped it")


def test_with_a_large_environment_real_processes_are_started(rota: Deployment) -> None:
    rota.env["ROTA_LARGE"] = "x" * 100_000
    try:
        rota.start()
        assert _children(rota.manager_pid(), b"zygote.py") == []
    finally:
        rota.close()


@pytest.mark.cold
def test_a_cold_test_starts_real_processes(busy: tuple[Deployment, str]) -> None:
    assert _children(busy[0].manager_pid(), b"zygote.py") == []
