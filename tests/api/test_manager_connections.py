"""Connections to the manager: those of a few tokens are kept, and wrong tokens cost next to nothing."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from rota.api import manager_connections, rate_limits
from rota.api.manager_connections import ManagerConnections
from rota.api.operations import ApiRequest, OperationTable
from rota.api.problems import TooMany, Unauthorized
from rota.api.rate_limits import RateLimits
from rota.api.token_verdicts import TokenVerdicts
from rota.errors import Denied, NoManager
from rota.home import Home
from tests.api.inside import ADMIN, USER, serving

table = OperationTable("test")


@table.get("/role", "role", answer=str)
async def role(request: ApiRequest) -> str:
    """Ask for it with the credential that was sent."""
    return str(await request.services.connections.role(request.credential.token))


class _Dialled:
    """A connection to a manager that knows two tokens, and any that begin with `right`."""

    made: list[_Dialled]

    def __init__(self, endpoint: Any, *, timeout: float) -> None:
        self.token = endpoint()
        self.connected = False
        self.welcome = self
        self.role = "user"

    async def connect(self) -> None:
        self.made.append(self)
        await asyncio.sleep(0)
        if self.token not in (USER, ADMIN) and not self.token.startswith("right"):
            raise Denied("this token is not accepted")
        self.connected = True

    async def ask(self, call: Any) -> bool:
        token = call.build(1).args["token"]
        return token in (USER, ADMIN) or token.startswith("right")

    async def alive(self) -> bool:
        return self.connected

    async def close(self) -> None:
        self.connected = False


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[_Dialled]:
    """All connections that were tried."""
    _Dialled.made = []
    monkeypatch.setattr(manager_connections, "AsyncClient", _Dialled)
    monkeypatch.setattr(ManagerConnections, "_endpoint", lambda _links, token: token)
    return _Dialled.made


def test_a_new_token_takes_the_place_of_the_one_that_was_used_longest_ago(dialled, tmp_path, monkeypatch):
    monkeypatch.setattr(manager_connections, "_TOKENS", 2)

    async def run() -> None:
        found = ManagerConnections(Home(tmp_path), "right own")
        for token in ("right 1", "right 2", "right 1", "right 3"):
            assert await found.role(token) == "user"

    asyncio.run(run())
    assert [(each.token, each.connected) for each in dialled] == [
        ("right 1", True),
        ("right 2", False),
        ("right 3", True),
    ]


def test_a_token_that_is_being_used_keeps_its_place(dialled, tmp_path, monkeypatch):
    monkeypatch.setattr(manager_connections, "_TOKENS", 2)

    async def run() -> None:
        found = ManagerConnections(Home(tmp_path), "right own")
        async with found.client("right 1") as first, found.client("right 2"):
            with pytest.raises(TooMany):
                await found.role("right 3")
            assert first.connected
        assert await found.role("right 3") == "user"

    asyncio.run(run())


def test_a_wrong_token_is_asked_about_once(dialled, tmp_path):
    async def run() -> None:
        found = ManagerConnections(Home(tmp_path), "right own")
        for _ in range(3):
            with pytest.raises(Unauthorized):
                await found.role("wrong")

    asyncio.run(run())
    assert [each.token for each in dialled] == ["wrong"]


def test_a_gateway_whose_manager_has_ended_does_not_blame_whoever_asks(dialled, tmp_path):
    async def run() -> None:
        found = ManagerConnections(Home(tmp_path), "of another manager")
        for _ in range(2):
            with pytest.raises(NoManager):
                await found.known("right 1")

    asyncio.run(run())
    assert [each.token for each in dialled] == ["of another manager"] * 2


def test_who_guesses_tokens_makes_no_connection_and_others_do(dialled, tmp_path, monkeypatch):
    monkeypatch.setattr(rate_limits, "_WRONG_BURST", 5.0)
    with serving(tmp_path, table.operations, ManagerConnections(Home(tmp_path), "right own")) as inside:
        inside.gateway.services.limits = RateLimits(clock=lambda: 0.0)
        for _ in range(10):  # who is right pays nothing
            assert inside.user.get("/api/v1/role").status == 200
        before = len(dialled)
        wrong = [inside.nobody.as_(f"rota_user_{number:043d}") for number in range(8)]
        assert [each.get("/api/v1/role").status for each in wrong] == [401] * 5 + [429] * 3
        assert wrong[0].get("/api/v1/role").status == 401
        assert len(dialled) == before
        assert inside.user.get("/api/v1/role").status == 200
        assert inside.admin.get("/api/v1/role").status == 200  # who is new and right, too


def test_what_was_wrong_is_asked_about_again_after_a_while():
    now = [0.0]
    found = TokenVerdicts(clock=lambda: now[0])
    assert found.lookup("a") is None
    found.reject("a")
    assert found.lookup("a") is False
    now[0] += 1000
    assert found.lookup("a") is None


def test_only_the_newest_verdicts_are_kept_and_wrong_tokens_push_out_no_right_ones():
    found = TokenVerdicts()
    found.accept("mine")
    for number in range(5000):
        found.reject(str(number))
    assert (found.lookup("mine"), found.lookup("4999"), found.lookup("0")) == (True, False, None)
    found.reject("mine")
    assert found.lookup("mine") is False
