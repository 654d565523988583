"""The event stream and the processes behind it: cut off, killed, restarted, overrun."""

from __future__ import annotations

import os
import re
import signal
import socket
from pathlib import Path
from typing import Any

import pytest

from tests.api.client import Events, several
from tests.api.conftest import Site
from tests.deployment import Deployment, deployment, is_alive, wait_until


@pytest.fixture
def own(tmp_path):
    """A deployment for one test alone, which will be hurt."""
    with deployment(tmp_path, http="on", grace="1s") as rota:
        yield Site(rota)


def _ended(changes: list[Any], ids: list[int]) -> bool:
    told = {id: state for change in changes for id, state, _attempt in change["jobs"]}
    return all(told.get(id) == "complete" for id in ids) or any(change["many"] for change in changes)


def _begun(stream: Events) -> Events:
    stream.wait(lambda events: events, "the stream says where it begins")
    return stream


def test_what_happens_is_told(site):
    with site.user.events() as stream:
        _begun(stream)
        assert stream.events[0][0] == "reset"
        ids = site.add("true", group="told")
        stream.wait(lambda _: _ended(stream.changes, ids), "the job's end")
        stream.wait(lambda _: stream.changes[-1]["groups"].get("told") == {"complete": 1}, "the group's counts")
        counts = site.user.get("/api/v1/status").json["counts"]
        assert stream.changes[-1]["counts"] == counts


def test_who_is_cut_off_again_and_again_hears_of_every_job(site):
    stream = _begun(site.user.events())
    ids: list[int] = []
    changes: list[Any] = []
    for _ in range(6):
        ids += site.add("true", "true", "sleep 0.1")
        stream.close()
        changes += stream.changes
        ids += site.add("true")
        stream = _begun(site.user.events(last=stream.last))
        assert stream.events[0][0] == "change", "nothing may have been missed, so nothing is to be read again"
    with stream:
        stream.wait(lambda _: _ended(changes + stream.changes, ids), "the end of every job")
    assert not any(name == "reset" for name, _id, _data in stream.events)


def test_a_stream_that_nobody_knows_begins_anew(site):
    with site.user.events(last="00000000-7") as stream:
        _begun(stream)
        assert stream.events[0][0] == "reset"


def test_many_readers_are_one_to_the_manager(site):
    with several(*(site.user.events() for _ in range(8)), *(site.admin.events() for _ in range(8))) as streams:
        for each in streams:
            _begun(each)
        ids = site.add("true")
        for each in streams:
            each.wait(lambda _, each=each: _ended(each.changes, ids), "the job's end")
        first = [change["at"] for change in streams[0].changes]
        assert all(set(first) & {change["at"] for change in each.changes} for each in streams)


def test_who_does_not_read_keeps_nobody_waiting(site):
    with socket.create_connection(("127.0.0.1", site.port)) as stuck, site.user.events() as stream:
        stuck.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        head = f"GET /api/v1/events HTTP/1.1\r\nHost: localhost:{site.port}\r\n"
        stuck.sendall(f"{head}Authorization: Bearer {site.user_token}\r\n\r\n".encode())
        _begun(stream)
        ids = [id for _ in range(10) for id in site.add(*["true"] * 50)]
        stream.wait(lambda _: _ended(stream.changes, ids), "the end of all jobs")


def test_the_gateway_is_started_again_at_the_same_address(own):
    before = own.gateway_pid()
    page, _cookie = own.log_in()
    stream = _begun(own.user.events())
    os.kill(before, signal.SIGKILL)
    assert stream.ended.wait(30)
    wait_until(lambda: own.gateway_pid() not in (0, before), "another gateway runs")
    wait_until(own._answers, "it answers at the same address")
    with own.user.events(last=stream.last) as again:
        _begun(again)
        assert again.events[0][0] == "reset"
    body = {"jobs": ["true"], "defaults": {"cwd": "/"}}
    assert own.nobody.post("/api/v1/jobs", body, headers=page).status == 201, "open pages go on"


def test_a_new_manager_is_found_at_the_same_address_and_pages_begin_anew(own):
    port = own.port
    gateway = own.gateway_pid()
    stream = _begun(own.user.events())
    own.rota.ok("manager", "stop")
    assert stream.ended.wait(30)
    wait_until(lambda: not is_alive(gateway), "the gateway has ended with its manager")
    own.rota.start()
    own.find()
    assert own.port == port
    with own.user.events(last=stream.last) as again:
        _begun(again)
        assert again.events[0][0] == "reset"


def test_a_port_that_is_taken_meanwhile_is_replaced(own):
    port = own.port
    own.rota.ok("manager", "stop")
    with socket.socket() as thief:
        thief.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        thief.bind(("127.0.0.1", port))
        thief.listen()
        own.rota.start()
        own.find()
        assert own.port != port


