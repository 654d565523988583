"""What the gateway refuses, one thing at a time, asked of a real one."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import os
import socket
import sqlite3
import ssl
from pathlib import Path
from typing import Any

import pytest

from rota.api.operations import EVENTS
from rota.api.paths import PREFIX
from rota.api.rate_limits import _LOGIN_BURST, _STREAMS_EACH
from rota.api.routes import OPERATIONS
from rota.wire.tokens import read_token
from tests.api.client import Http, several
from tests.api.conftest import Site
from tests.deployment import deployment, wait_until

_HOSTILE = "<img src=x onerror=alert(1)>\n\x1b[31mred\x1b[0m \u202eesrever\u2066 </script><script>x</script> '\"&"
_HEADERS = {
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


#: What a deployment writes down by itself: who is connected, and figures of the last minutes.
_BY_ITSELF = {"runners", "machines", "minutes"}


def _digest(site: Site) -> str:
    """Of everything that somebody could have changed."""
    (path,) = site.rota.home.glob("*.db")
    with contextlib.closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
        names = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        kept = {name: database.execute(f'SELECT * FROM "{name}"').fetchall() for name in sorted(names)}
    tokens = (site.rota.home / "tokens" / "tokens.json").read_bytes()
    manager = site.user.get("/api/v1/manager").json
    found = ({name: rows for name, rows in kept.items() if name not in _BY_ITSELF}, tokens, manager["paused"])
    return hashlib.sha256(repr(found).encode()).hexdigest()


def _settle(site: Site) -> None:
    """Wait until nothing goes on any more."""
    site.rota.ok("wait", "all")
    seen: list[str] = []

    def settled() -> bool:
        seen.append(_digest(site))
        return len(seen) > 5 and len(set(seen[-5:])) == 1

    wait_until(settled, "nothing changes by itself")


@pytest.fixture(scope="module")
def quiet(site: Site) -> int:
    """A job that has ended; nothing else goes on."""
    (job,) = site.add("echo quiet")
    _settle(site)
    return job


@pytest.fixture(scope="module")
def page(site: Site) -> tuple[dict[str, str], str]:
    """Headers of a page that has logged in, and its cookie."""
    return site.log_in()


def _jobs(site: Site) -> int:
    return int(site.user.get("/api/v1/jobs?limit=1").json["total"])


def _new_job(site: Site) -> dict[str, Any]:
    return {"jobs": ["true"], "defaults": {"cwd": str(site.rota.work), "rerun": True}}


def _refused_with(answer: Any, status: int, code: str) -> None:
    assert (answer.status, answer.code) == (status, code), answer


# ------------------------------------------------------------------ who


def _path(operation: Any) -> str:
    return PREFIX + operation.path.replace("{id}", "1").replace("{name}", "x").replace("{host}", "x")


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if each.role != "open"], ids=lambda each: each.id
)
def test_without_a_credential_nothing_is_told(site, operation):
    answer = site.nobody.ask(operation.method, _path(operation))
    _refused_with(answer, 401, "unauthorized")
    assert answer.headers["www-authenticate"] == "Bearer"


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Bearer x", "Basic cm9vdDo=", "Bearer rota_user_", "Bearer rota_user_" + "A" * 43,
     "Bearer rota_admin_" + "A" * 43, "Bearer rota_user_" + "A" * 5000, "Bearer rota_user_AAAAAA\u00e9", "rota"],
)  # fmt: skip
def test_a_wrong_token_is_refused(site, header):
    answer = site.nobody.get("/api/v1/jobs", headers={"Authorization": header})
    assert answer.status == 401, answer
    assert answer.headers["www-authenticate"] == "Bearer"


def test_a_token_of_one_role_is_not_taken_for_another(site):
    pretended = site.user_token.replace("rota_user_", "rota_admin_")
    assert site.nobody.as_(pretended).get("/api/v1/tokens").status == 401


@pytest.mark.parametrize("file", ["runner.token", "gateway.token"])
@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if each.role != "open"], ids=lambda each: each.id
)
def test_tokens_of_runners_and_of_the_gateway_open_nothing_here(site, operation, file):
    token = read_token(site.rota.home / "tokens" / file)
    _refused_with(site.nobody.as_(token).ask(operation.method, _path(operation)), 401, "unauthorized")
    sent = {"Cookie": f"__Host-rota-{site.port}={token}"}
    _refused_with(site.nobody.ask(operation.method, _path(operation), headers=sent), 401, "unauthorized")


def test_a_header_wins_over_a_cookie(site):
    page, _cookie = site.log_in()
    answer = site.nobody.get("/api/v1/session", headers={**page, "Authorization": "Bearer nonsense"})
    assert answer.status == 401


def _body(schema: dict[str, Any], components: dict[str, Any]) -> Any:
    """The least that a schema accepts."""
    if "$ref" in schema:
        return _body(components[schema["$ref"].rpartition("/")[2]], components)
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return _body(schema["anyOf"][0], components)
    match schema.get("type"):
        case "object":
            return {name: _body(schema["properties"][name], components) for name in schema.get("required", ())}
        case "array":
            return [_body(schema["items"], components)] if schema.get("minItems") else []
        case "integer" | "number":
            return 1
        case "boolean":
            return False
    return "x"


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if each.role == "admin"], ids=lambda each: each.id
)
def test_a_user_may_not_do_what_is_for_administrators(site, quiet, operation):
    document = site.nobody.get("/api/v1/openapi.json").json
    entry = document["paths"][PREFIX + operation.path][operation.method.lower()]
    body = None
    if operation.body is not None:
        schema = entry["requestBody"]["content"]["application/json"]["schema"]
        body = _body(schema, document["components"]["schemas"])
    before = _digest(site)
    _refused_with(site.user.ask(operation.method, _path(operation), body), 403, "denied")
    assert _digest(site) == before


@pytest.mark.parametrize(
    "operation", [each for each in OPERATIONS if each.role == "admin" and each.body], ids=lambda each: each.id
)
def test_a_user_cannot_make_us_hold_what_only_administrators_may_send(site, operation):
    headers = {"Content-Length": str(operation.body_max), "Content-Type": "application/json"}
    answer = site.user.ask(operation.method, _path(operation), raw=b"{", headers=headers)  # the rest never comes
    _refused_with(answer, 403, "denied")


def test_a_removed_token_is_worthless_at_once_and_its_streams_end(site):
    made = site.admin.post("/api/v1/tokens", {"name": "short-lived"}).json["token"]
    caller = site.nobody.as_(made)
    assert caller.get("/api/v1/jobs").status == 200
    with caller.events() as stream:
        stream.wait(lambda events: events, "the stream is open")
        assert site.admin.ask("DELETE", "/api/v1/tokens/short-lived").status == 204
        assert stream.ended.wait(30)
    assert caller.get("/api/v1/jobs").status == 401
    assert caller.post("/api/v1/jobs", _new_job(site)).status == 401


def test_a_token_that_expires_ends_also_for_who_is_using_it(site):
    made = site.admin.post("/api/v1/tokens", {"name": "expiring", "expires_s": 1.5}).json["token"]
    caller = site.nobody.as_(made)
    assert caller.get("/api/v1/jobs").status == 200
    with caller.events() as stream:
        stream.wait(lambda events: events, "the stream is open")
        assert stream.ended.wait(30)
    assert caller.get("/api/v1/jobs").status == 401


# ------------------------------------------------------------------ logging in


def test_a_link_logs_in_once(site):
    code = site.code()
    assert site.nobody.post("/api/v1/session", {"code": code}).status == 200
    _refused_with(site.nobody.post("/api/v1/session", {"code": code}), 401, "unauthorized")


def test_the_session_cookie_is_only_for_our_own_pages(site):
    answer = site.nobody.post("/api/v1/session", {"code": site.code()})
    cookie, *attributes = answer.headers["set-cookie"].split("; ")
    assert cookie.startswith(f"__Host-rota-{site.port}=rota_")
    assert {"Path=/", "Secure", "HttpOnly", "SameSite=Strict"} <= set(attributes)
    assert any(each.startswith("Max-Age=") for each in attributes)
    assert not any(each.lower().startswith("domain") for each in attributes)
    assert cookie.partition("=")[2] not in answer.body.decode()


def test_a_session_changes_nothing_without_its_csrf_token(site):
    page, cookie = site.log_in()
    before = _jobs(site)
    for csrf in (None, "", "x", "0" * 64, "\u00e9"):
        headers = {"Cookie": cookie} | ({"X-Rota-CSRF": csrf} if csrf is not None else {})
        _refused_with(site.nobody.post("/api/v1/jobs", _new_job(site), headers=headers), 403, "csrf")
    assert _jobs(site) == before
    assert site.nobody.post("/api/v1/jobs", _new_job(site), headers=page).status == 201


def test_the_csrf_token_of_one_session_is_not_good_for_another(site):
    _page, cookie = site.log_in()
    other, _cookie = site.log_in()
    answer = site.nobody.post("/api/v1/jobs", _new_job(site), headers={**other, "Cookie": cookie})
    _refused_with(answer, 403, "csrf")


def test_logging_out_makes_the_cookie_worthless(site):
    page, _cookie = site.log_in()
    assert site.nobody.get("/api/v1/session", headers=page).status == 200
    answer = site.nobody.ask("DELETE", "/api/v1/session", headers=page)
    assert (answer.status, "Max-Age=0" in answer.headers["set-cookie"]) == (204, True)
    assert site.nobody.get("/api/v1/session", headers=page).status == 401


def test_a_cookie_of_another_deployment_on_this_host_is_not_looked_at(site):
    _page, cookie = site.log_in()
    token = cookie.partition("=")[2]
    for name in ("__Host-rota-1", "__Host-rota", "rota"):
        assert site.nobody.get("/api/v1/session", headers={"Cookie": f"{name}={token}"}).status == 401


# ------------------------------------------------------------------ from where


@pytest.mark.parametrize("path", ["/", "/api/v1/jobs", "/api/v1/openapi.json", "/healthz", "/metrics", "/no/such"])
@pytest.mark.parametrize(
    "host", ["", "evil.example", "evil.example:PORT", "localhost", "localhost:1", "localhost.evil.example:PORT",
             "127.0.0.1.nip.io:PORT", "[::2]:PORT", "2130706433:PORT", "0x7f000001:PORT", "127.1:PORT",
             "0.0.0.0:PORT", "0177.0.0.1:PORT", "localhost.:PORT", "[::ffff:127.0.0.1]:PORT", "127.0.0.1:1:PORT",
             "localhost:PORT@evil.example", "localhost:PORT.", "a b"],
)  # fmt: skip
def test_a_foreign_host_name_is_refused_whatever_is_asked_for(site, host, path):
    answer = site.admin.get(path, headers={"Host": host.replace("PORT", str(site.port))})
    assert answer.status in (421, 400), answer


@pytest.mark.parametrize("host", ["localhost:PORT", "LOCALHOST:PORT", "127.0.0.1:PORT", "[::1]:PORT"])
def test_our_own_names_are_served(site, host):
    assert site.user.get("/api/v1/jobs", headers={"Host": host.replace("PORT", str(site.port))}).status == 200


def test_a_request_that_names_two_hosts_is_refused(site):
    with site.nobody.socket() as raw:
        raw.sendall(f"GET /healthz HTTP/1.1\r\nHost: localhost:{site.port}\r\nHost: evil\r\n\r\n".encode())
        assert b" 400 " in raw.recv(4096).partition(b"\r\n")[0]


@pytest.mark.parametrize(
    "origin", ["null", "", "http://evil.example", "http://localhost", "http://localhost:1", "file://",
               "ftp://localhost:PORT", "http://localhost:PORT.evil.example", "//localhost:PORT", "localhost:PORT"],
)  # fmt: skip
def test_a_page_of_another_site_may_not_ask(site, origin):
    page, _cookie = site.log_in()
    headers = {**page, "Origin": origin.replace("PORT", str(site.port))}
    for method in ("GET", "POST"):
        body = _new_job(site) if method == "POST" else None
        _refused_with(site.nobody.ask(method, "/api/v1/jobs", body, headers=headers), 403, "foreign")


def test_our_own_page_may_ask(site):
    page, _cookie = site.log_in()
    headers = {**page, "Origin": f"http://localhost:{site.port}", "Sec-Fetch-Site": "same-origin"}
    assert site.nobody.post("/api/v1/jobs", _new_job(site), headers=headers).status == 201


@pytest.mark.parametrize("where", ["cross-site", "same-site", "whatever"])
def test_what_a_browser_sends_for_another_site_is_refused(site, where):
    page, _cookie = site.log_in()
    headers = {**page, "Sec-Fetch-Site": where}
    _refused_with(site.nobody.post("/api/v1/jobs", _new_job(site), headers=headers), 403, "foreign")
    _refused_with(site.nobody.get("/api/v1/events", headers=headers), 403, "foreign")


def test_a_link_from_elsewhere_leads_to_the_page(site):
    answer = site.nobody.get("/jobs", headers={"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"})
    assert answer.status in (200, 404)  # not built: there is no page, but nothing is refused
    if answer.status == 404:
        assert "built" in answer.json["error"]["message"]


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "", "text/json"]
)
def test_a_form_of_another_site_cannot_be_a_request(site, kind):
    before = _jobs(site)
    data = json.dumps(_new_job(site)).encode()
    page, _cookie = site.log_in()
    for caller, headers in ((site.nobody, page), (site.user, {})):
        answer = caller.ask("POST", "/api/v1/jobs", raw=data, headers={**headers, "Content-Type": kind})
        _refused_with(answer, 400, "bad_input")
    assert _jobs(site) == before


def test_no_other_site_is_ever_allowed_to_read(site):
    for method in ("OPTIONS", "GET"):
        answer = site.user.ask(method, "/api/v1/jobs", headers={"Access-Control-Request-Method": "POST"})
        assert not any(name.startswith("access-control") for name in answer.headers)


# ------------------------------------------------------------------ headers of answers


_KINDS = [
    ("user", "GET", "/api/v1/jobs", 200),
    ("user", "GET", "/api/v1/jobs/1/why", None),
    ("nobody", "GET", "/api/v1/jobs", 401),
    ("user", "GET", "/api/v1/jobs/99999", 404),
    ("user", "GET", "/api/v1/jobs?colour=red", 400),
    ("user", "PUT", "/api/v1/jobs", 405),
    ("user", "DELETE", "/api/v1/tokens/x", 403),
    ("nobody", "GET", "/api/v2/jobs", 404),
    ("nobody", "GET", "/api/v1/openapi.json", 200),
    ("nobody", "GET", "/healthz", 200),
    ("user", "GET", "/metrics", 200),
    ("nobody", "GET", "/", None),
    ("nobody", "GET", "/favicon.ico", None),
    ("nobody", "GET", "/assets/none.js", 404),
    ("nobody", "POST", "/", 405),
    ("user", "HEAD", "/api/v1/events", 200),
    ("user", "HEAD", "/api/v1/jobs", 200),
]


@pytest.mark.parametrize(("who", "method", "path", "status"), _KINDS)
def test_every_answer_tells_browsers_to_be_careful(site, who, method, path, status):
    answer = getattr(site, who).ask(method, path)
    assert status in (None, answer.status)
    assert {name: answer.headers.get(name) for name in _HEADERS} == _HEADERS
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe" not in policy
    assert "cache-control" in answer.headers
    if path.startswith(("/api", "/metrics", "/healthz")):
        assert answer.headers["cache-control"] == "no-store"
    assert "server" not in answer.headers
    assert [name for name, _value in answer.pairs].count("cache-control") == 1


def test_the_event_stream_tells_browsers_to_be_careful_too(site):
    with site.user.socket() as raw:
        head = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost:{site.port}\r\n"
        raw.sendall(f"{head}Authorization: Bearer {site.user_token}\r\n\r\n".encode())
        text = raw.recv(4096).decode().lower()
    assert "content-type: text/event-stream" in text
    for name, value in _HEADERS.items():
        assert f"{name}: {value}".lower() in text


def test_what_is_not_http_gets_a_careful_answer_and_no_more(site):
    for garbage in (b"\x00\x01\x02\r\n\r\n", b"GET\r\n\r\n", b"GET /a b HTTP/1.1\r\n\r\n"):
        with site.nobody.socket() as raw:
            raw.sendall(garbage)
            text = b"".join(iter(lambda raw=raw: raw.recv(4096), b""))
        assert text.startswith(b"HTTP/1.1 400 ")
        assert b"nosniff" in text


# ------------------------------------------------------------------ paths and files


@pytest.mark.parametrize(
    "path",
    ["/../../etc/passwd", "/..%2f..%2fetc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/assets/../../gateway.py",
     "/assets/..%2f..%2fgateway.py", "/assets/%2e%2e/%2e%2e/guard.py", "//etc/passwd", "/assets//etc/passwd",
     "/..\\..\\etc\\passwd", "/assets/%00", "/%00.html", "/static/../serve.py", "/.git/config"],
)  # fmt: skip
def test_no_path_leads_out_of_the_pages(site, path):
    answer = site.nobody.get(path)
    assert answer.status in (200, 400, 404), answer
    assert b"root:" not in answer.body
    assert b"from __future__" not in answer.body
    if answer.status == 200:
        assert answer.body == site.nobody.get("/").body  # only ever the page itself


def test_a_path_that_is_not_text_is_refused(site):
    for path in ("/api/v1/limits/%ff%fe", "/api/v1/%c0%ae%c0%ae/x"):
        _refused_with(site.admin.ask("PUT", path, {}), 404, "not_found")


def test_names_may_hold_slashes_and_dots(site):
    for name in ("a%2Fb", "a/b", "v1.2", "%2e"):
        answer = site.user.get(f"/api/v1/learning/{name}")
        assert answer.status == 404, answer
        assert "there is nothing at this path" not in answer.json["error"]["message"]


def test_other_methods_are_told_what_is_possible(site):
    for method in ("PUT", "OPTIONS", "TRACE", "CONNECT", "BREW", "DELETE"):
        answer = site.user.ask(method, "/api/v1/jobs")
        assert answer.status in (405, 400), answer
        if answer.status == 405:
            assert answer.headers["allow"] == "GET, HEAD, PATCH, POST"


# ------------------------------------------------------------------ sizes and times


def test_large_headers_are_refused(site):
    _refused_with(site.user.get("/api/v1/jobs", headers={"X-Much": "x" * 40_000}), 431, "headers_too_large")
    with site.nobody.socket() as raw:
        raw.sendall(b"GET / HTTP/1.1\r\nX-Much: " + b"x" * 200_000)
        assert raw.recv(64).startswith(b"HTTP/1.1 400 ")


def test_large_bodies_are_refused_before_they_are_read(site):
    for path, most in (("/api/v1/jobs/actions", 1 << 20), ("/api/v1/jobs", 64 << 20)):
        headers = {"Content-Length": str(most + 1), "Content-Type": "application/json"}
        answer = site.user.ask("POST", path, raw=b"{", headers=headers)
        _refused_with(answer, 413, "too_large")
        assert answer.headers["connection"] == "close"


def _raw(site: Site, *lines: str, body: bytes = b"", path: str = "/api/v1/jobs/actions") -> bytes:
    """What is answered to a request that is written by hand, until the connection is closed or nothing follows."""
    head = [f"POST {path} HTTP/1.1", f"Host: localhost:{site.port}", f"Authorization: Bearer {site.admin_token}"]
    with site.nobody.socket() as raw:
        said = b""
        with contextlib.suppress(ConnectionError):
            raw.sendall("\r\n".join([*head, "Content-Type: application/json", *lines, "", ""]).encode() + body)
        with contextlib.suppress(ConnectionError):
            while part := raw.recv(1 << 16):
                said += part
    return said


def test_a_large_body_that_does_not_say_its_size_is_refused_too(site):
    # One byte more than is taken: all of it is read, so that no reset overtakes the answer.
    chunks = b"100000\r\n" + b" " * (1 << 20) + b"\r\n1\r\n \r\n0\r\n\r\n"
    assert _raw(site, "Transfer-Encoding: chunked", body=chunks).startswith(b"HTTP/1.1 413 ")
    assert site.user.get("/api/v1/jobs").status == 200


_ACT = b'{"action":"kill","select":["1"]}'


@pytest.mark.parametrize(
    ("lines", "body"),
    [
        (["Content-Length: 5", "Transfer-Encoding: chunked"], b"0\r\n\r\n"),
        (["Transfer-Encoding: chunked", "Content-Length: 5"], b"0\r\n\r\n"),
        (["Content-Length: 5", "Content-Length: 6"], b"{}    "),
        (["Content-Length: 5, 6"], b"{}    "),
        (["Content-Length: -1"], b""),
        (["Content-Length: +5"], b"{}   "),
        (["Content-Length: 0x5"], b"{}   "),
        (["Content-Length: 5 5"], b"{}   "),
        (["Content-Length : 5"], b"{}   "),
        (["Transfer-Encoding: chunked, identity"], b"0\r\n\r\n"),
        (["Transfer-Encoding: identity"], b"{}"),
        (["Transfer-Encoding: xchunked"], b"0\r\n\r\n"),
        (["Transfer-Encoding: gzip, chunked"], b"0\r\n\r\n"),
        (["Transfer-Encoding: chunked", "Transfer-Encoding: identity"], b"0\r\n\r\n"),
        (["Transfer-Encoding:\x0bchunked"], b"0\r\n\r\n"),
        (["Transfer-Encoding : chunked"], b"0\r\n\r\n"),
        (["X\x00: 1"], b""),
    ],
)
def test_a_request_whose_end_is_unclear_is_refused_and_nothing_after_it_is_heard(site, lines, body):
    second = f"GET /healthz HTTP/1.1\r\nHost: localhost:{site.port}\r\nConnection: close\r\n\r\n".encode()
    said = _raw(site, *lines, body=body + second)
    assert said.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 501 ")), said[:200]
    assert said.count(b"HTTP/1.1 ") == 1


@pytest.mark.parametrize(
    "body",
    [
        b"5\r\n{}\r\n0\r\n\r\n",  # fewer bytes than it says
        b"1\r\n{}\r\n0\r\n\r\n",  # more
        b"zz\r\n{}\r\n0\r\n\r\n",
        b"-2\r\n{}\r\n0\r\n\r\n",
        b"0x2\r\n{}\r\n0\r\n\r\n",
        b"2 \x00\r\n{}\r\n0\r\n\r\n",
        b"fffffffffffffffffffffffff\r\n{}\r\n0\r\n\r\n",
        b"2;" + b"x" * 100_000 + b"\r\n{}\r\n0\r\n\r\n",
        b"\r\n2\r\n{}\r\n0\r\n\r\n",
    ],
)
def test_chunks_that_are_not_what_they_say_are_refused(site, body):
    said = _raw(site, "Transfer-Encoding: chunked", "Connection: close", body=body)
    assert said.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 413 ")), said[:200]
    assert said.count(b"HTTP/1.1 ") == 1


def test_who_leaves_in_the_middle_of_a_body_changes_nothing(site, quiet):
    before = _digest(site)
    body = json.dumps(_new_job(site)).encode()
    for line, sent in (
        (f"Content-Length: {len(body) + 1}", body),
        ("Transfer-Encoding: chunked", b"%x\r\n%b\r\n" % (len(body), body)),
    ):
        with site.nobody.socket() as raw:
            head = ["POST /api/v1/jobs HTTP/1.1", f"Host: localhost:{site.port}", "Content-Type: application/json"]
            head += [f"Authorization: Bearer {site.user_token}", line, "", ""]
            raw.sendall("\r\n".join(head).encode() + sent)
            raw.shutdown(socket.SHUT_WR)
            assert b" 201 " not in raw.recv(4096)
    assert _digest(site) == before


@pytest.mark.parametrize(
    "coding", ["gzip", "GZIP", "deflate", "br", "zstd", "x-gzip", "gzip, gzip", "identity, gzip"]
)
def test_compressed_bodies_are_not_unpacked(site, coding):
    bomb = gzip.compress(json.dumps(_new_job(site)).encode() + b" " * (8 << 20))
    headers = {"Content-Type": "application/json", "Content-Encoding": coding}
    _refused_with(site.user.ask("POST", "/api/v1/jobs", raw=bomb, headers=headers), 400, "bad_input")


def test_who_is_nobody_cannot_make_us_hold_a_body(site):
    headers = {"Content-Length": str(60 << 20), "Content-Type": "application/json"}
    headers["Authorization"] = "Bearer rota_user_" + "B" * 43
    answer = site.nobody.ask("POST", "/api/v1/jobs", raw=b"{", headers=headers)  # the rest never comes
    assert answer.status == 401, answer


@pytest.mark.parametrize(
    "body", [b"", b"{", b"[]", b"null", b"\xff", b'{"jobs": 1}', b"[" * 100_000, b'{"jobs":["x"],"no":1}', b"NaN"]
)
def test_bodies_that_are_not_what_they_should_be_are_refused(site, body):
    answer = site.user.ask("POST", "/api/v1/jobs", raw=body, headers={"Content-Type": "application/json"})
    _refused_with(answer, 400, "bad_input")


@pytest.mark.parametrize(
    ("job", "said"),
    [({"cmd": "true", "array": "1-100001"}, "more than 100,000 jobs"),
     ({"cmd": "true", "array": "1-100", "after": "1-9999"}, "more than 200,000 dependencies"),
     ({"cmd": "true", "env": {f"A{n}": "x" * 100_000 for n in range(30)}}, "more than 2 MiB")],
    ids=["jobs", "parents", "environment"],
)  # fmt: skip
def test_a_few_bytes_cannot_become_more_than_we_can_hold(site, job, said):
    answer = site.user.post("/api/v1/jobs", {"jobs": [job], "defaults": {"cwd": "/"}})
    _refused_with(answer, 400, "bad_input")
    assert said in answer.json["error"]["message"]


def test_a_body_where_none_belongs_is_refused(site):
    _refused_with(site.user.ask("GET", "/api/v1/jobs", raw=b"{}"), 400, "bad_input")
    answer = site.user.ask("GET", "/api/v1/jobs", raw=b"x", headers={"Content-Length": str(1 << 40)})
    _refused_with(answer, 400, "bad_input")


def test_a_stream_too_many_is_refused(site):
    streams = [site.user.events() for _ in range(_STREAMS_EACH)]
    with several(*streams):
        assert {each.status for each in streams} == {200}
        answer = site.user.get("/api/v1/events")
        _refused_with(answer, 429, "too_many")
        assert int(answer.headers["retry-after"]) >= 1
        assert site.user.get("/api/v1/jobs").status == 200

        def open_again() -> bool:
            streams[0].close()
            with site.user.events() as stream:
                return stream.status == 200

        assert wait_until(open_again, "a place is free again")


# ------------------------------------------------------------------ what is asked for changes nothing


_READ = [each for each in OPERATIONS if each.method == "GET"]
_CHANGING = [each for each in OPERATIONS if each.method != "GET"]


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("operation", _READ, ids=lambda each: each.id)
def test_looking_changes_nothing(site, quiet, operation, method):
    before = _digest(site)
    for caller in (site.user, site.admin):
        path = _path(operation).replace("/jobs/1", f"/jobs/{quiet}")
        if operation.kind == EVENTS and method == "GET":
            with caller.events(path=path) as stream:
                assert stream.status == 200
        else:
            assert caller.ask(method, path).status < 500
    assert _digest(site) == before


def test_what_is_compared_would_show_a_change(site, quiet):
    before = _digest(site)
    site.add("echo loud")
    assert _digest(site) != before
    _settle(site)  # those that follow compare too


@pytest.mark.parametrize("operation", _CHANGING, ids=lambda each: each.id)
def test_no_change_can_be_asked_for_with_another_method(site, quiet, operation):
    """Neither by GET and HEAD, nor by headers and parameters that some servers take for the method."""
    if operation.id in ("log_in", "log_out"):
        return  # of which GET is another operation
    before = _digest(site)
    says = {"X-HTTP-Method-Override": operation.method, "X-HTTP-Method": operation.method}
    says |= {"X-Method-Override": operation.method}
    for method in ("GET", "HEAD"):
        for path in (_path(operation), f"{_path(operation)}?_method={operation.method}"):
            assert site.admin.ask(method, path, headers=says).status in (200, 400, 404, 405)
    assert _digest(site) == before


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x"]
)
@pytest.mark.parametrize("operation", _CHANGING, ids=lambda each: each.id)
def test_a_form_of_another_site_changes_nothing_even_with_the_cookie(site, quiet, page, operation, kind):
    if operation.role == "open":
        return  # logging in takes a code, which no other site has
    before = _digest(site)
    _headers, cookie = page
    text = json.dumps({"jobs": ["true"], "defaults": {"cwd": "/"}, "x": ""})
    data = {
        "t": text,
        "a": f"{text}=",
        "m": f'--x\r\nContent-Disposition: form-data; name="x"\r\n\r\n{text}\r\n--x--',
    }
    sent = {"Cookie": cookie, "Content-Type": kind}
    foreign = {"Origin": "http://evil.example", "Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}
    for headers, code in (({**sent, **foreign}, "foreign"), (sent, "csrf")):
        for method in {"POST", operation.method}:
            answer = site.nobody.ask(method, _path(operation), raw=data[kind[0]].encode(), headers=headers)
            if operation.method == method:
                _refused_with(answer, 403, code)
            else:
                assert answer.status in (400, 403, 405), answer
    assert _digest(site) == before


# ------------------------------------------------------------------ hostile text


def test_hostile_text_comes_back_as_the_same_text_in_json(site):
    fields = {
        "cwd": str(site.rota.work),
        "rerun": True,
        "name": "<b>x</b>",
        "group": "g<script>",
        "project": "p&'\"",
    }
    job = {"cmd": ["printf", "%s", _HOSTILE], "env": {"A": _HOSTILE}, **fields}
    answer = site.user.post("/api/v1/jobs", {"jobs": [job]})
    if answer.status == 400:  # a name or a group may be refused, but not change
        assert answer.headers["content-type"] == "application/json"
        job = {"cmd": job["cmd"], "env": job["env"], "cwd": fields["cwd"], "rerun": True}
        answer = site.user.post("/api/v1/jobs", {"jobs": [job]})
    assert answer.status == 201, answer
    (id,) = answer.json["added"]
    site.rota.ok("wait", str(id))
    for path in (f"/api/v1/jobs/{id}", f"/api/v1/jobs?select={id}", f"/api/v1/jobs/{id}/output", "/api/v1/status"):
        found = site.user.get(path)
        assert (found.status, found.headers["content-type"]) == (200, "application/json")
        assert b"\x1b" not in found.body
    assert site.user.get(f"/api/v1/jobs/{id}").json["cmd"][2] == _HOSTILE
    assert site.user.get(f"/api/v1/jobs/{id}/output").json["text"] == _HOSTILE
    raw = site.user.get(f"/api/v1/jobs/{id}/output/raw")
    assert (raw.headers["content-type"].partition(";")[0], raw.body) == ("text/plain", _HOSTILE.encode())


@pytest.mark.parametrize(
    "path",
    ["jobs?search=TEXT", "jobs?select=TEXT", "jobs?sort=TEXT", "jobs?TEXT=1", "TEXT", "learning/TEXT", "jobs/TEXT",
     "jobs?cursor=TEXT", "gantt?from=TEXT"],
)  # fmt: skip
def test_hostile_text_in_a_request_is_never_sent_back_as_a_page(site, path):
    from urllib.parse import quote

    answer = site.user.get(f"/api/v1/{path.replace('TEXT', quote(_HOSTILE, safe=''))}")
    assert answer.status in (200, 400, 404), answer
    assert answer.headers["content-type"] == "application/json"
    assert b"\x1b" not in answer.body
    json.loads(answer.body)


def test_a_search_for_hostile_text_finds_only_that_text(site):
    (id,) = site.add("echo '%_\"; DROP TABLE jobs; --'")
    for text in ("%25_%22;", "DROP%20TABLE"):
        assert [job["id"] for job in site.user.get(f"/api/v1/jobs?search={text}").json["jobs"]] == [id]


# ------------------------------------------------------------------ at the end, since it takes the patience of all


def test_who_guesses_is_told_to_wait_and_others_still_get_in(site):
    answers = [site.nobody.post("/api/v1/session", {"code": f"guess-{n}"}) for n in range(int(_LOGIN_BURST) + 5)]
    assert answers[-1].status == 429
    assert int(answers[-1].headers["retry-after"]) >= 1
    assert {each.status for each in answers} <= {401, 429}
    assert site.nobody.post("/api/v1/session", {"code": site.code()}).status == 200
    tokens = [site.nobody.as_("rota_user_" + f"{n:043d}").get("/api/v1/jobs") for n in range(120)]
    assert {each.status for each in tokens} <= {401, 429}
    assert site.user.get("/api/v1/jobs").status == 200


def test_nothing_of_all_this_was_a_bug(site):
    assert site.logs() == ""


# ------------------------------------------------------------------ beyond this machine


def _own_address() -> str:
    """An address of this machine that is not loopback; none where there is no network."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))
        except OSError:
            return ""
        return str(probe.getsockname()[0])


