"""A manager with a feature that it has never heard of: its operations, with their roles, effects and recovery."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rota.wire import codec
from rota.wire import messages as m
from tests.deployment import Deployment, deployment, wait_until
from tests.features.bells import ListBells, SetBell

ROOT = Path(__file__).parents[2]


class Tower:
    """A deployment whose manager has bells."""

    def __init__(self, made: Deployment) -> None:
        self.made = made
        self.start()

    def start(self) -> None:
        argv = [sys.executable, "-m", "tests.features.bells", "--home", str(self.made.home)]
        self.manager = subprocess.Popen(argv, env=self.made.env, cwd=ROOT)
        wait_until(lambda: self.made.rota("status").returncode == 0, "the manager listens")

    def kill(self) -> None:
        os.kill(self.manager.pid, signal.SIGKILL)
        self.manager.wait()

    def ask(self, role: str, message: m.Message) -> Any:
        """The body of the answer, or the code of the refusal."""
        with socket.socket(socket.AF_UNIX) as local:
            local.connect(str(self.made.home / "manager.sock"))
            local.settimeout(20)
            local.sendall(codec.frame(m.Hello(m.PROTOCOL, role)) + codec.frame(message))
            reader: codec.Reader[Any] = codec.Reader(m.ToClient)
            answers: list[Any] = []
            while len(answers) < 2 and (data := local.recv(4096)):
                answers += reader.feed(data)
        answer = answers[1]
        return answer.code if isinstance(answer, m.Failure) else msgspec.msgpack.decode(answer.body)

    def rung(self) -> list[str]:
        file = self.made.home / "bells"
        return file.read_text().split() if file.exists() else []


@pytest.fixture
def tower(tmp_path: Path) -> Iterator[Tower]:
    with deployment(tmp_path) as made:
        found = Tower(made)
        try:
            yield found
        finally:
            found.kill()


def test_a_feature_plugs_into_a_manager_by_registration_only(tower: Tower) -> None:
    assert tower.ask("user", ListBells(1)) == []
    assert tower.ask("user", SetBell(1, "noon", 0.0)) == "denied"
    assert tower.ask("admin", SetBell(1, "", 0.0)) == "bad_input"
    assert tower.ask("admin", SetBell(1, "soon", time.time())) == "soon"
    wait_until(lambda: tower.rung() == ["soon"], "it rings")
    assert tower.ask("admin", SetBell(1, "later", time.time() + 3600)) == "later"
    tower.kill()
    tower.start()
    assert tower.ask("user", ListBells(1)) == ["later"], "it is restored"
    attention = tower.made.json("manager", "status")["attention"]
    assert [(each["kind"], each["total"]) for each in attention] == [("bells", 1)]
    assert tower.made.rota("run", "--", "true", timeout=60).returncode == 0
    assert tower.rung() == ["soon"]
