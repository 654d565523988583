"""Whose a session is, where it is good, how long, and what ends it."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

import rota
from rota.api.problems import TooMany
from rota.api.rate_limits import RateLimits
from rota.api.routes import session
from rota.client.blocking import Client
from rota.client.endpoint import Endpoint, role_of
from rota.errors import BadInput, Denied
from rota.manager.peers.logins import _MOST_SESSIONS
from rota.wire import messages as m
from rota.wire.views import NewSessionView
from tests.api import inside
from tests.api.conftest import Site
from tests.deployment import wait_until

TOKEN = "rota_session_" + "S" * 43


def _by_tls(site: Site, token: str) -> Client:
    wait_until(lambda: (site.rota.home / "tls" / "server.pem").exists(), "the manager has a certificate")
    with site.rota.client() as client:
        address = client.manager_status().address
    return rota.connect(home=site.rota.home, address=address, token=token)


def _by_socket(site: Site, token: str, role: str = "") -> Client:
    """As the gateway connects."""
    socket = str(site.rota.home / "manager.sock")
    return Client(lambda: Endpoint(socket=socket, role=role or role_of(token), token=token))


def _log_in(site: Site, token: str) -> dict[str, str]:
    """A page that is opened by the holder of a token."""
    with _by_socket(site, token) as client:
        code = client.ui_link().code
    answer = site.nobody.post("/api/v1/session", {"code": code})
    assert answer.status == 200, answer
    return {"Cookie": answer.headers["set-cookie"].partition(";")[0], "X-Rota-CSRF": answer.json["csrf"]}


def test_a_session_is_its_makers_and_not_the_managers(site: Site) -> None:
    with site.rota.client() as client:
        token = client.add_token("anns", "user", user="ann").token
    with _by_socket(site, token) as client:
        code = client.ui_link().code
    told = site.nobody.post("/api/v1/session", {"code": code})
    page = {"Cookie": told.headers["set-cookie"].partition(";")[0]}
    asked = site.nobody.get("/api/v1/session", headers=page)
    for answer in (told, asked):
        assert {name: answer.json[name] for name in ("user", "role", "own_only")} == {
            "user": "ann",
            "role": "user",
            "own_only": True,
        }
    mine, _cookie = site.log_in()
    owner = site.nobody.get("/api/v1/session", headers=mine).json
    assert (owner["role"], owner["own_only"]) == ("admin", False)


def _inside(site: Site, page: dict[str, str]) -> bool:
    answer = site.nobody.get("/api/v1/session", headers=page)
    assert answer.status in (200, 401), answer
    return answer.status == 200


def _sessions(site: Site) -> list[Any]:
    return [each for each in site.admin.get("/api/v1/tokens").json if each["of"]]


@pytest.fixture
def new_token(site: Site) -> Iterator[Callable[..., str]]:
    """Makes tokens, which are removed after the test where it has not done so."""
    names: list[str] = []

    def make(name: str, **more: Any) -> str:
        names.append(name)
        return str(site.admin.post("/api/v1/tokens", {"name": name, **more}).json["token"])

    yield make
    for name in names:
        assert site.admin.ask("DELETE", f"/api/v1/tokens/{name}").status in (204, 404)


# ------------------------------------------------------------------ where it is good


def test_a_session_is_no_bearer_token(site):
    page, cookie = site.log_in()
    token = cookie.partition("=")[2]
    assert token.startswith("rota_session_")
    for secret in (token, token.replace("session", "admin"), token.replace("session", "user")):
        answer = site.nobody.as_(secret).post("/api/v1/tokens", {"name": "stolen", "role": "admin"})
        assert answer.status == 401, answer
    assert _inside(site, page)


def test_a_token_is_no_session(site):
    for token in (site.user_token, site.admin_token, site.admin_token.replace("admin", "session")):
        assert not _inside(site, {"Cookie": f"__Host-rota-{site.port}={token}"})


def test_a_session_is_refused_by_tls_and_welcome_on_the_socket(site):
    token = site.log_in()[1].partition("=")[2]
    with pytest.raises(Denied):
        _by_tls(site, token)
    with _by_socket(site, token) as client:
        assert client.connect().role == "admin"
    for role in ("user", "admin", "runner", "gateway"):
        with pytest.raises(Denied):
            _by_socket(site, token, role)
    with pytest.raises(Denied):
        _by_socket(site, site.admin_token, "session")
    with pytest.raises(Denied):
        _by_socket(site, "", "session")


def test_a_session_cannot_make_another(site):
    token = site.log_in()[1].partition("=")[2]
    with _by_socket(site, token) as client, pytest.raises(Denied, match="cannot make another"):
        client.ui_link()


# ------------------------------------------------------------------ whose it is


def test_a_session_has_the_role_of_its_maker_and_says_when_it_ends(site):
    for token, role in ((site.user_token, "user"), (site.admin_token, "admin")):
        page = _log_in(site, token)
        told = site.nobody.get("/api/v1/session", headers=page).json
        assert told["role"] == role
        assert datetime.fromisoformat(told["expires_at"]) > datetime.now(UTC)
        allowed = site.nobody.get("/api/v1/tokens", headers=page).status
        assert allowed == (200 if role == "admin" else 403)
    assert site.user.get("/api/v1/session").json["expires_at"] is None


def test_sessions_are_listed_with_whose_they_are_and_one_can_be_ended(site, new_token):
    token = new_token("lister")
    first, second = _log_in(site, token), _log_in(site, token)
    mine = [each for each in _sessions(site) if each["of"] == "lister"]
    assert [each["role"] for each in mine] == ["user", "user"]
    assert f"{mine[0]['name']} of lister" in site.rota.ok("manager", "token", "list")
    with site.nobody.events(headers=first) as stream:
        stream.wait(lambda events: events, "the stream is open")
        site.rota.ok("manager", "token", "remove", mine[0]["name"])
        assert stream.ended.wait(30)
    assert (_inside(site, first), _inside(site, second)) == (False, True)
    assert [each["name"] for each in _sessions(site) if each["of"] == "lister"] == [mine[1]["name"]]


def test_no_token_is_taken_for_a_session(site):
    with site.rota.client() as client, pytest.raises(BadInput):
        client.add_token("ui-mine", "user")


def test_sessions_are_written_down_nowhere(site):
    site.log_in()
    (newest,) = _sessions(site)[-1:]
    assert newest["name"] not in (site.rota.home / "tokens" / "tokens.json").read_text()


# ------------------------------------------------------------------ what ends it


def test_a_session_ends_when_the_token_that_made_it_is_removed(site, new_token):
    token = new_token("leaver")
    page = _log_in(site, token)
    other = site.log_in()[0]
    with _by_socket(site, token) as client:
        code = client.ui_link().code
    with site.nobody.events(headers=page) as stream:
        stream.wait(lambda events: events, "the stream is open")
        assert site.admin.ask("DELETE", "/api/v1/tokens/leaver").status == 204
        assert stream.ended.wait(30)
    assert (_inside(site, page), _inside(site, other)) == (False, True)
    assert site.nobody.post("/api/v1/session", {"code": code}).status == 401


def test_a_session_ends_when_the_token_that_made_it_expires(site, new_token):
    before = time.time()
    page = _log_in(site, new_token("brief", expires_s=3))
    told = site.nobody.get("/api/v1/session", headers=page).json
    assert datetime.fromisoformat(told["expires_at"]).timestamp() <= time.time() + 3
    with site.nobody.events(headers=page) as stream:
        stream.wait(lambda events: events, "the stream is open")
        assert stream.ended.wait(30)
    assert time.time() >= before + 3
    assert not _inside(site, page)


def test_too_many_sessions_end_the_oldest_of_their_maker_only(site, new_token):
    admin = site.log_in()[0]
    token = new_token("many")
    first = _log_in(site, token)
    with site.nobody.events(headers=first) as stream:
        stream.wait(lambda events: events, "the stream is open")
        second = _log_in(site, token)
        for _ in range(_MOST_SESSIONS - 1):
            last = _log_in(site, token)
        assert stream.ended.wait(30)
    assert [_inside(site, page) for page in (first, second, last, admin)] == [False, True, True, True]


# ------------------------------------------------------------------ a code that is not spent


class _Manager:
    """What a gateway hears from one that lets in whoever asks."""

    welcome = m.Welcome(m.PROTOCOL, "gateway", "me", 1, "test")

    def __init__(self) -> None:
        self.redeemed = 0

    async def ask(self, _call: object) -> NewSessionView:
        self.redeemed += 1
        return NewSessionView("ui-1", "user", TOKEN, datetime.fromtimestamp(time.time() + 60, UTC), expires_s=60.0)


@pytest.fixture
def manager(monkeypatch: pytest.MonkeyPatch) -> _Manager:
    made = _Manager()

    @contextlib.asynccontextmanager
    async def client(_self: object, token: str) -> AsyncIterator[_Manager]:
        if not token.startswith("rota_gateway_"):
            raise TooMany("too many different tokens are in use", hint="try again", after_s=1)
        yield made

    monkeypatch.setattr(inside._Links, "client", client, raising=False)
    return made


def test_who_has_spent_a_code_gets_in_however_many_others_there_are(tmp_path, manager):
    with inside.serving(tmp_path, session.table.operations) as served:
        answer = served.nobody.post("/api/v1/session", {"code": "x"})
    assert (answer.status, answer.json["role"]) == (200, "user")
    assert TOKEN in answer.headers["set-cookie"]


def test_a_login_that_is_told_to_wait_spends_no_code(tmp_path, manager):
    with inside.serving(tmp_path, session.table.operations) as served:
        served.gateway.services.limits = RateLimits(clock=lambda: 0.0)  # nothing comes back meanwhile
        with contextlib.suppress(TooMany):
            while True:
                served.gateway.services.limits.ask("open log_in 127.0.0.1")
        assert served.nobody.post("/api/v1/session", {"code": "x"}).status == 429
    assert manager.redeemed == 0