@pytest.fixture(scope="module")
def exposed(tmp_path_factory):
    settings = {"http": "on", "http_host": "0.0.0.0", "http_names": "rota.example"}
    with deployment(tmp_path_factory.mktemp("exposed"), **settings) as rota:
        made = Site(rota)
        wait_until((rota.home / "tls" / "certificates.json").exists, "there are certificates")
        yield made


def _trusting(site: Site) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=str(site.rota.home / "tls" / "ca.pem"))
    context.minimum_version = ssl.TLSVersion.TLSv1_3
    return context


@pytest.mark.skipif(not _own_address(), reason="this machine has no address but loopback")
def test_plain_http_is_refused_from_other_machines(exposed):
    outside = Http(_own_address(), exposed.port, exposed.user_token)
    answer = outside.get("/api/v1/jobs", headers={"Host": f"{_own_address()}:{exposed.port}"})
    assert answer.status == 400
    assert b"https" in answer.body


@pytest.mark.skipif(not _own_address(), reason="this machine has no address but loopback")
def test_tls_is_served_to_other_machines_by_names_that_were_set(exposed):
    context = _trusting(exposed)
    context.check_hostname = False  # the address itself is not in the certificate of a wildcard
    outside = Http(_own_address(), exposed.port, exposed.user_token, context)
    assert outside.get("/api/v1/jobs", headers={"Host": f"rota.example:{exposed.port}"}).status == 200
    assert outside.get("/api/v1/jobs", headers={"Host": f"other.example:{exposed.port}"}).status == 421


