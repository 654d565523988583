"""A real manager with a real gateway, shared by the tests of one file."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.api.client import Http
from tests.deployment import Deployment, add_new, deployment, wait_until


class Site:
    """A deployment that serves HTTP, and a client for each kind of caller."""

    def __init__(self, rota: Deployment) -> None:
        self.rota = rota
        rota.start()
        with rota.client() as client:
            self.user_token = client.add_token("a-user", "user").token
            self.admin_token = client.add_token("an-admin", "admin").token
        self.find()

    def find(self) -> None:
        """Where is it now?"""
        with self.rota.client() as client:
            url = client.manager_status().http
        assert url is not None
        self.url = url
        self.port = urlsplit(url).port or 0
        self.nobody = Http("127.0.0.1", self.port)
        self.user = self.nobody.as_(self.user_token)
        self.admin = self.nobody.as_(self.admin_token)
        wait_until(self._answers, "the gateway answers")

    def _answers(self) -> bool:
        try:
            return self.nobody.get("/healthz").status == 200
        except OSError:
            return False

    def code(self) -> str:
        """A one-time code, as in the link that `rota manager ui` prints."""
        with self.rota.client() as client:
            return client.ui_link().code

    def log_in(self) -> tuple[dict[str, str], str]:
        """The headers of a page that has logged in, and its cookie alone."""
        answer = self.nobody.post("/api/v1/session", {"code": self.code()})
        assert answer.status == 200, answer
        cookie = answer.headers["set-cookie"].partition(";")[0]
        return {"Cookie": cookie, "X-Rota-CSRF": answer.json["csrf"]}, cookie

    def gateway_pid(self) -> int:
        """The process that serves."""
        for path in Path(f"/proc/{self.rota.manager_pid()}/task").glob("*/children"):
            for pid in path.read_text().split():
                if b"rota.api" in Path(f"/proc/{pid}/cmdline").read_bytes():
                    return int(pid)
        return 0

    def add(self, *commands: str, **fields: object) -> list[int]:
        """New jobs, whatever else is there; their ids."""
        with self.rota.client() as client:
            return add_new(client, list(commands), **{"cwd": str(self.rota.work), **fields})

    def logs(self) -> str:
        found = []
        for name in ("gateway.log", "gateway.out"):
            path = self.rota.home / "logs" / name
            if path.exists():
                found += [line for line in path.read_text().splitlines() if not _routine(line)]
        return "\n".join(found)


def _routine(line: str) -> bool:
    try:
        return bool(json.loads(line)["level"] in ("info", "debug"))
    except (ValueError, KeyError):
        return False


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    with deployment(tmp_path_factory.mktemp("site"), http="on", grace="1s") as rota:
        yield Site(rota)