def test_a_killed_manager_takes_its_gateway_along_and_streams_go_on_with_the_next(own):
    port, gateway = own.port, own.gateway_pid()
    stream = _begun(own.user.events())
    os.kill(own.rota.manager_pid(), signal.SIGKILL)
    assert stream.ended.wait(30)
    wait_until(lambda: not is_alive(gateway), "the gateway has ended")
    own.rota.start()
    own.find()
    assert own.port == port
    with own.user.events(last=stream.last) as again:
        _begun(again)
        assert again.events[0][0] == "reset"
        ids = own.add("true")
        again.wait(lambda _: _ended(again.changes, ids), "the job's end")


def test_nobody_else_gets_the_port_of_localhost_by_its_other_address(own):
    with pytest.raises(OSError, match="in use"):
        socket.create_server(("::1", own.port), family=socket.AF_INET6)
    own.rota.ok("manager", "stop")
    port = own.port
    with socket.create_server(("::1", port), family=socket.AF_INET6):
        own.rota.start()
        own.find()
        assert own.port != port


def _listens(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=5).close()
    except OSError:
        return False
    return True


@pytest.mark.parametrize("kill", [False, True], ids=["stopped", "killed"])
def test_a_session_ends_with_its_manager(own, kill):
    page, cookie = own.log_in()
    token = cookie.partition("=")[2]
    assert own.nobody.get("/api/v1/session", headers=page).status == 200
    for file in own.rota.home.rglob("*"):
        assert not file.is_file() or token.encode() not in file.read_bytes(), file
    pid = own.rota.manager_pid()
    if kill:
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda: not is_alive(pid), "it has ended")
        wait_until(lambda: not _listens(own.port), "its gateway has ended: the next takes the same port")
    else:
        own.rota.ok("manager", "stop")
    # Whoever has the port now could have been sent the cookie.
    port = own.port
    own.rota.start()
    own.find()
    # A connection of another program may have taken the port meanwhile. Cookies are named for theirs.
    expected = "this session is over" if own.port == port else "nobody has logged in"
    for method, path in (("GET", "session"), ("GET", "events"), ("POST", "jobs")):
        answer = own.nobody.ask(method, f"/api/v1/{path}", headers=page)
        assert (answer.status, answer.json["error"]["message"]) == (401, expected), answer


def test_while_the_manager_stands_still_health_says_so(own):
    assert own.nobody.get("/healthz").json == {"ok": True, "manager": True}
    pid = own.rota.manager_pid()
    os.kill(pid, signal.SIGSTOP)
    try:
        answer = own.nobody.get("/healthz")
        assert (answer.status, answer.json) == (503, {"ok": False, "manager": False})
    finally:
        os.kill(pid, signal.SIGCONT)
    wait_until(own._answers, "all is well again")


def test_a_manager_that_a_run_started_has_no_gateway_until_somebody_wants_to_look(tmp_path):
    with deployment(tmp_path, http="on") as rota:
        assert rota.ok("run", "--", "echo", "hi") == "hi\n"
        assert _gateways(rota) == []
        with rota.client() as client:
            assert client.manager_status().http is None
            link = client.ui_link()
        assert re.fullmatch(r"http://localhost:\d+", link.url)
        wait_until(lambda: _gateways(rota), "a gateway runs")


def test_where_http_is_off_nothing_is_served(tmp_path):
    with deployment(tmp_path, http="off") as rota:
        rota.start()
        done = rota.rota("manager", "ui", "--no-open")
        assert (done.returncode, "turned off" in done.stderr) == (2, True)
        assert _gateways(rota) == []


def _gateways(rota: Deployment) -> list[str]:
    mark = os.fsencode(str(rota.home))
    found = []
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            line = path.read_bytes()
        except OSError:
            continue
        if b"rota.api" in line and mark in line:
            found.append(path.parent.name)
    return found


def _woken(pid: int) -> int:
    """How often a process has been woken so far."""
    found = 0
    for path in Path(f"/proc/{pid}/task").glob("*/status"):
        found += int(re.findall(r"^voluntary_ctxt_switches:\s*(\d+)", path.read_text(), re.MULTILINE)[0])
    return found


def test_an_idle_gateway_sleeps_also_while_a_page_is_open(own):
    with own.user.events() as stream:
        _begun(stream)
        pid = own.gateway_pid()
        counts = [_woken(pid)]

        def slept() -> bool:
            """Of a hundred looks, nearly none found that it had been woken in between."""
            counts.append(_woken(pid))
            last = counts[-100:]
            return len(last) == 100 and last[-1] - last[0] <= 10

        wait_until(slept, "it sleeps")