def test_tls_is_answered_on_the_same_port_with_the_deployment_s_own_authority(exposed):
    inside = Http("localhost", exposed.port, exposed.user_token, _trusting(exposed))
    assert inside.get("/api/v1/jobs").status == 200
    strangers = Http("localhost", exposed.port, exposed.user_token, ssl.create_default_context())
    with pytest.raises(ssl.SSLError):
        strangers.get("/api/v1/jobs")
    assert Http("127.0.0.1", exposed.port, exposed.user_token).get("/api/v1/jobs").status == 200


def test_the_certificate_has_the_names_that_were_set(exposed):
    context = _trusting(exposed)
    with (
        socket.create_connection(("127.0.0.1", exposed.port)) as plain,
        context.wrap_socket(plain, server_hostname="rota.example") as secure,
    ):
        assert secure.version() == "TLSv1.3"


def test_half_a_handshake_keeps_nobody_waiting(exposed):
    with socket.create_connection(("127.0.0.1", exposed.port)) as half:
        half.sendall(b"\x16\x03\x01")
        assert exposed.user.get("/api/v1/jobs").status == 200


def test_files_of_the_gateway_are_private(site):
    for path in (site.rota.home / "logs").iterdir():
        assert os.stat(path).st_mode & 0o077 == 0, path
    assert Path(site.rota.home).stat().st_mode & 0o077 == 0
    assert (site.rota.home / "http.port").stat().st_mode & 0o077 == 0
